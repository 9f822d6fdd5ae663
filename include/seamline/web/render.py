"""Templates, and how values are written in them. Everything is escaped unless it is made here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.plan.spelling import format_duration
from seamline.plan.wording.plan_text import format_bytes
from seamline.serve.answer_request import MEDIA
from seamline.serve.answer_request import as_json as spelled
from seamline.version import VERSION
from seamline.web.glance.bars import draw_row_bars, draw_shade_bars

UNKNOWN = "?"


@cache
def make_jinja_environment() -> Environment:
    """Make the environment once."""
    made = Environment(
        loader=PackageLoader("seamline.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "at": format_instant_html,
        "instant": format_utc_instant,
        "count": count,
        "quantity": format_quantity,
        "share": format_relative_change,
        "span": format_duration,
        "size": format_bytes,
        "data": embed_json,
        "cell": format_table_cell,
        "spark": draw_row_bars,
        "bar": draw_shade_bars,
    }
    made.globals["version"] = VERSION
    return made


def render_template(name: str, context: Mapping[str, Any]) -> str:
    """Write a page."""
    return make_jinja_environment().get_template(name).render(context)


def format_instant_html(moment: datetime | str | None) -> Markup:
    """Format an instant in UTC; the page's script writes it in the reader's zone beside it."""
    if moment is None or moment == "":
        return Markup(UNKNOWN)
    text = format_utc_instant(
        (moment if isinstance(moment, datetime) else parse_moment(moment)).replace(microsecond=0)
    )
    shown = text.replace("T", " ").replace("Z", " UTC").replace(":00 UTC", " UTC")
    return Markup('<time datetime="{}">{}</time>').format(text, shown)


def count(value: float | None) -> str:
    """Write a count."""
    return UNKNOWN if value is None else f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def format_quantity(number: int, noun: str) -> str:
    """Write a count with what it counts, by a noun whose plural takes an s."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def format_relative_change(value: float | None) -> str:
    """Format a relative change: +0.8 %."""
    return UNKNOWN if value is None else f"{value * 100:+.2g} %"


def format_table_cell(value: Any) -> Any:
    """Format a value of a table; instants as such, NULL as it is called."""
    match value:
        case None:
            return Markup('<span class="null">NULL</span>')
        case datetime():
            return format_instant_html(value)
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
        case Decimal():
            return f"{value:,f}"
        case list() | dict() | tuple():
            return spelled(value)
        case bytes():
            return value.decode("utf-8", "backslashreplace")
    return str(value)


def embed_json(value: Any) -> Markup:
    """Write JSON into a page so that nothing in it ends the element it stands in.

    A figure's numbers are places on a screen: decimals are doubles there. Cells have all their digits.
    """
    text = json.dumps(json.loads(spelled(value)))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def render_page_response(request: Request, name: str, status: int = 200, **context: Any) -> HTMLResponse:
    """Write a page; ``root`` is where our pages are, ``airflow`` where Airflow's are."""
    root = request.scope["root_path"]
    whole = {
        "root": root,
        "airflow": root.removesuffix("/seamline"),
        "pipeline": request.path_params.get("pipeline", ""),
        "here": "",
        "status": status,
        **context,
    }
    return HTMLResponse(render_template(name, whole), status, {"Cache-Control": "private, no-cache"})


def as_json(found: Any, status: int = 200) -> Response:
    """Write JSON."""
    return Response(spelled(found), status, media_type=MEDIA["json"])
