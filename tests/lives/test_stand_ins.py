"""What stands in the place of Spark in lives is called as Spark's part is."""

from inspect import Signature, signature

import pytest
from tests.lives.builds import STAND_INS


def shape(made: Signature) -> list[tuple[object, object]]:
    """Tell how a function is called: its parameters' kinds and defaults, in order."""
    return [(each.kind, each.default) for each in made.parameters.values()]


@pytest.mark.parametrize(("module", "name", "mine"), STAND_INS, ids=[name for _, name, _ in STAND_INS])
def test_stand_ins(module, name, mine):
    assert shape(signature(mine)) == shape(signature(getattr(module, name)))
