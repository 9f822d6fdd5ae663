"""How the bytes of a record are read: one small type for each format, with its options."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from seamline.model.definition.debezium import Debezium
from seamline.model.definition.format_base import Format, check_flat, check_registry, require_record_columns
from seamline.model.errors import DefinitionError
from seamline.model.types.schema import Schema

ONLY_PYTHON = re.compile(r"\(\?(?:=|!|<=|<!|P=|\(|>)|(?<!\\)(?:\\\\)*\\[1-9]|[*+?}]\+")


@dataclass(frozen=True)
class Json(Format):
    """One JSON object; columns by name, other members are left alone."""

    kind: ClassVar[str] = "json"
    textual: ClassVar[bool] = True
    registry: str = ""
    """The Airflow connection of a schema registry, by whose numbers records name their schemas; empty for none."""

    def check(self, schema: Schema) -> None:
        check_registry(self.registry)


@dataclass(frozen=True)
class Csv(Format):
    """One line of cells in the order of the columns, without a header."""

    kind: ClassVar[str] = "csv"
    textual: ClassVar[bool] = True
    delimiter: str = ","
    """The one character between two cells."""
    quote: str = '"'
    """The one character around a cell that contains a delimiter; twice in a row it is itself."""
    null: str = ""
    """The text of a cell that is NULL; by default the empty one."""

    def check(self, schema: Schema) -> None:
        for name, letter in (("delimiter", self.delimiter), ("quote", self.quote)):
            if len(letter) != 1 or letter in "\r\n":
                raise DefinitionError(
                    f"{letter!r} is not a valid {name}.", hint="use one character.", field=name
                )
        if self.delimiter == self.quote:
            raise DefinitionError(
                f"{self.quote!r} is both delimiter and quote.", hint="use two characters.", field="quote"
            )
        check_flat(schema)


@dataclass(frozen=True)
class Text(Format):
    """Text that matches a pattern as a whole; its named groups are the columns.

    RE2 reads the pattern: its time grows with the length of the text and never faster.
    """

    kind: ClassVar[str] = "text"
    textual: ClassVar[bool] = True
    pattern: str = ""
    """A regular expression with a group ``(?P<name>...)`` for each column; an empty group is NULL."""

    def check(self, schema: Schema) -> None:
        try:
            found = re.compile(self.pattern)
        except re.error as error:
            raise DefinitionError(
                f"The pattern cannot be read: {error}.",
                hint="write a regular expression with groups such as (?P<path>[^ ]+).",
                field="pattern",
            ) from None
        if only := ONLY_PYTHON.search(self.pattern):
            raise DefinitionError(
                f"The pattern contains {only[0]!r}, which RE2 does not support.",
                hint="remove look-around, references to groups and possessive repeats.",
                field="pattern",
            )
        names = [field.name for field in schema.fields]
        if set(found.groupindex) != set(names):
            odd = sorted(set(found.groupindex) ^ set(names))
            raise DefinitionError(
                f"Groups and columns differ in {', '.join(odd) or 'names'}.",
                hint=f"declare a group (?P<name>...) for each of {', '.join(names)} and for no other name.",
                field="pattern",
            )
        check_flat(schema)


@dataclass(frozen=True)
class Avro(Format):
    """One record in Avro's plain binary encoding."""

    kind: ClassVar[str] = "avro"
    schema: str = ""
    """The schema, as JSON text: the writer's own, or with a registry the one that all writers' are read as."""
    confluent: bool = False
    """Whether five bytes (0 and a schema number) stand before each record, as Confluent's clients put them; they are
    passed over.
    """
    registry: str = ""
    """The Airflow connection of a schema registry that has each record's own schema; empty for none."""

    def check(self, schema: Schema) -> None:
        from fastavro import parse_schema

        check_registry(self.registry)
        if self.registry and self.confluent:
            raise DefinitionError(
                "Avro has both confluent=True and a registry.",
                hint="leave confluent out: with a registry the five bytes say by which schema a record was written.",
                field="confluent",
            )
        try:
            parsed = parse_schema(json.loads(self.schema))
        except Exception as error:  # noqa: BLE001 - the parser has no common error
            raise DefinitionError(
                f"The Avro schema cannot be read: {type(error).__name__}: {error}.",
                hint="pass the JSON text of a record schema.",
                field="schema",
            ) from None
        if not isinstance(parsed, dict) or parsed.get("type") != "record":
            raise DefinitionError(
                "The Avro schema is not a record.",
                hint="use a record: its fields are columns.",
                field="schema",
            )
        require_record_columns(schema, [each["name"] for each in parsed["fields"]], "the Avro schema")
        if self.registry:
            check_avro_defaults(parsed["fields"])


