"""Walk the syntax tree by an allow-list: what is not on it is refused."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from seamline.model.expressions import conditions, parts, terms
from seamline.model.expressions.arithmetic import compile_arithmetic, compile_negation
from seamline.model.expressions.casts import compile_cast
from seamline.model.expressions.coercion import parse_day, parse_instant
from seamline.model.expressions.days import add_units, compile_day_arithmetic, count_units, shift_by_span
from seamline.model.expressions.functions import compile_function_call
from seamline.model.expressions.grammar import read
from seamline.model.expressions.literals import is_decimal, negate_literal
from seamline.model.expressions.refused import REFUSED
from seamline.model.expressions.regexes import regexp_like
from seamline.model.expressions.spans import is_span, read_span
from seamline.model.expressions.terms import RANGES, Expression, Term, build_expression_error
from seamline.model.expressions.texts import compile_concat, compile_trim
from seamline.model.expressions.type_names import read_type
from seamline.model.types.schema import DATE, TIMESTAMP, Schema

ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div"}
COMPARISON = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
LOGIC = {exp.And: "AND", exp.Or: "OR"}
UNIT_FUNCTIONS = {
    **dict.fromkeys(("dateadd", "date_add", "timestampadd"), add_units),
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff", "timediff"), count_units),
}
"""Functions whose first argument is a unit, such as HOUR."""
MOST_SQL = 300_000  # DuckDB binds so many characters in half a second.
HINTS: dict[type[exp.Expr], str] = {
    exp.Interval: "add it to a DATE or a TIMESTAMP: t + INTERVAL 5 MINUTES.",
    exp.Subquery: "an expression is of one record; join with a look-up instead.",
    exp.Select: "an expression is of one record; join with a look-up instead.",
    exp.Window: "an expression is of one record; a view's window and measures do this.",
    exp.Alias: "leave the alias out: names come from the definition.",
    exp.ILike: REFUSED["ilike"],
    exp.Concat: "write one literal; a quote inside is \\' or stands between double quotes.",
    exp.Star: "name the columns.",
}


def compile_expression(text: str, schema: Schema) -> Expression:
    """Compile Spark SQL over a schema's columns; ExpressionError for whatever cannot be made equal."""
    term = Compiler(schema).term(read(text))
    if term.type is None:
        raise build_expression_error(f"{text!r} is always NULL.", "cast it to a type: CAST(NULL AS STRING).")
    guards = tuple(dict.fromkeys(term.guards))
    return Expression(text, term.spark, term.duckdb, term.type, term.columns, guards)


