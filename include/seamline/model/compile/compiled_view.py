"""A view made ready for the engines: its keys, windows, sets and measures, and what they cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_measure import CompiledMeasure, compile_measures
from seamline.model.compile.compiled_measure import format_measure_place as measure_place
from seamline.model.compile.evolution import list_used_columns
from seamline.model.compile.explode import Explode, compile_view_explosion
from seamline.model.compile.fingerprint import fingerprint_view
from seamline.model.compile.grouping_sets import GROUPING, NUMBER, compile_grouping_sets
from seamline.model.compile.lookups.lookup_join import LookupJoin, compile_decorations
from seamline.model.compile.problems import (
    Problems,
    compile_condition,
    find_column,
    format_known_columns,
    require_exact_key,
)
from seamline.model.compile.processes.compiled_process import CompiledProcess, Derived
from seamline.model.compile.record_rules import Record
from seamline.model.compile.view_expectations import check_expectations, list_expectations
from seamline.model.definition.expectations import Expectation
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.windows import CountWindow, Window
from seamline.model.expressions import Expression
from seamline.model.measures import Part
from seamline.model.time.intervals import Grid
from seamline.model.time.window_arithmetic import Ruling, Windows
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import BIGINT, Field, Schema

RESERVED = ("pane", "rows", "from_epoch", "to_epoch", "generation", "interval", "window_start", "window_end")
PRESENTED = ("batch_part", "speed_part", "epoch", "certified", "complete", "phase", "manifest_version")


@dataclass(frozen=True)
class CompiledView:
    """A view whose names and types are known to fit."""

    pipeline: str
    """The pipeline's name."""
    name: str
    """The view's name."""
    keys: tuple[Field, ...]
    """The keys, ``window_number`` of count windows last."""
    window: Window
    """The windows as declared."""
    windows: Windows
    """Their arithmetic on the pipeline's intervals."""
    pane: timedelta
    """The span in which rows are summed up; of sessions the one within which they are."""
    interval: timedelta
    """The length of an interval."""
    sets: tuple[tuple[str, ...], ...]
    """The grouping sets, at least one."""
    where: Expression | None
    """The condition on rows, None for all."""
    measures: tuple[CompiledMeasure, ...]
    """The measures, in order."""
    expect: tuple[Expectation, ...]
    """What each interval of a certified generation must meet."""
    fingerprint: str
    """A hash of what the view's numbers mean."""
    explode: Explode | None = None
    """The array whose items are rows, None for none."""
    uses: tuple[Field, ...] = ()
    """The source's added columns without which the view has no meaning."""
    decorations: tuple[LookupJoin, ...] = ()
    """Look-ups whose columns are shown beside the keys."""
    of: tuple[str, ...] = ()
    """The names of the sources whose rows it counts, or of derived rows; none where the only source has no name."""
    join: CompiledJoin | None = None
    """The join whose rows it counts, None where it counts others."""
    process: CompiledProcess | None = None
    """The process whose rows it counts, None where it counts others."""
    changelog: CompiledChangelog | None = None
    """The changelog whose rows it counts, None where it counts others."""
    side: str = ""
    """The side of the process, empty for what its function emits."""

    @property
    def qualified(self) -> str:
        """The name people use: PIPELINE.VIEW."""
        return f"{self.pipeline}.{self.name}"

    @property
    def id(self) -> str:
        """The name the tables use: one version of the view."""
        return f"{self.name}/{self.fingerprint}"

    @property
    def counts(self) -> int:
        """Events in a window, of count windows; else 0. Such a view is owned by one side."""
        return self.window.events if isinstance(self.window, CountWindow) and not self.process else 0

    @property
    def derived(self) -> Derived | None:
        """What makes the rows that it counts, None where they are those of sources."""
        return self.join or self.process or self.changelog

    @property
    def netted(self) -> bool:
        """True if rows may be withdrawn, so that states may be negative."""
        return bool(self.process or self.changelog or self.revised)

    @property
    def revised(self) -> bool:
        """True if a row that came later may change what a row has: in an as-of join."""
        return bool(self.join and self.join.latest)

    @property
    def span(self) -> timedelta:
        """After how long the state of its fold begins anew; zero where it has none."""
        return self.process.begin if self.process else timedelta(0)

    @property
    def before(self) -> timedelta:
        """How far before an interval rows may be that are counted in it."""
        return self.derived.before if self.derived else timedelta(0)

    @property
    def after(self) -> timedelta:
        """How far behind an interval rows may be that are counted in it: it is over so much later."""
        return self.derived.after if self.derived else timedelta(0)

    @property
    def numbered(self) -> str:
        """The column of a row that says in which count window of this view it is."""
        return f"_number_{self.fingerprint}"

    @property
    def ordered_by(self) -> tuple[Field, ...]:
        """The keys within which events are counted: those that the author named."""
        return tuple(key for key in self.keys if key.name != NUMBER) if self.counts else self.keys

    @property
    def grouped(self) -> bool:
        """True if rows say of which grouping set they are."""
        return self.sets != (tuple(key.name for key in self.keys),)

    @property
    def parts(self) -> tuple[Part, ...]:
        """List every state column, state by state."""
        return tuple(part for state in self.states for part in state.parts)

    @property
    def beyond(self) -> dict[str, CompiledMeasure]:
        """Map the columns that have a total as text, where no DECIMAL holds it, to whose total it is."""
        sources = (source for measure in self.measures for source in measure.sources)
        return {source.beyond: source for source in sources if source.beyond}

    @property
    def states(self) -> tuple[CompiledMeasure, ...]:
        """List the measures whose states are stored, each state once."""
        found: dict[str, CompiledMeasure] = {}
        for measure in self.measures:
            for source in measure.sources:
                found.setdefault(source.stored, source)
        return tuple(found.values())