def check_avro_defaults(fields: Sequence[Mapping[str, Any]]) -> None:
    """Refuse defaults of Avro that would be read as something else where a writer's schema lacks the field."""
    for each in fields:
        plain = each["type"][0] if isinstance(each["type"], list) else each["type"]
        named = plain.get("logicalType", plain["type"]) if isinstance(plain, dict) else plain
        if each.get("default") is not None and (named in ("bytes", "fixed") or "logicalType" in plain):
            raise DefinitionError(
                f"The Avro field {each['name']!r} has a default that is bytes or of a logical type.",
                hint="make the field optional: a union with null first, and null as its default.",
                field="schema",
            )


@dataclass(frozen=True)
class Protobuf(Format):
    """One message of protobuf.

    Made by ``protobuf(file, message)``: the definition carries the descriptor and outlives the file.
    """

    kind: ClassVar[str] = "protobuf"
    descriptor: str = ""
    """A FileDescriptorSet, in base64."""
    message: str = ""
    """The full name of the message's type."""
    registry: str = ""
    """The Airflow connection of a schema registry that has each record's own schema; empty for none."""

    @property
    def type(self) -> Any:
        """Find the class of the message; DefinitionError where there is none."""
        return message_class(self.descriptor, self.message)

    def check(self, schema: Schema) -> None:
        check_registry(self.registry)
        require_record_columns(schema, list(self.type.DESCRIPTOR.fields_by_name), self.message)


@lru_cache(maxsize=64)
def message_class(descriptor: str, message: str) -> Any:
    """Make the class of a message from a FileDescriptorSet in base64; DefinitionError where there is none."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError

    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(descriptor, validate=True)).file
        for file in files:
            pool.Add(file)
        names = [f"{file.package}.{each.name}".lstrip(".") for file in files for each in file.message_type]
        found = pool.FindMessageTypeByName(message)
    except KeyError:
        found = None
    except (DecodeError, ValueError, TypeError) as error:
        raise DefinitionError(
            f"The descriptor cannot be read: {error}.",
            hint="create it with protoc --include_imports --descriptor_set_out=FILE.",
            field="descriptor",
        ) from None
    if found is None:
        raise DefinitionError(
            f"The descriptor has no message {message!r}.",
            hint=f"it has {', '.join(sorted(names)) or 'none'}.",
            field="message",
        )
    return message_factory.GetMessageClass(found)


def protobuf(file: str | Path, message: str, registry: str = "") -> Protobuf:
    """Read a descriptor file and choose a message; DefinitionError where there is no such file.

    With a ``registry``, an Airflow connection, each record says by which schema it was written.
    """
    try:
        raw = Path(file).read_bytes()
    except (OSError, TypeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise DefinitionError(
            f"The descriptor {str(file)!r} cannot be read: {why}.",
            hint='name it relative to the definition: Path(__file__).with_name("orders.desc").',
            field="source.format",
        ) from None
    return Protobuf(base64.b64encode(raw).decode(), message, registry)


FORMATS: tuple[type[Format], ...] = (Json, Csv, Text, Avro, Protobuf, Debezium)
BY_NAME: dict[str, Callable[[], Format]] = {"json": Json, "csv": Csv, "debezium": Debezium}


def format_of(declared: str | Format) -> Format:
    """Return a format by its declaration; DefinitionError where there is none of that name."""
    if isinstance(declared, Format):
        return declared
    if declared in BY_NAME:
        return BY_NAME[declared]()
    needs = {"text": "Text(pattern=...)", "avro": "Avro(schema=...)", "protobuf": "protobuf(file, message)"}
    if declared in needs:
        raise DefinitionError(f"Format {declared!r} needs options.", hint=f"write format={needs[declared]}.")
    raise DefinitionError(
        f"Format {declared!r} is not supported.",
        hint='use "json", "csv", Json(...), Csv(...), Text(...), Avro(...), protobuf(...) or Debezium(...).',
    )


def registry_of(format: str | Format) -> str:
    """Return the connection of a format's registry; empty for none."""
    return str(getattr(format, "registry", ""))
