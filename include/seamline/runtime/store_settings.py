"""The settings by which a store is found; what cannot be right is refused before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from seamline.model.errors import StoreRefused

YES = ("1", "true", "t", "yes", "y", "on")
"""What deltalake takes for yes."""
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
AMAZON = "s3.amazonaws.com"


def allows_http(env: Mapping[str, str]) -> bool:
    """Return whether an address may begin with ``http://``."""
    return env.get("AWS_ALLOW_HTTP", "").lower() in YES


def find_endpoint(env: Mapping[str, str]) -> tuple[str, str]:
    """Return the setting that has the address of a store, and the address; both empty for Amazon's."""
    return next(((name, env[name]) for name in ENDPOINTS if env.get(name)), ("", ""))


def name_endpoint(env: Mapping[str, str]) -> str:
    """Name the store that requests are sent to, without what else may be in its address."""
    _, address = find_endpoint(env)
    found = urlsplit(address)
    return f"{found.scheme}://{found.hostname}{f':{found.port}' if found.port else ''}" if address else AMAZON


def name_region(env: Mapping[str, str]) -> str:
    """Return the region that requests are signed for."""
    return env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or "us-east-1"


def require_sound_settings(url: str, env: Mapping[str, str] = os.environ) -> None:
    """Raise StoreRefused where the settings for a bucket cannot be right."""
    if url.startswith("s3://"):
        for refusal in list_refusals(url, env):
            raise refusal


def list_refusals(url: str, env: Mapping[str, str]) -> Iterator[StoreRefused]:
    """List what is wrong with the settings for a bucket."""
    name, address = find_endpoint(env)
    if name:
        yield from judge_address(name, address, env)
    half = [each for each in KEYS if env.get(each)]
    if len(half) == 1:
        [lacking] = set(KEYS) - set(half)
        yield StoreRefused(
            f"{half[0]} is set and {lacking} is not.", hint="set both for a key, or none for a role."
        )
    file = env.get("AWS_WEB_IDENTITY_TOKEN_FILE")
    if file and not half:
        if not env.get("AWS_ROLE_ARN"):
            yield StoreRefused(
                "AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not.",
                hint="name the role that the token is for.",
            )
        if not os.access(file, os.R_OK) or not Path(file).is_file():
            yield StoreRefused(
                f"The file {file} with the token for {url} cannot be read.",
                hint="correct AWS_WEB_IDENTITY_TOKEN_FILE, or let this user read the file.",
            )


def judge_address(name: str, address: str, env: Mapping[str, str]) -> Iterator[StoreRefused]:
    """List what is wrong with an address. It may have a password in it, and is not repeated."""
    try:
        found = urlsplit(address)
        sound = found.scheme in ("http", "https") and bool(found.hostname) and found.port != 0
    except ValueError:
        sound = False
    if not sound:
        yield StoreRefused(
            f"{name} is not the address of a store.", hint="for example: https://store.example.com."
        )
    elif found.username or found.password:
        yield StoreRefused(f"{name} has a user in it.", hint=f"put the keys into {' and '.join(KEYS)}.")
    elif found.scheme == "http" and not allows_http(env):
        yield StoreRefused(
            f"{name} begins with http://: keys and data would be sent so that others can read along.",
            hint="use https://, or set AWS_ALLOW_HTTP=true for a network that you trust.",
        )
