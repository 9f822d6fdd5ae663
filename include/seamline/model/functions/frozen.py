"""Values that nobody can change, in the one form of their type: what functions keep, emit and are given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn

from seamline.model.measures.values import BITS, normalize_stored_value
from seamline.model.time.intervals import EPOCH
from seamline.model.types.schema import STRING, SqlType, TypeKind

NAN = math.nan
EXACT: Mapping[TypeKind, Callable[[Any], Any]] = {
    TypeKind.BINARY: bytes,
    TypeKind.DATE: lambda day: date(day.year, day.month, day.day),
    TypeKind.TIMESTAMP: lambda moment: EPOCH + (moment - EPOCH),
}
"""Makes a value of the class itself of one of a class that is derived from it."""
CLASSES = frozenset({bool, bytes, date, datetime, Decimal})
Freezer = Callable[[Any], Any]
"""Returns a value in the one form of its type; TypeError where the type cannot hold it."""


class FrozenDict(dict[str, Any]):
    """A dict that stays as it is, and may be a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)

    def refuse(self, *_args: object, **_named: object) -> NoReturn:
        """Raise TypeError."""
        raise TypeError("this is a value, which stays as it is: make another one, {**value, ...}")

    __setitem__ = __delitem__ = __ior__ = refuse
    update = setdefault = pop = popitem = clear = refuse


def make_freezer(type: SqlType) -> Freezer:
    """Make what freezes values of a type: an ARRAY is a tuple then, a MAP and a STRUCT a dict that stays as it is."""
    match type.kind:
        case TypeKind.STRING:
            return freeze_text
        case TypeKind.INT | TypeKind.BIGINT:
            return make_integer_freezer(type)
        case TypeKind.DECIMAL:
            return make_decimal_freezer(type)
        case TypeKind.DOUBLE:
            return make_double_freezer(type)
        case TypeKind.ARRAY:
            return make_list_freezer(type)
        case TypeKind.MAP:
            return make_map_freezer(type)
        case TypeKind.STRUCT:
            return make_struct_freezer(type)
    return make_plain_freezer(type)


def freeze_text(value: Any) -> Any:
    """Freeze a text; TypeError for one that has no UTF-8."""
    if value is None:
        return None
    if value.__class__ is not str:
        value = str.__str__(normalize_stored_value(value, STRING))
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise TypeError(f"{value!r} has letters of which there is no UTF-8") from None
    return value


def make_plain_freezer(type: SqlType) -> Freezer:
    """Make the freezer of a type without parts: what users derive from its class becomes that class."""
    exact = EXACT.get(type.kind, lambda value: value)

    def freeze(value: Any) -> Any:
        found = normalize_stored_value(value, type)
        return found if found is None or found.__class__ in CLASSES else exact(found)

    return freeze


def make_integer_freezer(type: SqlType) -> Freezer:
    """Make the freezer of a type of integers."""
    most = 2 ** BITS[type.kind]
    least = -most

    def freeze(value: Any) -> Any:
        if value.__class__ is int and least <= value < most:
            return value
        found = normalize_stored_value(value, type)
        return found if found is None else int.__int__(found)

    return freeze


def make_double_freezer(type: SqlType) -> Freezer:
    """Make the freezer of doubles: there is one NaN, which equals itself as an object does, and one zero."""

    def freeze(value: Any) -> Any:
        found = value if value.__class__ is float else normalize_stored_value(value, type)
        if found is None:
            return None
        return NAN if found != found else found or 0.0

    return freeze


def make_decimal_freezer(type: SqlType) -> Freezer:
    """Make the freezer of a type of decimals: there is one zero, as tables have no other."""
    freeze_any = make_plain_freezer(type)

    def freeze(value: Any) -> Any:
        found = freeze_any(value)
        return found if found or found is None else abs(found)

    return freeze


def make_list_freezer(type: SqlType) -> Freezer:
    """Make the freezer of an ARRAY."""
    assert type.element is not None
    freeze_item = make_freezer(type.element)

    def freeze(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise TypeError(f"{value!r} is not of type {type}")
        return tuple(map(freeze_item, value))

    return freeze


def make_map_freezer(type: SqlType) -> Freezer:
    """Make the freezer of a MAP: of a dict, or of pairs, as tables return it."""
    assert type.element is not None
    freeze_item = make_freezer(type.element)

    def freeze(value: Any) -> Any:
        if value is None:
            return None
        try:
            found = dict(value)
        except (TypeError, ValueError):
            found = {None: None}
        if not all(isinstance(name, str) for name in found):
            raise TypeError(f"{value!r} is not of type {type}")
        # In one order: engines tell maps apart by it, and equal states must be written alike.
        return FrozenDict({freeze_text(name): freeze_item(found[name]) for name in sorted(found)})

    return freeze


def make_struct_freezer(type: SqlType) -> Freezer:
    """Make the freezer of a STRUCT."""
    parts = {field.name: make_freezer(field.type) for field in type.fields}

    def freeze(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, Mapping) or value.keys() != parts.keys():
            raise TypeError(f"{value!r} does not have the fields of {type}")
        return FrozenDict({name: freeze_part(value[name]) for name, freeze_part in parts.items()})

    return freeze
