"""Records that name their writer's schema: its number in a registry stands before what was written by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.formats.decoded import DecodedReader
from seamline.kernel.formats.exact import ExactJsonReader
from seamline.kernel.formats.json import JsonReader
from seamline.kernel.formats.reader import Reader, decode_utf8_column
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.tables.schemas.kept_schemas import KeptSchemas
from seamline.model.schemas.wire_format import HEADER, read_message_path, read_schema_id
from seamline.model.schemas.writer_schema import (
    AVRO,
    INCOMPATIBLE,
    UNKNOWN,
    Incompatible,
    WriterSchema,
    require_kind,
)

if TYPE_CHECKING:
    from seamline.kernel.formats.writers import Locate

HEADLESS = "does not begin with 0 and the number of a schema"
SHOWN = 300
LONGEST = 2**31 - 1
"""Bytes of the longest value. Arrow's slice without an end overflows for each even number of values."""
Judged = tuple[str | None, str | None, str | None]
"""A record as text, what is wrong with it, and for which reason if that is about its schema."""


@dataclass(frozen=True)
class Refused:
    """A schema by which no record can be read."""

    reason: str
    """Why."""
    detail: str
    """More about it."""


class RegisteredReader(Reader):
    """Reads each record by the schema that it names.

    ``kept`` has the schemas; without one, as in a scenario, every number means the definition's own.
    """

    kept: KeptSchemas | None = None

    def open_writer(self, schema: WriterSchema | None) -> Any:
        """Make what reads the records of a schema, None for the definition's own; Incompatible."""
        raise NotImplementedError

    def find_writers(self, ids: Iterable[int]) -> dict[int, Any]:
        """Find what reads the records of each schema; SchemasWanted."""
        ids = sorted(ids)
        if self.kept is None:
            return dict.fromkeys(ids, self.open_writer(None))
        writers: dict[int, Any] = {}
        for id, schema in self.kept.find(self.format.registry, ids).items():
            if schema is None:
                writers[id] = Refused(UNKNOWN, f"schema {id} is not in {self.format.registry}")
                continue
            try:
                writers[id] = self.open_writer(schema)
            except Incompatible as error:
                writers[id] = Refused(INCOMPATIBLE, f"schema {id} {error}"[:SHOWN])
        return writers

    def refused_sql(self) -> Iterator[tuple[str, str, str]]:
        for reason in (UNKNOWN, INCOMPATIBLE):
            yield f"_schema = {quote_literal(reason)}", reason, "_trouble"


class RegisteredDecodedReader(RegisteredReader, DecodedReader):
    """What registered records of binary formats have in common: ``open_writer`` makes what decodes a value."""

    empty = True

    def columns(self, values: pa.ChunkedArray) -> Mapping[str, pa.Array]:
        found = values.to_pylist()
        ids = [None if value is None else read_schema_id(value) for value in found]
        writers = self.find_writers({id for id in ids if id is not None})
        read = [
            (None, None, None) if value is None else self.judge_value(id, writers, value)
            for id, value in zip(ids, found, strict=True)
        ]
        names = ("_text", "_trouble", "_schema")
        return {name: pa.array([each[at] for each in read], pa.string()) for at, name in enumerate(names)}

    def judge_value(self, id: int | None, writers: Mapping[int, Any], value: bytes) -> Judged:
        """Read a value by the schema that it names."""
        if id is None:
            return "", HEADLESS, None
        writer = writers[id]
        if isinstance(writer, Refused):
            return "", writer.detail, writer.reason
        try:
            return self.encode_record(writer(value)), None, None
        except Incompatible as error:
            return "", f"schema {id}: {error}"[:SHOWN], INCOMPATIBLE
        except Exception as error:  # noqa: BLE001 - the decoders raise whatever the bytes lead them to
            return "", f"{type(error).__name__}: {error}"[:200], None


class RegisteredAvroReader(RegisteredDecodedReader):
    """Resolves what was written by the writer's schema into the definition's, by the rules of Avro."""

    def open_writer(self, schema: WriterSchema | None) -> Callable[[bytes], Mapping[str, Any]]:
        from seamline.kernel.formats.writers import open_avro_writer

        find = open_avro_writer(self.format, schema or WriterSchema(0, AVRO, self.format.schema))
        wanted = {field.name for field in self.schema.fields}
        return lambda value: {name: each for name, each in find(value).items() if name in wanted}


class RegisteredProtobufReader(RegisteredDecodedReader):
    """Reads a message by the numbers of its fields, if it is of the definition's type and each of them fits."""

    def open_writer(self, schema: WriterSchema | None) -> Callable[[bytes], Mapping[str, Any]]:
        from seamline.kernel.formats.protobuf import ProtobufReader
        from seamline.kernel.formats.writers import open_protobuf_writer

        plain = ProtobufReader(self.format, self.schema, self.added)
        locate: Locate = (
            open_protobuf_writer(self.format, schema) if schema else lambda value: read_message_path(value)[1]
        )
        return lambda value: plain.decode(value[locate(value) :])


class RegisteredJson(RegisteredReader):
    """What registered records of JSON have in common: the text begins behind the header."""

    def open_writer(self, schema: WriterSchema | None) -> None:
        if schema:
            require_kind(self.format.kind, schema)

    def columns(self, values: pa.ChunkedArray) -> Mapping[str, pa.Array]:
        heads = pc.binary_slice(values, 0, HEADER)
        known = pc.unique(heads)
        ids = [None if head is None else read_schema_id(head) for head in known.to_pylist()]
        writers = self.find_writers({id for id in ids if id is not None})
        read = [self.judge_header(id, writers) for id in ids]
        at = pc.index_in(heads, known)
        trouble, reason = (pa.array([each[n] for each in read], pa.string()).take(at) for n in (0, 1))
        text = decode_utf8_column(pc.binary_slice(values, HEADER, LONGEST))
        sound = pc.fill_null(pc.is_null(trouble), True)
        return {"_text": pc.if_else(sound, text, ""), "_trouble": trouble, "_schema": reason}

    def judge_header(self, id: int | None, writers: Mapping[int, Any]) -> tuple[str | None, str | None]:
        """Say what is wrong with a header, and for which reason if that is about its schema."""
        if id is None:
            return HEADLESS, None
        refused = writers[id]
        return (refused.detail, refused.reason) if refused else (None, None)

    def malformed_sql(self) -> Iterator[tuple[str, str]]:
        yield "_trouble IS NOT NULL", "_trouble"
        yield from super().malformed_sql()


class RegisteredJsonReader(RegisteredJson, JsonReader):
    """Reads JSON behind a header."""


class RegisteredExactJsonReader(RegisteredJson, ExactJsonReader):
    """Reads JSON behind a header, numbers by their digits."""


READERS: Mapping[tuple[str, bool], type[RegisteredReader]] = {
    ("avro", False): RegisteredAvroReader,
    ("avro", True): RegisteredAvroReader,
    ("protobuf", False): RegisteredProtobufReader,
    ("protobuf", True): RegisteredProtobufReader,
    ("json", False): RegisteredJsonReader,
    ("json", True): RegisteredExactJsonReader,
}
"""By the format's kind, and whether numbers are read by their digits."""