def version_of_view(
    pipeline: Pipeline, view: View, made: CompiledView, record: Record, grid: Grid, judged: Sequence[Field]
) -> CompiledView:
    """Name the version of a compiled view; ``judged`` are the added columns that the record's steps use."""

    def without(some: Sequence[Field], found: Problems) -> None:
        left_out = set(record.added) - set(some)
        fields = tuple(field for field in record.parsed.fields if field not in left_out)
        compile_view(pipeline, view, replace(record, parsed=Schema(fields)), grid, found)

    uses = list_used_columns(record.added, without)
    return replace(made, uses=uses, fingerprint=fingerprint_view(pipeline, view, judged, uses))


def compile_view(
    pipeline: Pipeline, view: View, record: Record, grid: Grid, problems: Problems
) -> CompiledView | None:
    """Compile a view, without a fingerprint; note its problems and return None where it has any."""
    before, place = len(problems.found), f"views[{view.name}]"
    explode = compile_view_explosion(view, record, problems)
    schema = record.schema.with_(*explode.seen) if explode else record.schema
    keys: list[Field] = []
    for name in view.keys:
        key, found = find_column(schema, name), len(problems.found)
        if key is None:
            problems.note(
                f"{place}.keys",
                view.origin,
                f"There is no column {name!r}.",
                format_known_columns(schema, name),
            )
            continue
        problems.attempt(f"{place}.keys", view.origin, partial(require_exact_key, name, key.type))
        if trouble := find_key_conflict(view, name, [each.name for each in keys]):
            problems.note(f"{place}.keys", view.origin, trouble, "rename it, or alias it in select=.")
        elif len(problems.found) == found:
            keys.append(replace(key, within=""))
    where = (
        problems.attempt(f"{place}.where", view.origin, lambda: compile_condition(view.where, schema))
        if view.where
        else None
    )
    windows = problems.attempt(f"{place}.window", view.origin, lambda: view.window.lay_out(grid))
    if isinstance(view.window, CountWindow):
        keys += compile_count_window(view, problems)
    sets = compile_grouping_sets(view, problems)
    for name in view.measures:
        keyed = name in [key.lower() for key in view.keys]
        if keyed or name in RESERVED + PRESENTED:
            why = "it is a key of the view" if keyed else "every row has such a column"
            problems.note(
                measure_place(view, name),
                view.origin,
                f"{name!r} is taken: {why}.",
                f'choose another name, such as "{view.name}_{name}".',
            )
    measures = compile_measures(view, schema, problems)
    if not view.measures:
        problems.note(f"{place}.measures", view.origin, "A view needs a measure.", 'add "n": count().')
    check_expectations(view, keys, measures, problems)
    decorations = compile_decorations(
        pipeline,
        Schema(tuple(keys)),
        [*RESERVED, *PRESENTED, GROUPING, *view.measures, *state_names(measures)],
        problems,
    )
    if len(problems.found) > before or windows is None:
        return None
    return CompiledView(
        pipeline=pipeline.name,
        name=view.name,
        keys=tuple(keys),
        window=view.window,
        windows=windows,
        pane=pane_of(windows, grid.length),
        interval=grid.length,
        sets=sets,
        where=record.selected(where),
        measures=measures,
        expect=list_expectations(view),
        fingerprint="",
        explode=explode,
        decorations=decorations,
    )


def find_key_conflict(view: View, name: str, keys: Sequence[str]) -> str:
    """Say why a column cannot be a key by its name, empty where it can: engines ignore the case of letters."""
    lower, measures = name.lower(), list(view.measures)
    if lower in (*RESERVED, *PRESENTED, GROUPING):
        return f"{name!r} is a name that Seamline uses, in upper or lower case."
    if name in keys:
        return f"The key {name!r} is declared twice."
    owner = next((each for each in measures if lower.startswith(f"{each}__")), None)
    return f"{name!r} could be a column of the state of {owner}." if owner else ""


def state_names(measures: Sequence[CompiledMeasure]) -> list[str]:
    """List the columns of the measures' states, and of totals that no DECIMAL holds."""
    sources = [source for each in measures for source in each.sources]
    return [name for each in sources for name in (*(part.name for part in each.parts), each.beyond) if name]


def compile_count_window(view: View, problems: Problems) -> list[Field]:
    """Return the key that numbers count windows; note what such a view cannot have beside them."""
    for setting, why in (
        ("explode", "the items of a record have no order of their own"),
        ("grouping_sets", "each set would count other events"),
    ):
        if getattr(view, setting):
            problems.note(
                f"views[{view.name}].{setting}",
                view.origin,
                f"A view with CountWindow cannot have {setting}: {why}.",
                f"remove {setting}, or use a window in time.",
            )
    if NUMBER in [*view.keys, *view.measures]:
        problems.note(
            f"views[{view.name}].keys",
            view.origin,
            f"{NUMBER!r} is the column that numbers count windows.",
            "rename your column.",
        )
    return [Field(NUMBER, BIGINT, nullable=False)]


def pane_of(windows: Windows, interval: timedelta) -> timedelta:
    """Return the span in which rows are summed up: sessions and what has no window know the interval only."""
    if isinstance(windows, Ruling):
        return windows.pane(interval // MICROSECOND) * MICROSECOND
    return interval
