"""Readers: what the kernel does with the bytes of a record, one module for each format."""

from __future__ import annotations

from importlib import import_module

from seamline.kernel.formats.reader import Reader
from seamline.lake.tables.schemas.kept_schemas import KeptSchemas
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.formats import registry_of

__all__ = ["Reader", "open_readers"]
READERS = {
    "avro": "AvroReader",
    "csv": "CsvReader",
    "json": "JsonReader",
    "protobuf": "ProtobufReader",
    "text": "TextReader",
}
CHANGES = {
    ("json", False): ("deletions", "ChangeReader"),
    ("json", True): ("deletions", "ExactChangeReader"),
    ("debezium", False): ("debezium", "DebeziumReader"),
    ("debezium", True): ("debezium", "ExactDebeziumReader"),
}
"""Modules and readers where rows say that a row was deleted; by the kind, and whether numbers are read exactly."""


def open_readers(pipeline: CompiledPipeline, kept: KeptSchemas | None = None) -> tuple[Reader, ...]:
    """Open the reader of each source of a pipeline, in their order; ``kept`` has the writers' schemas."""
    return tuple(open_reader(each, kept) for each in pipeline.by_source)


def open_reader(pipeline: CompiledPipeline, kept: KeptSchemas | None = None) -> Reader:
    """Open the reader of the format of one source; only its module and the library behind it are imported."""
    kind, deletion = pipeline.format.kind, pipeline.record.deletion
    if deletion and (kind, pipeline.exact) in CHANGES and not registry_of(pipeline.format):
        module, name = CHANGES[kind, pipeline.exact]
        made: Reader = getattr(import_module(f"{__name__}.{module}"), name)(
            pipeline.format, pipeline.record.parsed, len(pipeline.record.added)
        )
        made.deletion, made.exact = deletion, pipeline.exact
        return made
    if registry_of(pipeline.format):
        from seamline.kernel.formats.registered import READERS as REGISTERED

        reader = REGISTERED[kind, pipeline.exact](
            pipeline.format, pipeline.record.parsed, len(pipeline.record.added)
        )
        reader.kept, reader.exact = kept, pipeline.exact
        return reader
    if kind == "json" and pipeline.exact:
        from seamline.kernel.formats.exact import ExactJsonReader

        return ExactJsonReader(pipeline.format, pipeline.record.parsed, len(pipeline.record.added))
    made = getattr(import_module(f"{__name__}.{kind}"), READERS[kind])(
        pipeline.format, pipeline.record.parsed, len(pipeline.record.added)
    )
    made.exact = pipeline.exact
    return made
