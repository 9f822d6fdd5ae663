"""The keys of a warehouse in a bucket from a connection of Airflow's, in the words of its Amazon provider.

They are in the environment of a task while it runs, and of what it starts: in no argument, no rendered field, no XCom
and no log. The provider itself is not needed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from seamline.lake.store.bucket import use_settings
from seamline.model.errors import ConnectionMissing, SetupError

SETTING = "SEAMLINE_STORE_CONNECTION"
TYPES = ("aws", "s3", "generic")
BY_FILE = "assume_role_with_web_identity"
WHO: Mapping[str, None] = dict.fromkeys(
    (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_ROLE_ARN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    )
)
"""What says who asks: a connection replaces all of it or nothing, since a key with another's token is none."""
P = ParamSpec("P")
R = TypeVar("R")


def with_store_settings(task: Callable[P, R]) -> Callable[P, R]:
    """Let a task, and what it starts, find the warehouse's store by the connection that a setting names."""

    @functools.wraps(task)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with store_settings(os.environ.get(SETTING, "")):
            return task(*args, **kwargs)

    return call


@contextmanager
def store_settings(name: str) -> Iterator[None]:
    """Find a store by a connection while the block runs; as the environment says where its name is empty."""
    if not name:
        yield
        return
    with use_settings(read_store_settings(name)):
        yield


def read_store_settings(name: str) -> dict[str, str | None]:
    """Read a connection's settings, and have its secrets masked; ConnectionMissing if there is none."""
    try:
        found = Connection.get(name)
    except AirflowNotFoundException:
        raise ConnectionMissing(
            f"There is no connection named {name!r}.", hint=f"add it to Airflow, or correct {SETTING}."
        ) from None
    extra = found.extra_dejson
    for secret in (found.password, extra.get("aws_secret_access_key"), extra.get("aws_session_token")):
        if secret:
            mask_secret(secret)
    return make_store_settings(name, found.conn_type, found.login or "", found.password or "", extra)


def make_store_settings(
    name: str, kind: str, login: str, password: str, extra: Mapping[str, Any]
) -> dict[str, str | None]:
    """Return the settings that a connection stands for, None for those that must not be there.

    SetupError for a connection whose words would be taken by the provider alone.
    """
    if kind not in TYPES:
        raise SetupError(f"The connection {name!r} is of type {kind!r}.", hint="a store's is of type aws.")
    who = {
        "AWS_ACCESS_KEY_ID": login or extra.get("aws_access_key_id"),
        "AWS_SECRET_ACCESS_KEY": password or extra.get("aws_secret_access_key"),
        "AWS_SESSION_TOKEN": extra.get("aws_session_token"),
        **make_role_settings(name, extra),
    }
    service = (extra.get("service_config") or {}).get("s3") or {}
    where = {
        "AWS_REGION": extra.get("region_name"),
        "AWS_ENDPOINT_URL": service.get("endpoint_url") or extra.get("endpoint_url"),
    }
    given: dict[str, str | None] = {key: str(value) for key, value in {**who, **where}.items() if value}
    return {**WHO, **given} if any(who.values()) else given


def make_role_settings(name: str, extra: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of a connection's role: by a token's file, as Kubernetes mounts it; SetupError otherwise."""
    for word, hint in {
        "profile_name": "profiles are in files of the provider's client: put the keys into the connection.",
        "session_kwargs": "put keys and region into the connection's own fields.",
    }.items():
        if extra.get(word):
            raise SetupError(f"The connection {name!r} has {word}, which Seamline does not know.", hint=hint)
    if not extra.get("role_arn"):
        return {}
    file = extra.get("assume_role_with_web_identity_token_file") or os.environ.get(
        "AWS_WEB_IDENTITY_TOKEN_FILE"
    )
    if extra.get("assume_role_method") != BY_FILE or not file:
        raise SetupError(
            f"The connection {name!r} has a role (role_arn) that is not taken on by a token's file.",
            hint=f"set assume_role_method to {BY_FILE} and assume_role_with_web_identity_token_file, or give the "
            "machine or container the role, and the connection none.",
        )
    return {"AWS_ROLE_ARN": str(extra["role_arn"]), "AWS_WEB_IDENTITY_TOKEN_FILE": str(file)}
