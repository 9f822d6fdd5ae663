"""Tokens for kafka-python by OAUTHBEARER: fetched for a client's id and secret, and kept until they are nearly old."""

from __future__ import annotations

import base64
import binascii
import functools
import http.client
import json
import math
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from kafka.errors import KafkaConnectionError
from kafka.net.sasl.oauth import AbstractTokenProvider

from seamline.kafka.token_endpoint import ANSWERS_WITHIN_MS, TokenEndpoint

RENEWED_AT = 0.8
"""The part of its life after which a token is replaced, as Java's client does."""
LONGEST = 1 << 20
"""More bytes than any answer has; who sends more is no token endpoint."""


class TokenFailed(KafkaConnectionError):  # type: ignore[misc]
    """A token endpoint gave no token; the text says why without a secret, and begins with ``the token endpoint``."""


class Stay(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: the secret is for this server alone."""

    def redirect_request(self, *_: Any) -> None:
        """Take a redirection for what it is: no answer."""


@dataclass(frozen=True)
class Token:
    """What was given, and how long it may be used."""

    text: str = field(repr=False)
    """The token as the broker gets it."""
    stale: float
    """When another is asked for, by the clock of ``time.monotonic``."""
    ends: float
    """When no broker takes it any more, by the same clock."""


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives kafka-python a token that is valid, and asks for one as seldom as it can."""

    def __init__(
        self,
        endpoint: TokenEndpoint,
        client: str,
        secret: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint, self.client, self.clock = endpoint, client, clock
        self._secret = secret
        self._lock = threading.Lock()
        self._held: Token | None = None

    def token(self) -> str:
        """Return a token; TokenFailed if none is valid and the endpoint gives none."""
        with self._lock:
            now = self.clock()
            if self._held is None or now >= self._held.stale:
                try:
                    self._held = self._fetch(now)
                except TokenFailed:
                    if self._held is None or now >= self._held.ends:
                        raise
            return self._held.text

    def token_until(self) -> tuple[str, float]:
        """Return a token, and until when no other is needed, in seconds since 1970."""
        text = self.token()
        assert self._held is not None
        return text, time.time() + max(self._held.stale - self.clock(), 1.0)

    def extensions(self) -> dict[str, str]:
        """Return what the broker is told beside the token."""
        parts = (each.partition("=") for each in self.endpoint.extensions)
        return {name: value for name, _, value in parts}

    def _fetch(self, now: float) -> Token:
        answer = read_answer(self._ask(), self.endpoint)
        text = answer["access_token"]
        life = find_lifetime(answer, time.time())
        # A token of which nobody says how long it lives is used once.
        return Token(text, stale=now + RENEWED_AT * life, ends=now + life)

    def _ask(self) -> bytes:
        """Send the request that RFC 6749 names in 4.4.2; TokenFailed without an answer of success."""
        form = {"grant_type": "client_credentials"}
        if self.endpoint.scope:
            form["scope"] = self.endpoint.scope
        login = base64.b64encode(f"{self.client}:{self._secret}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Accept": "application/json"}
        request = urllib.request.Request(self.endpoint.url, urlencode(form).encode(), headers)
        place = f"the token endpoint {self.endpoint.place}"
        try:
            # Made anew each time: the authority's file may have been replaced.
            trust = ssl.create_default_context(cafile=self.endpoint.ca_file or None)
            opener = urllib.request.build_opener(Stay, urllib.request.HTTPSHandler(context=trust))
            with opener.open(request, timeout=ANSWERS_WITHIN_MS / 1000) as answer:
                body: bytes = answer.read(LONGEST)
                return body
        except urllib.error.HTTPError as refused:
            with refused:
                said = describe_refusal(refused)
            raise TokenFailed(f"{place} refuses client {self.client!r}: {said}") from None
        except (OSError, ValueError, http.client.HTTPException) as away:
            reason = getattr(away, "reason", away)
            raise TokenFailed(f"{place} does not answer: {reason}") from None


@functools.lru_cache(maxsize=64)
def share_provider(endpoint: TokenEndpoint, client: str, secret: str) -> TokenProvider:
    """Return the one provider of this process for a client, so that its clients share a token."""
    return TokenProvider(endpoint, client, secret)


def read_answer(body: bytes, endpoint: TokenEndpoint) -> Mapping[str, Any]:
    """Return the answer of a token endpoint; TokenFailed if it has no token."""
    try:
        answer = json.loads(body)
        if isinstance(answer["access_token"], str) and answer["access_token"]:
            found: Mapping[str, Any] = answer
            return found
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise TokenFailed(f"the token endpoint {endpoint.place} answers without an access_token")


def describe_refusal(refused: urllib.error.HTTPError) -> str:
    """Return the status, and the code of the error where the answer has one: no other word of it is repeated."""
    try:
        code = json.loads(refused.read(LONGEST))["error"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, http.client.HTTPException):
        code = ""
    known = isinstance(code, str) and code.replace("_", "").isalnum() and len(code) < 40
    return f"HTTP {refused.code} {code}".strip() if known else f"HTTP {refused.code}"


def find_lifetime(answer: Mapping[str, Any], now: float) -> float:
    """Return for how many seconds a token is still valid; ``now`` is in seconds since 1970.

    That is ``expires_in`` of the answer, else what is left until ``exp`` of the token; 0 if neither says it.
    """
    try:
        life = max(float(answer["expires_in"]), 0.0)
        if math.isfinite(life):
            return life
    except (KeyError, TypeError, ValueError, OverflowError):
        pass
    try:
        claims = answer["access_token"].split(".")[1]
        read = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        life = max(float(read["exp"]) - now, 0.0)
        return life if math.isfinite(life) else 0.0
    except (RecursionError, OverflowError, IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return 0.0
