"""What pages remember of a pipeline's tables, and when it is read again."""

from __future__ import annotations

from tests.unit.past import build
from tests.unit.shop import Sale

from seamline.lake.storage.layout import definitions_folder
from seamline.web.glance.table_versions import Memory, TableVersions
from seamline.web.requested_pipeline import open_requested_pipeline


def test_it_is_read_again_when_a_table_or_the_definition_has_changed(shop) -> None:
    """And not otherwise."""
    read: list[int] = []
    memory = Memory(lambda pipeline, layout: read.append(len(read)) or len(read))
    changes = (
        lambda: shop.epoch([Sale(5, "a", 1)]),
        lambda: build(shop, "h", cut=1),
        lambda: file.write_text(
            file.read_text().replace("    batch=", '    tags=["edited"],\n    batch=', 1)
        ),
    )
    file = definitions_folder() / "shop.py"
    for number, change in enumerate(changes, 1):
        for _ in range(2):
            assert memory.find(*open_requested_pipeline("shop")) == number
        change()
    assert memory.find(*open_requested_pipeline("shop")) == 4


def test_what_comes_without_the_log_is_looked_at_too(shop) -> None:
    """Records that are validated again have their verdicts in a table that no epoch names."""
    pipeline, layout = open_requested_pipeline("shop")
    seen = TableVersions.of(pipeline, layout)
    roots = [str(root).removeprefix(str(layout.table(""))) for root, _ in seen.versions]
    assert any(root.endswith("/verdicts") for root in roots)
    assert seen.are_still(pipeline)


def test_pages_show_what_has_come(client, shop) -> None:
    """The graph and the page of completeness remember, and are right."""
    pages = ("/pipelines/shop/graph", "/pipelines/shop/completeness")
    before = [client.get(page).text for page in pages]
    assert "1 interval to build" not in before[0] and "1 dirty" not in before[1]
    shop.epoch([Sale(5, "a", 1)])
    graph, completeness = (client.get(page).text for page in pages)
    assert "1 interval to build" in graph and 'class="dirty"' in completeness
