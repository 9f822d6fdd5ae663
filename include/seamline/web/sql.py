"""Questions in SQL by HTTP: over the views of all pipelines that the user may read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from seamline.serve.answer_request import MOST_ROWS
from seamline.serve.sql.sql_answer import SqlAnswer
from seamline.web.access import list_readable_pipelines
from seamline.web.api import ANSWERS, Text
from seamline.web.limits import enforce_rate_limit, read_memory_share, run_with_time_limit
from seamline.web.render import as_json

router = APIRouter(prefix="/api/v1", dependencies=[Depends(enforce_rate_limit)], responses=ANSWERS)


class SqlQuery(BaseModel):
    """The query of a question in SQL."""

    q: Annotated[str, Field(min_length=1, max_length=8000)]
    """One SELECT in DuckDB's SQL, over PIPELINE.VIEW."""
    start: Text = None
    """First window start of each view, inclusive."""
    end: Text = None
    """Instant before which windows start, exclusive."""
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 1000
    """Rows of the answer."""


@router.get("/sql")
def sql(user: GetUserDep, asked: Annotated[SqlQuery, Query()]) -> Response:
    """Answer one SELECT over merged views; ``views`` tells how far each of them is right."""
    readable = list_readable_pipelines(user)
    found = run_with_time_limit(
        lambda: answer_statement(asked.q, readable, start=asked.start, end=asked.end, limit=asked.limit)
    )
    return as_json(found.serialize())


def answer_statement(
    text: str, readable: Iterable[str], *, limit: int, start: str | None = None, end: str | None = None
) -> SqlAnswer:
    """Answer for somebody who may read some pipelines, within a request's memory."""
    from seamline.serve.sql.asked import sql as answer_sql

    return answer_sql(
        text,
        start=start,
        end=end,
        limit=limit,
        memory=read_memory_share(),
        may_read=frozenset(readable).__contains__,
    )
