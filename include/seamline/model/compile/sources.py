"""Several sources in one pipeline: what each would be alone, what they share, and what they may not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from seamline.model.compile.lookups.lookup_join import LookupJoin, list_decorating_lookups
from seamline.model.compile.problems import Problems
from seamline.model.compile.record_rules import Record
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import Source
from seamline.model.definition.windows import CountWindow
from seamline.model.errors import DefinitionError
from seamline.model.types.schema import Field, Schema

STEPS: Mapping[str, object] = {"rules": (), "select": {}, "where": "", "side": {}}
"""What a source says of its records where a pipeline has several, and what it is where nothing is said."""
OF_ONE = ("transform", "transform_schema", "transform_version", "transform_rows")
"""Settings of a pipeline that has one source, for which a source has no word."""
SHARED = ("connection", "dedup_within")
"""Settings of which all sources of a pipeline have the same."""


def has_several(pipeline: Pipeline) -> bool:
    """Return whether a pipeline's sources are a list, in which each has a name."""
    return not isinstance(pipeline.source, Source)


def list_view_sources(view: View) -> tuple[str, ...]:
    """List the names of the sources whose rows a view counts; none where the pipeline has one without a name."""
    return (view.of,) if isinstance(view.of, str) and view.of else tuple(view.of)


def split_process_name(name: str) -> tuple[str, str]:
    """Split what ``View(of=)`` names into a process and a side: ``carts.refunds``; the side of ``emits`` is empty."""
    process, dot, side = name.partition(".")
    # "carts." names no side, and nothing else.
    return process, side or dot


def narrow_to_source(pipeline: Pipeline, source: Source) -> Pipeline:
    """Return the pipeline that has one of the sources alone: its steps, the views of its rows, and of derived ones."""
    steps = {name: getattr(source, name) for name in (*STEPS, "lookups")} | dict.fromkeys(OF_ONE, "")
    derive = [each for each in pipeline.derive if source.name in each.sources]
    names = {source.name, *(each.name for each in derive)}
    views = [
        view
        for view in pipeline.views
        if names & {split_process_name(each)[0] for each in list_view_sources(view)}
    ]
    return replace(pipeline, source=source, derive=derive, views=views, **steps)


def list_narrowed(pipeline: Pipeline) -> tuple[Pipeline, ...]:
    """List the pipelines of each source alone; of one without a name it is the pipeline itself."""
    if not has_several(pipeline):
        return (pipeline,)
    return tuple(narrow_to_source(pipeline, source) for source in pipeline.sources)


def check_unnamed_source(pipeline: Pipeline, problems: Problems) -> None:
    """Note what only one of several sources can say, and views of sources that there are not."""
    source = pipeline.only_source
    for name, nothing in (("name", ""), *STEPS.items(), ("lookups", ())):
        if getattr(source, name) and getattr(source, name) != nothing:
            problems.note(
                f"source.{name}",
                source.origin,
                f"The only source of a pipeline has no {name}=.",
                "remove it, or write source=[KafkaSource(...)] for a pipeline that may get more sources."
                if name == "name"
                else f"move it to {name}= of the pipeline.",
            )
    if pipeline.derive:
        problems.note(
            "derive",
            pipeline.origin,
            "Rows are derived from sources that have names.",
            "write source=[KafkaSource(name=...), ...].",
        )
    for view in pipeline.views:
        if view.of:
            problems.note(
                f"views[{view.name}].of",
                view.origin,
                "The pipeline's source has no name.",
                "remove of=, or name the sources: source=[KafkaSource(name=...)].",
            )


