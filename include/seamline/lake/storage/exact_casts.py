"""Casts of columns that others have made: no number becomes a DECIMAL with digits that nobody wrote."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

KEPT = 15
"""Digits of a number that a double preserves, whatever the number; more may be of its own making."""
KEPT_BY_FLOAT = 6


def cast_exactly(values: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Cast as Arrow does, but a double to the DECIMAL that its shortest spelling is.

    ArrowInvalid where that has more digits than a double keeps, or than the DECIMAL has room for; and where doubles
    are parts of what is given, and the parts wanted are DECIMALs.
    """
    if not through_doubles(values.type, wanted):
        return values.cast(wanted)
    if not pa.types.is_decimal(wanted):
        raise pa.ArrowInvalid("the DECIMALs in it are doubles")
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kept = KEPT if pa.types.is_float64(values.type) else KEPT_BY_FLOAT
    texts = (values.cast(pa.float32()) if pa.types.is_float16(values.type) else values).cast(pa.string())
    digits = pc.utf8_trim(pc.replace_substring_regex(texts, r"[-.]|e.*", ""), "0")
    if long := texts.filter(pc.greater(pc.utf8_length(digits), kept)).slice(0, 1).to_pylist():
        raise pa.ArrowInvalid(f"{long[0]} has more than the {kept} digits that a {values.type} keeps")
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:
        odd = next(text for text in pc.unique(texts).to_pylist() if not is_castable(text, wanted))
        raise pa.ArrowInvalid(f"{odd} does not fit") from None


def is_castable(text: str | None, wanted: pa.DataType) -> bool:
    """Return whether a text becomes a value of a type."""
    try:
        pa.scalar(text, pa.string()).cast(wanted)
    except pa.ArrowInvalid:
        return False
    return True


def through_doubles(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a cast would make DECIMALs of doubles, or of parts that are doubles."""
    if pa.types.is_dictionary(given):
        given = given.value_type
    if pa.types.is_decimal(wanted):
        return bool(pa.types.is_floating(given))
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        both = (each for each in wanted if given.get_field_index(each.name) >= 0)
        return any(through_doubles(given.field(each.name).type, each.type) for each in both)
    inside = bool(given.num_fields and wanted.num_fields)
    return inside and through_doubles(given.field(0).type, wanted.field(0).type)
