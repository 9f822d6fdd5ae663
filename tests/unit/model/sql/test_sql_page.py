"""docs/sql-pipelines.md: what it shows compiles, and what it lists is all there is."""

from __future__ import annotations

import re
from pathlib import Path

from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.sql.pipeline_file import STATEMENTS, read_pipeline_text
from seamline.model.sql.select_measures import MEASURES
from seamline.model.sql.time_windows import WINDOWS

PAGE = (Path(__file__).parents[4] / "docs" / "sql-pipelines.md").read_text()
BLOCKS = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_blocks_of_the_page_are_a_pipeline() -> None:
    """The first thing a newcomer does is copy them."""
    made = compile_pipeline(read_pipeline_text("\n".join(BLOCKS), "shop.sql"))
    assert len(BLOCKS) == 5
    assert [view.name for view in made.views] == [
        "by_shop",
        "refunds_by_shop",
        "guessed_accounts",
        "by_tag",
        "events",
    ]
    assert len(made.definition.sinks) == 2


def test_the_page_names_every_word_of_the_dialect() -> None:
    """A measure or a window that the page does not have is found by nobody."""
    lacking = [f"CREATE {word} " for word in STATEMENTS if f"CREATE {word} " not in PAGE]
    lacking += [f"{word}(" for word in WINDOWS if f"{word}(" not in PAGE]
    lacking += [word for word in MEASURES if not re.search(rf"\b{word}\b", PAGE)]
    # "and so for stddev".
    assert lacking == ["stddev_samp", "stddev_pop"]