def check_sources(pipeline: Pipeline, problems: Problems) -> bool:
    """Note what several sources may not say together, and return whether they are sources at all."""
    sources, origin = pipeline.sources, pipeline.origin
    if not sources:
        problems.note(
            "source",
            origin,
            "A pipeline needs a source, or a list of sources.",
            'write source=KafkaSource("orders", ...), or a list of sources with names.',
        )
        return False
    names = [source.name for source in sources]
    for source in sources:
        if not source.name:
            problems.note(
                "source.name",
                source.origin,
                "The source has no name, and each of several sources needs one.",
                'write name="orders", for example: View(of=) and Join(left=, right=) take it.',
            )
        elif not problems.check_name("source.name", source.origin, source.name):
            continue
        elif source is not sources[names.index(source.name)]:
            problems.note(
                "source.name", source.origin, f"{source.name!r} is declared twice.", "rename one of them."
            )
        if source.added:
            problems.note(
                f"source[{source.name}].added",
                source.origin,
                "A source of several has no added columns.",
                "declare them in schema=, without NOT NULL: its rows are then validated again.",
            )
        check_steps(pipeline, source, problems)
    check_joined(pipeline, problems)
    check_shared_settings(sources, problems)
    check_topics(sources, problems)
    for name, nothing in (*STEPS.items(), *((each, "") for each in OF_ONE)):
        if getattr(pipeline, name) and getattr(pipeline, name) != nothing:
            problems.note(
                name,
                origin,
                f"{name}= is of a pipeline that has one source.",
                f"move it to {name}= of the source whose records it is about."
                if name in STEPS
                else "a pipeline of several sources has no transform: derive the columns in select=.",
            )
    return True


def check_joined(pipeline: Pipeline, problems: Problems) -> None:
    """Note what a source cannot have whose rows others are derived from."""
    joined = {name for each in pipeline.derive for name in each.sources}
    for view in pipeline.views:
        if isinstance(view.window, CountWindow) and view.window.folded:
            joined.update(list_view_sources(view))
    for source in (each for each in pipeline.sources if each.name in joined):
        if source.event_id and not source.dedup_within:
            problems.note(
                f"source[{source.name}].dedup_within",
                source.origin,
                "Rows are derived from the source, and it has an event_id, but does not say how long copies may come.",
                'a copy would make copies of derived rows: write dedup_within="1 hour", or remove event_id=.',
            )


def check_steps(pipeline: Pipeline, source: Source, problems: Problems) -> None:
    """Note rules of one name, and look-ups that make no row of their source, or that the pipeline has too."""
    names = [rule.name for rule in source.rules]
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.note(
            f"source[{source.name}].rules",
            source.origin,
            f"{name!r} is declared twice.",
            "rename one of them.",
        )
    for lookup in list_decorating_lookups(narrow_to_source(pipeline, source)):
        problems.note(
            f"source[{source.name}].lookups[{lookup.name}]",
            lookup.origin,
            "Nothing uses its columns.",
            "use one in an expression of the source or of its views; one that is shown beside the keys of answers "
            "goes to lookups= of the pipeline.",
        )
    shown = {lookup.name for lookup in pipeline.lookups}
    for lookup in (each for each in source.lookups if each.name in shown):
        problems.note(
            f"source[{source.name}].lookups[{lookup.name}]",
            lookup.origin,
            f"lookups= of the pipeline has {lookup.name!r} too.",
            "rename one of them.",
        )


def check_shared_settings(sources: Sequence[Source], problems: Problems) -> None:
    """Note where sources differ in what all of them must have the same."""
    for name in SHARED:
        # A table needs no connection.
        said = [getattr(each, name) for each in sources if name != "connection" or each.connection]
        if len(set(said)) > 1:
            problems.note(
                f"source.{name}",
                sources[0].origin,
                f"The sources of a pipeline share one {name}, but these have {' and '.join(map(repr, said))}.",
                "declare the same for each.",
            )
    if len({bool(source.event_id) for source in sources}) > 1:
        lacking = ", ".join(source.name for source in sources if not source.event_id)
        problems.note(
            "source.event_id",
            sources[0].origin,
            f"Some sources have an event_id, and {lacking} {'have' if ', ' in lacking else 'has'} none.",
            "declare the columns that identify an event of each, or of none; where nothing does, the record's place "
            "in Kafka: select={'place': \"concat_ws('/', _topic, CAST(_partition AS STRING), "
            "CAST(_offset AS STRING))\"}, event_id=['place'].",
        )