class Compiler:
    """Compiles nodes over one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def term(self, node: exp.Expr) -> Term:
        """Compile a node of any kind; functions that repeat their argument grow by as much at each level."""
        found = self.compile(node)
        if len(found.duckdb) > MOST_SQL:
            said = f"{node.sql(dialect='spark')[:200]!r} becomes more than {MOST_SQL:,} characters of SQL."
            raise build_expression_error(said, "nest fewer calls: give an inner one a column by transform=.")
        return found

    def compile(self, node: exp.Expr) -> Term:
        """Compile a node of any kind."""
        kind = type(node)
        if kind in ARITHMETIC:
            return self.arithmetic(node, ARITHMETIC[kind])
        if kind in COMPARISON:
            return conditions.compile_comparison(COMPARISON[kind], *self.sides(node))
        if kind in LOGIC:
            return conditions.compile_and_or(LOGIC[kind], *self.sides(node))
        form = FORMS.get(kind)
        if form is None:
            hint = HINTS.get(kind, "docs/expressions.md lists the supported forms.")
            raise build_expression_error(
                f"{node.sql(dialect='spark')!r} is not supported in an expression.", hint
            )
        return form(self, node)

    def sides(self, node: exp.Expr) -> tuple[Term, Term]:
        """Compile both sides of an operator."""
        return self.term(node.this), self.term(node.expression)

    def arithmetic(self, node: exp.Expr, operator: str) -> Term:
        """Compile an operator of numbers, or of a day or an instant with what is added to it."""
        left, right = node.this, node.expression
        if operator in ("+", "-") and is_span(right) and not is_span(left):
            moment, span = self.term(left), read_span(right)
            spark = f"({moment.spark} {operator} {span.spark})"
            return shift_by_span(moment, span, 1 if operator == "+" else -1, spark)
        if operator == "+" and is_span(left) and not is_span(right):
            moment, span = self.term(right), read_span(left)
            return shift_by_span(moment, span, 1, f"({moment.spark} + {span.spark})")
        one, two = self.sides(node)
        if DATE in (one.type, two.type) or one.type == two.type == TIMESTAMP:
            return compile_day_arithmetic(operator, one, two)
        return compile_arithmetic(operator, one, two)

    def column(self, node: exp.Expr) -> Term:
        """Find a column in the schema, and the part of it that the names behind it lead to."""
        names = [node.args[each].name for each in ("catalog", "db", "table") if node.args.get(each)]
        first, *others = [*names, node.name]
        field = self.schema.field(first)
        if field is None:
            raise self.unknown(node, first)
        term = Term(
            field.type,
            f"`{field.within}`.`{field.name}`" if field.within else f"`{field.name}`",
            f'("{field.within}")."{field.name}"' if field.within else f'"{field.name}"',
            field.nullable,
            frozenset({field.within or field.name}),
            bounds=RANGES.get(field.type),
        )
        for name in others:
            term = parts.compile_member_access(term, name)
        return term

    def dot(self, node: exp.Expr) -> Term:
        """Compile a name behind something that is no name itself: ``lines[0].sku``."""
        if not isinstance(node.expression, exp.Identifier):
            raise build_expression_error(
                f"{node.sql(dialect='spark')!r} is not supported in an expression.", "select a part: a.b."
            )
        return parts.compile_member_access(self.term(node.this), node.expression.name)

    def bracket(self, node: exp.Expr) -> Term:
        """Compile ``array[0]`` and ``map['key']``."""
        if len(node.expressions) != 1:
            raise build_expression_error(
                f"{node.sql(dialect='spark')!r} is not supported in an expression.", "use one index."
            )
        return parts.compile_item_access(self.term(node.this), self.term(node.expressions[0]))

    def unknown(self, node: exp.Expr, first: str) -> Exception:
        """Make the error of a name that is no column."""
        near, names = self.schema.find_close_names(first), ", ".join(self.schema.names)
        hint = f"did you mean {' or '.join(near)}?" if near else f"the columns are {names}."
        return build_expression_error(
            f"There is no column {node.sql(dialect='spark')!r}.", REFUSED.get(first.lower(), hint)
        )

    def literal(self, node: exp.Expr) -> Term:
        """Return a literal Spark's type."""
        if node.args.get("is_string"):
            return terms.build_string_literal(node.name)
        if "e" in node.name.lower():
            return terms.build_double_literal(float(node.name))
        if "." in node.name:
            return terms.build_decimal_literal(Decimal(node.name))
        return terms.build_integer_literal(int(node.name))

    def negative(self, node: exp.Expr) -> Term:
        """Compile a minus sign; before a number it is part of it."""
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return self.literal(negate_literal(inner))
        if isinstance(inner, exp.TryCast) and isinstance(inner.this, exp.Literal) and inner.this.is_number:
            return self.cast(exp.TryCast(this=negate_literal(inner.this), to=inner.args["to"]))
        return compile_negation(terms.refuse_null_constant(self.term(node.this)))

    def cast(self, node: exp.Expr) -> Term:
        """Compile CAST, TRY_CAST and the literals that sqlglot reads as casts."""
        target = read_type(node.args["to"])
        source = node.this
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
            return parse_day(source.name) if target == DATE else parse_instant(source.name)
        if target.precision and isinstance(source, exp.Literal) and source.is_string:
            return (
                terms.build_decimal_literal(Decimal(source.name))
                if is_decimal(source.name)
                else self.no_type(node)
            )
        return compile_cast(self.term(source), target, tried=bool(node.args.get("safe")))

    def no_type(self, node: exp.Expr) -> Term:
        """Refuse a cast."""
        raise build_expression_error(
            f"{node.sql(dialect='spark')} is not supported.", "write the number itself, such as 1.5."
        )

    def between(self, node: exp.Expr) -> Term:
        """Compile BETWEEN."""
        if node.args.get("symmetric"):
            raise build_expression_error("BETWEEN SYMMETRIC is not supported.", "put the lower bound first.")
        return conditions.compile_between(
            self.term(node.this), self.term(node.args["low"]), self.term(node.args["high"])
        )

    def within(self, node: exp.Expr) -> Term:
        """Compile IN over a list."""
        if not node.expressions:
            raise build_expression_error(
                f"{node.sql(dialect='spark')} does not use IN with a list.", "list the values: x IN (1, 2)."
            )
        return conditions.compile_in_list(
            self.term(node.this), [self.term(each) for each in node.expressions]
        )

    def like(self, node: exp.Expr) -> Term:
        """Compile LIKE, with its ESCAPE where there is one."""
        inner, escape = (node.this, node.expression.name) if isinstance(node, exp.Escape) else (node, "\\")
        if not isinstance(inner, exp.Like) or isinstance(inner.expression, (exp.Any, exp.All)):
            raise build_expression_error(
                f"{node.sql(dialect='spark')} is not supported.", "combine single LIKEs with OR or AND."
            )
        term = conditions.compile_like(self.term(inner.this), self.term(inner.expression), escape)
        return conditions.compile_not(term) if inner.args.get("negate") else term

    def test(self, node: exp.Expr) -> Term:
        """Compile IS NULL, IS TRUE, IS FALSE."""
        tested = self.term(node.this)
        if isinstance(node.expression, exp.Null):
            return conditions.is_null(tested)
        if isinstance(node.expression, exp.Boolean):
            return conditions.is_truth(tested, bool(node.expression.this))
        raise build_expression_error(
            f"{node.sql(dialect='spark')} is not supported.", "IS takes NULL, TRUE or FALSE."
        )

    def case(self, node: exp.Expr) -> Term:
        """Compile CASE with or without an operand."""
        operand = node.args.get("this")
        branches = []
        for branch in node.args["ifs"]:
            condition = self.term(branch.this)
            if operand is not None:
                condition = conditions.compile_comparison("=", self.term(operand), condition)
            branches.append((condition, self.term(branch.args["true"])))
        default = node.args.get("default")
        return conditions.compile_case(branches, self.term(default) if default is not None else None)

    def choice(self, node: exp.Expr) -> Term:
        """Compile IF(condition, value, value)."""
        default = node.args.get("false")
        branch = (self.term(node.this), self.term(node.args["true"]))
        return conditions.compile_case([branch], self.term(default) if default is not None else None)

    def trim(self, node: exp.Expr) -> Term:
        """Compile TRIM with its own grammar."""
        letters = node.args.get("expression")
        side = str(node.args.get("position") or "BOTH").upper()
        return compile_trim(self.term(node.this), self.term(letters) if letters is not None else None, side)

    def joined(self, node: exp.Expr) -> Term:
        """Compile || between texts."""
        return compile_concat(self.sides(node))

    def function(self, node: exp.Expr) -> Term:
        """Compile a call by its name."""
        name = str(node.this)
        if name.lower() == "header" and self.schema.field("_headers") and len(node.expressions) == 1:
            return parts.compile_item_access(
                self.term(exp.column("_headers")), self.term(node.expressions[0])
            )
        if name.lower() in UNIT_FUNCTIONS and len(node.expressions) == 3:
            unit, *others = node.expressions
            make = UNIT_FUNCTIONS[name.lower()]
            return make(unit.name if isinstance(unit, exp.Column) else unit.sql(), *map(self.term, others))
        return compile_function_call(
            name, [] if name.lower() in REFUSED else [self.term(each) for each in node.expressions]
        )


