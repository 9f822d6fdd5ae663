"""What a change of definitions makes new, and which part of a fingerprint did it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.shop import DEFINITION, sales_pipeline

from seamline.local.revisions.described_definitions import describe_pipeline
from seamline.plan.revision.changed_parts import PartChange, list_part_changes
from seamline.plan.revision.definition_diff import (
    DefinitionDiff,
    PipelineChangeKind,
    ViewChange,
    ViewChangeKind,
    compare_revisions,
)
from seamline.plan.revision.revision_facts import RevisionFacts
from seamline.plan.revision.revision_plan import PlannedChange, RevisionPlan
from seamline.plan.wording.revision_text import (
    format_part_change,
    format_revision_markdown,
    format_revision_plan,
    list_view_parts,
)


def revision(text: str = DEFINITION, *, problems: tuple[str, ...] = ()) -> RevisionFacts:
    """Describe a revision that has one pipeline."""
    compiled = sales_pipeline(text=text)
    return RevisionFacts({compiled.name: describe_pipeline(compiled)}, problems)


def changed_by(before: str, after: str) -> tuple[DefinitionDiff, list[ViewChange]]:
    """Replace a text of the definition by another."""
    assert before in DEFINITION
    diff = compare_revisions(revision(), revision(DEFINITION.replace(before, after)))
    [pipeline] = diff.pipelines
    return diff, [*pipeline.views]


def test_nothing_changes_by_itself() -> None:
    """A pull request that touches no definition says so."""
    diff = compare_revisions(revision(), RevisionFacts.from_json(revision().to_json()))
    assert diff == DefinitionDiff(()) and not diff.builds
    plan = RevisionPlan("main (0123)", diff, ())
    assert [*format_revision_plan(plan)][-1] == "Nothing has to be built, and no published number changes."


@pytest.mark.parametrize(
    ("before", "after", "said", "record"),
    [
        ('sum("amount")', 'sum("amount + 1")', "measure total: sum(amount) -> sum(amount + 1)", False),
        (
            '"largest": max("amount")',
            '"largest": max("id")',
            "measure largest: max(amount) -> max(id)",
            False,
        ),
        ('keys=["customer"]', "keys=[]", "keys: customer -> none", False),
        ('Tumbling("1 hour")', 'Tumbling("1 day")', "window: tumbling, 1 hour -> tumbling, 1 day", False),
        ('event_id=["id"]', "event_id=[]", "event id: id -> none", True),
        ('topic="sales"', 'topic="sold"', "topics: sales -> sold", False),
        (
            "    batch=",
            '    select={"twice": "amount * 2"}, where="amount > 0",\n    batch=',
            "select twice: none -> amount * 2; where of the pipeline: none -> amount > 0",
            True,
        ),
    ],
)
def test_a_new_version_says_which_part_made_it(before: str, after: str, said: str, record: bool) -> None:
    """A fingerprint is twelve digits: people are told what is behind it."""
    diff, [view] = changed_by(before, after)
    assert (view.kind, view.record, diff.builds) == (ViewChangeKind.VERSION, record, True)
    assert view.before != view.after and view.view == "sales"
    assert "; ".join(list_view_parts(view)) == said


def test_a_name_changes_no_number_and_is_built_once_more() -> None:
    """Tables have the view's name in their path."""
    _, [view] = changed_by('"sales",\n            keys', '"sold",\n            keys')
    assert (view.kind, view.view) == (ViewChangeKind.RENAMED, "sold")
    assert view.before.partition("/")[2] == view.after.partition("/")[2]


def test_settings_that_change_no_number_build_nothing() -> None:
    """Whoever edits a trigger need not wait for a preview."""
    diff, views = changed_by('start="2013-01-01"', 'start="2013-01-01", max_dirty=3')
    assert (diff.pipelines[0].settings, views, diff.builds) == (("batch",), [], False)


def test_other_intervals_are_told() -> None:
    """A stream whose log has rows does not start with them."""
    diff, _ = changed_by('interval="1 day"', 'interval="1 hour"')
    assert diff.pipelines[0].intervals == ("1 day", "1 hour")
    lines = [*format_revision_plan(RevisionPlan("main", diff, (PlannedChange(diff.pipelines[0]),)))]
    assert any("does not start with that" in line for line in lines)


def test_pipelines_come_and_go() -> None:
    """What is gone is served on."""
    added, gone = (
        compare_revisions(*pair) for pair in ((RevisionFacts(), revision()), (revision(), RevisionFacts()))
    )
    assert [each.kind for each in added.pipelines + gone.pipelines] == [
        PipelineChangeKind.ADDED,
        PipelineChangeKind.GONE,
    ]
    assert [each.views[0].kind for each in added.pipelines + gone.pipelines] == [
        ViewChangeKind.ADDED,
        ViewChangeKind.GONE,
    ]
    assert added.builds and not gone.builds


def test_beside_a_broken_file_nothing_is_known_to_be_new() -> None:
    """The file that cannot be loaded may have declared it."""
    broken = RevisionFacts(problems=("shop.py:1: invalid syntax.",))
    for diff in (compare_revisions(broken, revision()), compare_revisions(revision(), broken)):
        assert [each.kind for each in diff.pipelines] == [PipelineChangeKind.UNKNOWN]
        assert not diff.builds and (diff.problems or diff.base_problems)


def test_of_two_definitions_with_several_views_each_is_compared_by_name() -> None:
    """One that was added does not hide one that changed."""
    other = """View("more", keys=[], window=Tumbling("1 day"), measures={"n": count()}),\n        View("""
    text = DEFINITION.replace("View(\n", other + "\n").replace('sum("amount")', 'sum("id")')
    [pipeline] = compare_revisions(revision(), revision(text)).pipelines
    assert [(each.view, each.kind) for each in pipeline.views] == [
        ("more", ViewChangeKind.ADDED),
        ("sales", ViewChangeKind.VERSION),
    ]
    assert len(pipeline.built) == 2


def test_parts_of_several_sources_are_named_with_their_source() -> None:
    """Two topics may have a column of one name."""
    before = {"record": {"sources": {"orders": {"select": [["cents", "a"]], "schema": "a INT"}}}}
    after = {"record": {"sources": {"orders": {"select": [["cents", "b"]], "schema": "a INT"}}}}
    [change] = list_part_changes(before, after)
    assert change == PartChange("record.sources.orders.select.cents", ["a"], ["b"])
    assert format_part_change(change) == "source orders: select cents: a -> b"


def test_a_text_of_a_definition_means_nothing_in_a_pull_request() -> None:
    """A comment that pings people, or breaks its table, is nobody's wish."""
    _, [view] = changed_by('sum("amount")', "sum(\"CASE WHEN customer = '@all|<b>' THEN 1 END\")")
    diff, _ = changed_by('sum("amount")', "sum(\"CASE WHEN customer = '@all|<b>' THEN 1 END\")")
    plan = RevisionPlan("main", diff, (PlannedChange(diff.pipelines[0]),), ("a *note*",))
    text = "\n".join(format_revision_markdown(plan))
    assert "@all" in list_view_parts(view)[0]
    for bare in ("@all", "<b>", "|", "a *note*"):
        assert bare not in text.replace("\\|", "")
    assert replace(plan, pipelines=()).differs is False