def check_topics(sources: Sequence[Source], problems: Problems) -> None:
    """Note topics that are of two sources: a record is of one."""
    seen: dict[str, str] = {}
    for source in sources:
        for topic in source.topics:
            if seen.setdefault(topic.rstrip("/"), source.name) != source.name:
                problems.note(
                    f"source[{source.name}].topic",
                    source.origin,
                    f"Topic {topic!r} is of source {seen[topic.rstrip('/')]!r} too.",
                    "declare it once: two views may count the rows of one source.",
                )


def locate_problem(field: str, name: str) -> str:
    """Say where in a definition of several sources something is that is wrong with one of them."""
    if field.startswith("source."):
        return f"source[{name}]{field.removeprefix('source')}"
    return f"source[{name}].{field}"


def merge_records(sources: Sequence[Pipeline], records: Sequence[Record], problems: Problems) -> Record:
    """Return the record of all sources: the columns of each, those of one name once."""
    columns: dict[str, tuple[Field, str]] = {}
    for source, record in zip(sources, records, strict=True):
        for each in record.schema.fields:
            known, owner = columns.setdefault(each.name.lower(), (each, source.only_source.name))
            if (known.name, known.type) != (each.name, each.type):
                problems.note(
                    f"source[{source.only_source.name}].schema",
                    source.only_source.origin,
                    f"Column {each.name!r} is {each.type}, but {known.name!r} of source {owner!r} is {known.type}.",
                    "declare the same name and type in both; columns of CSV and text may be named otherwise.",
                )
    sides = {name: condition for record in reversed(records) for name, condition in reversed(record.sides)}
    return Record(
        Schema(tuple(replace(each, nullable=True) for each, _ in columns.values())),
        sides=tuple(sides.items()),
        dedup=any(record.dedup for record in records),
        sources=tuple(source.only_source.name for source in sources),
        flagged=frozenset(each.name for record in records for each in record.flags),
    )


def merge_lookups(
    sources: Sequence[Pipeline], records: Sequence[Record], problems: Problems
) -> tuple[LookupJoin, ...]:
    """List the look-ups of all sources; of one name is one table, of which each version is kept once."""
    known: dict[str, LookupJoin] = {}
    for source, record in zip(sources, records, strict=True):
        for join in record.lookups:
            other = known.setdefault(join.name, join)
            if join.shape != other.shape:
                alike = replace(join, sees=other.sees).shape == other.shape
                with_ = "conditions that see other columns" if alike else "another table, key or columns"
                problems.note(
                    f"source[{source.only_source.name}].lookups[{join.name}]",
                    source.only_source.origin,
                    f"Another source has a look-up {join.name!r} with {with_}.",
                    "rename one of them, or declare the same.",
                )
    return tuple(known.values())


def narrow_record(
    record: Record, names: Sequence[str], records: Mapping[str, Record], derived: Sequence[str]
) -> Record:
    """Return the record that a view of some sources sees: the columns that all of them have.

    DefinitionError for a name that is no source's; ``derived`` are what a view could be of instead.
    """
    if not names or not set(names) <= set(records):
        wrong = next((name for name in names if name not in records), "")
        said = f"There is no source {wrong!r}." if wrong else "The pipeline has several sources."
        if wrong in derived:
            said = f"{wrong!r} names derived rows, and a view of such rows is of nothing else."
        known = ", ".join(filter(None, records))
        if derived:
            known = f"the sources {known}, or derived rows: {', '.join(derived)}"
        raise DefinitionError(said, hint=f"say whose rows the view counts: of= one or more of {known}.")
    if len(set(names)) < len(names):
        raise DefinitionError("A source is named twice.", hint="name each once.")
    common = list[Field]()
    for each in records[names[0]].schema.fields:
        found = [other.field(each.name) for other in (records[name].schema for name in names)]
        if None not in found:
            common.append(replace(each, nullable=any(other.nullable for other in found if other)))
    return replace(record, parsed=Schema(tuple(common)), sources=tuple(names))
