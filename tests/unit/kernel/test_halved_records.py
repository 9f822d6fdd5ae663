"""Records are not to blame for what a judge could not read beside them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from seamline.kernel.halving import validate_by_halves
from seamline.model.errors import NotFound, SeamlineError, StoreUnavailable


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (StoreUnavailable("the bucket does not answer", hint="wait"), StoreUnavailable),
        (NotFound("nothing is kept of the registry", hint="start the stream"), NotFound),
        (OSError("Generic S3 error: error sending request"), StoreUnavailable),
    ],
)
def test_a_store_that_is_away_condemns_nothing(error: Exception, raised: type[SeamlineError]) -> None:
    """Good records would be refused for good, down to the last one."""

    def judge(_: pa.Table) -> tuple[pa.Table, pa.Table]:
        raise error

    with pytest.raises(raised):
        [*validate_by_halves(pa.table({"_value": [b"a", b"b"]}), judge)]
