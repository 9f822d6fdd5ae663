"""Records that are a row of texts, one cell for each column: how a cell becomes a value."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.kernel.formats.decimals import decimal_sql
from seamline.kernel.formats.reader import SHOWN, Reader, cast_text_sql
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.states import quote_identifier
from seamline.model.types.schema import Field, TypeKind

WHOLE = r"[+-]?\d+"
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"


class CellReader(Reader):
    """Types the list ``_cells``, in which a missing value is NULL; ``_trouble`` says why there is no list."""

    def value_sql(self, field: Field, at: int) -> str:
        text = f"_cells[{at}]"
        tried = cast_text_sql(field.type, text)
        match field.type.kind:
            case TypeKind.STRING:
                return text
            case TypeKind.INT | TypeKind.BIGINT:
                return f"CASE WHEN regexp_full_match({text}, '{WHOLE}') THEN {tried} END"
            case TypeKind.DOUBLE:
                spelled = f"regexp_full_match({text}, '{NUMBER}')"
                return f"CASE WHEN {spelled} AND isfinite({tried}) THEN {tried} END"
            case TypeKind.BOOLEAN:
                return f"CASE {text} WHEN 'true' THEN true WHEN 'false' THEN false END"
            case TypeKind.DECIMAL if self.exact:
                return decimal_sql(field.type, text)
        return tried

    def malformed_sql(self) -> Iterator[tuple[str, str]]:
        yield "_cells IS NULL", f"coalesce(_trouble || ': ', '') || left(_text, {SHOWN})"

    def absent_sql(self, field: Field, at: int, *, null: bool) -> tuple[str, str]:
        return f"_cells[{at}] IS NULL" if null else "false", "''"

    def mistyped_sql(self, field: Field, at: int) -> tuple[str, str]:
        said = f"left(_cells[{at}], {SHOWN}) || {quote_literal(f' is no {field.type.spark}')}"
        return f"{quote_identifier(field.name)} IS NULL AND _cells[{at}] IS NOT NULL", said