FORMS: dict[type[exp.Expr], Callable[[Compiler, exp.Expr], Term]] = {
    exp.Anonymous: Compiler.function,
    exp.Between: Compiler.between,
    exp.Bracket: Compiler.bracket,
    exp.Boolean: lambda _, node: terms.build_boolean_literal(bool(node.this)),
    exp.Case: Compiler.case,
    exp.Cast: Compiler.cast,
    exp.Column: Compiler.column,
    exp.DPipe: Compiler.joined,
    exp.Dot: Compiler.dot,
    exp.Escape: Compiler.like,
    exp.If: Compiler.choice,
    exp.In: Compiler.within,
    exp.Is: Compiler.test,
    exp.Like: Compiler.like,
    exp.Literal: Compiler.literal,
    exp.Neg: Compiler.negative,
    exp.Not: lambda self, node: conditions.compile_not(self.term(node.this)),
    exp.Null: lambda *_: terms.NULL,
    exp.NullSafeEQ: lambda self, node: conditions.compile_null_safe_equal(*self.sides(node)),
    exp.NullSafeNEQ: lambda self, node: conditions.compile_null_safe_equal(*self.sides(node), negate=True),
    exp.Paren: lambda self, node: self.term(node.this),
    exp.RawString: lambda _, node: terms.build_string_literal(node.name),
    exp.RegexpLike: lambda self, node: regexp_like(self.sides(node)),
    exp.Trim: Compiler.trim,
    exp.TryCast: Compiler.cast,
}
