"""Parts of nested values: members of a STRUCT, items of an ARRAY, values of a MAP."""

from __future__ import annotations

from dataclasses import replace

from seamline.model.expressions.terms import (
    RANGES,
    Guard,
    Term,
    build_expression_error,
    columns_of,
    refuse_null_constant,
    require_infallible_term,
)
from seamline.model.types.schema import BOOLEAN, INT, SqlType, TypeKind

INEXACT = (TypeKind.DOUBLE, TypeKind.STRUCT, TypeKind.ARRAY, TypeKind.MAP)


def build_part_term(whole: Term, type_: SqlType | None, spark: str, duckdb: str) -> Term:
    """Make the term of a part: NULL where it, or what it is a part of, is not there."""
    assert type_ is not None
    bounds = RANGES.get(type_)
    return replace(whole, type=type_, spark=spark, duckdb=duckdb, nullable=True, bounds=bounds, literal=None)


def kind_of(term: Term) -> TypeKind | None:
    """Return the family of a term's type."""
    return term.type.kind if term.type else None


def compile_member_access(whole: Term, name: str) -> Term:
    """Compile ``a.b``."""
    if whole.type is None or kind_of(whole) is not TypeKind.STRUCT:
        raise build_expression_error(
            f"{whole.spark}.{name}: {whole.spark} is {whole.type or 'NULL'} and has no named parts.",
            "only a STRUCT has them; a MAP's value is a['key'], an ARRAY's item a[0].",
        )
    field = next((each for each in whole.type.fields if each.name.lower() == name.lower()), None)
    if field is None:
        names = ", ".join(each.name for each in whole.type.fields)
        raise build_expression_error(f"{whole.spark} has no part {name!r}.", f"it has {names}.")
    return build_part_term(
        whole, field.type, f"{whole.spark}.`{field.name}`", f'({whole.duckdb})."{field.name}"'
    )


def compile_item_access(whole: Term, index: Term) -> Term:
    """Compile ``a[0]``, which fails beyond the array's end as in Spark, and ``m['key']``."""
    if kind_of(whole) is TypeKind.MAP:
        return compile_map_value(whole, index, f"{whole.spark}[{index.spark}]")
    place = require_array_index(whole, index, least=0)
    beyond = f"(len({whole.duckdb}) <= {place})"
    spark = f"{whole.spark}[{index.spark}]"
    found = compile_array_element(whole, place + 1, spark)
    if whole.bounds and place < whole.bounds[0]:
        return found
    return replace(found, guards=(*found.guards, Guard(beyond, f"{spark} is beyond the array's end")))


def compile_array_get(whole: Term, index: Term) -> Term:
    """Compile get(array, 0): NULL beyond the array's end."""
    return compile_array_element(
        whole, require_array_index(whole, index, least=0) + 1, f"get({whole.spark}, {index.spark})"
    )


def element_at(whole: Term, index: Term) -> Term:
    """Compile element_at(map, 'key') and element_at(array, 1), which fails beyond the array's end."""
    spark = f"element_at({whole.spark}, {index.spark})"
    if kind_of(whole) is TypeKind.MAP:
        return compile_map_value(whole, index, spark)
    place = require_array_index(whole, index, least=1)
    found = compile_array_element(whole, place, spark)
    if whole.bounds and place <= whole.bounds[0]:
        return found
    beyond = Guard(f"(len({whole.duckdb}) < {place})", f"{spark} is beyond the array's end")
    return replace(found, guards=(*found.guards, beyond))


def try_element_at(whole: Term, index: Term) -> Term:
    """Compile try_element_at(array, 1) and (map, 'key'): NULL where there is none."""
    spark = f"try_element_at({whole.spark}, {index.spark})"
    if kind_of(whole) is TypeKind.MAP:
        return compile_map_value(whole, index, spark)
    return compile_array_element(whole, require_array_index(whole, index, least=1), spark)


def require_array_index(whole: Term, index: Term, *, least: int) -> int:
    """Require an array and a literal place in it."""
    if kind_of(whole) is not TypeKind.ARRAY:
        raise build_expression_error(
            f"{whole.spark} is {whole.type or 'NULL'}, not an ARRAY.", "only an ARRAY or a MAP has items."
        )
    if not isinstance(index.literal, int) or isinstance(index.literal, bool) or index.literal < least:
        raise build_expression_error(
            f"{index.spark} is not a literal index of {whole.spark}.",
            f"write a whole number of {least} or more.",
        )
    return index.literal


def compile_array_element(whole: Term, place: int, spark: str) -> Term:
    """Take an array's item by its place from 1; NULL beyond the end."""
    assert whole.type is not None
    return build_part_term(whole, whole.type.element, spark, f"({whole.duckdb})[{place}]")


def compile_map_value(whole: Term, key: Term, spark: str) -> Term:
    """Take a map's value; NULL where the key is not there."""
    assert whole.type is not None
    if not isinstance(key.literal, str):
        raise build_expression_error(
            f"{key.spark} is not a literal key of {whole.spark}.", "write the key as text: m['key']."
        )
    return build_part_term(whole, whole.type.element, spark, f"({whole.duckdb})[{key.duckdb}]")


def compile_size(whole: Term) -> Term:
    """Compile size of an array or a map; NULL of NULL."""
    lengths = {TypeKind.ARRAY: "len", TypeKind.MAP: "cardinality"}
    kind = kind_of(whole)
    if kind not in lengths:
        raise build_expression_error(
            f"{whole.spark} is {whole.type or 'NULL'}, not an ARRAY or MAP.", "length takes text."
        )
    made = f"CAST({lengths[kind]}({whole.duckdb}) AS INTEGER)"
    return replace(build_part_term(whole, INT, f"size({whole.spark})", made), nullable=whole.nullable)


def array_contains(whole: Term, sought: Term) -> Term:
    """Compile array_contains; NULL where a NULL among the items might have been it."""
    if whole.type is None or kind_of(whole) is not TypeKind.ARRAY or kind_of(sought) in INEXACT:
        raise build_expression_error(
            f"array_contains looks for {sought.type or 'NULL'} in {whole.type or 'NULL'}.",
            "it takes an ARRAY and text, a whole number, a DECIMAL, a day, an instant or a BOOLEAN.",
        )
    if refuse_null_constant(sought).type != whole.type.element:
        raise build_expression_error(
            f"{whole.spark} is {whole.type}; {sought.spark} is {sought.type}.", "cast what is sought."
        )
    require_infallible_term(sought, "array_contains")
    items, one = whole.duckdb, sought.duckdb
    unknown = f"{items} IS NULL OR {one} IS NULL"
    duckdb = (
        f"(CASE WHEN {unknown} THEN NULL WHEN list_contains({items}, {one}) THEN TRUE"
        f" WHEN len({items}) <> list_count({items}) THEN NULL ELSE FALSE END)"
    )
    return Term(
        BOOLEAN,
        f"array_contains({whole.spark}, {sought.spark})",
        duckdb,
        nullable=True,
        columns=columns_of(whole, sought),
        guards=whole.guards,
    )
