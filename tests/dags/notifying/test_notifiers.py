"""Airflow's own notifiers get alerts, with their templates, from the task that looks at the streams."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import BaseNotifier, Context
from tests.unit.shop import DEFINITION

from seamline.lake.status.marks import REFUSED, leave_mark
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.errors import DefinitionError
from seamline.orchestration import reconciling, tasks
from seamline.orchestration.notifying import notifiers

SENT: list[str] = []


class Mail(BaseNotifier):
    """Stands for a notifier of a provider's, as SmtpNotifier."""

    template_fields: Sequence[str] = ("subject",)

    def __init__(self, subject: str) -> None:
        super().__init__()
        self.subject = subject

    def notify(self, context: Context) -> None:
        SENT.append(self.subject)


mail = Mail("{{ alert.severity }}: {{ alert.pipeline }} {{ alert.name }} {{ alert.state }} ({{ run_id }})")
failed = Mail("{{ pipeline }} failed in {{ run_id }}")


class AsyncMail(Mail):
    """Notifies by a coroutine, as whoever has only an asynchronous client would write it."""

    async def notify(self, context: Context) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        SENT.append(self.subject)


class TriggeredMail(BaseNotifier):
    """Has the asynchronous half alone, as a notifier of deadlines may."""

    template_fields: Sequence[str] = ("subject",)

    def __init__(self, subject: str) -> None:
        super().__init__()
        self.subject = subject

    async def async_notify(self, context: Context) -> None:
        await asyncio.sleep(0)
        SENT.append(self.subject)


slow_mail, triggered_mail = (
    AsyncMail("{{ pipeline }} {{ run_id }}"),
    TriggeredMail("{{ pipeline }} {{ run_id }}"),
)


async def asked(context: Any) -> None:
    """Take a context, asynchronously."""
    await asyncio.sleep(0)
    SENT.append(f"{context['pipeline']} {context['run_id']}")


async def refused(context: Any) -> None:
    """Fail once it is awaited."""
    await asyncio.sleep(0)
    raise OSError("no mail server")


def plain(context: Any) -> None:
    """Take a context, as a callback of Airflow's does."""
    SENT.append(context["alert"]["text"])


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A stream whose supervisor was refused."""
    SENT.clear()
    routes = f'AlertRoute("{__name__}.mail"), AlertRoute("{__name__}.plain", alerts=["lease_refused"])'
    text = DEFINITION.replace("shop = Pipeline(", f"shop = Pipeline(alerts=[{routes}],")
    assert text != DEFINITION
    (tmp_path / "shop.py").write_text(f"from seamline import AlertRoute\n{text}")
    for name, place in [("HOME", "home"), ("WAREHOUSE", "warehouse"), ("PIPELINES", "")]:
        monkeypatch.setenv(f"SEAMLINE_{name}", str(tmp_path / place))
    made = Layout(tmp_path / "warehouse", "shop")
    ControlTable.ensure(made).want(Desired.STOPPED, actor="ada", reason="sale", now=datetime.now(UTC))
    leave_mark(made, REFUSED, now=datetime.now(UTC), why="b holds it")
    monkeypatch.setattr(notifiers, "get_current_context", lambda: {"run_id": "manual__1"})
    return made


def test_a_notifier_is_told_with_its_templates(layout: Layout) -> None:
    """As it would be by a task of the user's; and the next alert is rendered anew."""
    reconciling.look_for_alerts("shop", {})
    assert "warning: shop lease_refused raised (manual__1)" in SENT
    assert any(each.startswith("shop: ALERT raised lease_refused: a supervisor was refused") for each in SENT)
    reconciling.look_for_alerts("shop", {})
    assert len(SENT) == 2
    assert mail.subject.startswith("{{ alert.severity }}")


def test_on_failure_may_be_a_notifier() -> None:
    """It is called with the context of the task that has failed; one task may call it for several pipelines."""
    SENT.clear()
    for name in ("shop", "returns"):
        tasks.on_failure(f"{__name__}.failed", name)({"run_id": "manual__2"})
    assert SENT == ["shop failed in manual__2", "returns failed in manual__2"]


@pytest.mark.parametrize("name", ["slow_mail", "triggered_mail", "asked"])
def test_what_notifies_asynchronously_is_awaited(name: str) -> None:
    """A coroutine that nobody awaits has sent nothing, and was taken for sent; each call renders anew."""
    SENT.clear()
    for run in ("manual__4", "manual__5"):
        tasks.on_failure(f"{__name__}.{name}", "shop")({"run_id": run})
    assert SENT == ["shop manual__4", "shop manual__5"]
    assert slow_mail.subject == triggered_mail.subject == "{{ pipeline }} {{ run_id }}"


def test_what_fails_once_it_is_awaited_has_failed() -> None:
    """It is tried again, as any notifier that fails."""
    with pytest.raises(OSError, match="no mail server"):
        notifiers.call_notifier(refused, {"run_id": "manual__6"}, "alerts")


@pytest.mark.parametrize("field", ["alerts", "on_failure"])
def test_a_class_is_no_notifier(field: str) -> None:
    """Called with a context it would make an instance, and the alert would be taken for sent."""
    SENT.clear()
    with pytest.raises(DefinitionError, match="Mail is a class") as refused:
        notifiers.call_notifier(Mail, {"run_id": "manual__3"}, field)
    assert refused.value.field == field and SENT == []
