"""Protobuf's schemas as registries have them, as text: the messages and enums of a file, and their fields."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\w.]+|[-+{}()\[\]<>=;,:/])""", re.DOTALL
)
LABELS = ("optional", "required", "repeated")
OPEN, CLOSE = {"{": "}", "(": ")", "[": "]"}, {"}", ")", "]"}


@dataclass(frozen=True)
class ProtoField:
    """A field of a message."""

    name: str
    """Its name."""
    number: int
    """What the bytes know it by."""
    type: str
    """A scalar's name, or the name of a message or an enum as the text has it."""
    repeated: bool = False
    """Whether it has several values; a map has."""
    required: bool = False
    """Whether a reader of this schema takes no message without it."""


@dataclass
class ProtoMessage:
    """A message, or an enum, which has no fields."""

    name: str
    """Its full name."""
    enum: bool = False
    """Whether it is an enum."""
    fields: dict[int, ProtoField] = field(default_factory=dict)
    """Its fields, by number."""
    messages: list[str] = field(default_factory=list)
    """The full names of the messages within it, in their order."""


@dataclass
class ProtoFile:
    """What a file declares."""

    package: str = ""
    """The package."""
    syntax: str = "proto2"
    """proto2, proto3 or editions."""
    messages: list[str] = field(default_factory=list)
    """The full names of the outermost messages, in their order."""
    types: dict[str, ProtoMessage] = field(default_factory=dict)
    """All messages and enums, by full name."""

    def find_message(self, path: tuple[int, ...]) -> ProtoMessage | None:
        """Find the message at a path of places; None where there is none."""
        names, found = self.messages, None
        for place in path:
            if place >= len(names):
                return None
            found = self.types[names[place]]
            names = found.messages
        return found

    def find_type(self, name: str, within: str) -> ProtoMessage | None:
        """Find what a name means in a message: the nearest one of that name; None where the file has none."""
        if name.startswith("."):
            return self.types.get(name[1:])
        scope = within.split(".") if within else []
        while True:
            if found := self.types.get(".".join([*scope, name])):
                return found
            if not scope:
                return None
            scope.pop()


def parse_proto(text: str) -> ProtoFile:
    """Read the text of a schema; ValueError where it is none."""
    return ProtoReader(text).read()


class ProtoReader:
    """Reads one file; what is neither a message nor an enum is passed over."""

    def __init__(self, text: str) -> None:
        self.tokens = list(split_tokens(text))
        self.at, self.file = 0, ProtoFile()

    def read(self) -> ProtoFile:
        """Read the file."""
        while self.at < len(self.tokens):
            match self.take():
                case "syntax" | "edition" as word:
                    self.expect("=")
                    said = self.take().strip("\"'")
                    self.file.syntax = said if word == "syntax" else "editions"
                    self.skip_statement()
                case "package":
                    self.file.package = self.take()
                    self.skip_statement()
                case "message":
                    self.file.messages.append(self.read_message(self.file.package))
                case "enum":
                    self.read_enum(self.file.package)
                case ";":
                    pass
                case _:
                    self.skip_statement()
        return self.file

    def take(self) -> str:
        """Take the next token; ValueError at the end."""
        if self.at >= len(self.tokens):
            raise ValueError("ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, wanted: str) -> None:
        """Take a token that must be there."""
        if (found := self.take()) != wanted:
            raise ValueError(f"has {found!r} where {wanted!r} must be")

    def skip_statement(self) -> None:
        """Pass over the rest of a statement, with all that is in braces."""
        while (found := self.take()) != ";":
            if found == "{":
                self.skip_block("}")
                return
            if found in OPEN:
                self.skip_block(OPEN[found])

    def skip_block(self, end: str) -> None:
        """Pass over what is in brackets that are open."""
        while (found := self.take()) != end:
            if found in OPEN:
                self.skip_block(OPEN[found])
            elif found in CLOSE:
                raise ValueError(f"has {found!r} where {end!r} must be")

    def read_message(self, scope: str) -> str:
        """Read a message after its keyword, and return its full name."""
        made = self.declare(scope, enum=False)
        self.expect("{")
        self.read_members(made)
        return made.name

    def declare(self, scope: str, *, enum: bool) -> ProtoMessage:
        """Take the name of a type and remember it."""
        made = ProtoMessage(f"{scope}.{self.take()}".lstrip("."), enum)
        self.file.types[made.name] = made
        return made

    def read_enum(self, scope: str) -> None:
        """Read an enum after its keyword."""
        self.declare(scope, enum=True)
        self.expect("{")
        self.skip_block("}")

    def read_members(self, made: ProtoMessage) -> None:
        """Read what is in the braces of a message, or of a choice within it."""
        while (word := self.take()) != "}":
            match word:
                case "message":
                    made.messages.append(self.read_message(made.name))
                case "enum":
                    self.read_enum(made.name)
                case "oneof":
                    self.take()
                    self.expect("{")
                    self.read_members(made)
                case "option" | "reserved" | "extensions" | "extend":
                    self.skip_statement()
                case ";":
                    pass
                case _:
                    self.read_field(made, word)

    def peek(self, ahead: int = 0) -> str:
        """Look at a token that follows."""
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def read_field(self, made: ProtoMessage, word: str) -> None:
        """Read a field whose first word was taken."""
        label = word if word in LABELS else ""
        type = self.take() if label else word
        if type == "map" and self.peek() == "<":
            while (part := self.take()) != ">":
                type += part
            type += ">"
        if type == "group":
            raise ValueError("has a group, which is not supported")
        name = self.take()
        self.expect("=")
        number = int(self.take(), 0)
        made.fields[number] = ProtoField(
            name, number, type, label == "repeated" or type.startswith("map<"), label == "required"
        )
        self.skip_statement()


def split_tokens(text: str) -> list[str]:
    """Split a text into tokens without space and comments; ValueError for what is no token."""
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"has {text[at]!r} where no such letter may be")
        if match[1]:
            found.append(match[1])
        at = match.end()
    return found
