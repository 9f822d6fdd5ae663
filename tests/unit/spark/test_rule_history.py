"""Tables of rules made again of the log: in steps that fit into memory, and nothing twice."""

from __future__ import annotations

from seamline.spark.tasks.rule_history import group_epochs


def test_epochs_are_read_in_steps() -> None:
    """In order; one that has more than a step is a step of its own."""
    counts = {1: 3, 2: 4, 5: 1, 6: 20, 7: 1, 9: 8}
    assert list(group_epochs(counts, most=8)) == [[1, 2, 5], [6], [7], [9]]
    assert list(group_epochs({}, most=8)) == []
