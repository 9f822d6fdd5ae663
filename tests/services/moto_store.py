"""Moto's server with puts that are one step each: its own looks for the object and puts it in two, between threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from moto.s3.responses import S3Response
from moto.server import main

ONE_AT_A_TIME = threading.Lock()
PUTS = ("put_object", "_key_response_post")
"""The answers to what creates an object: a put, and the end of one in parts."""


def in_turn(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Let one thread at a time answer; a request's body has been read by then."""

    @wraps(answer)
    def answer_in_turn(*args: Any, **named: Any) -> Any:
        with ONE_AT_A_TIME:
            return answer(*args, **named)

    return answer_in_turn


if __name__ == "__main__":
    for name in PUTS:
        setattr(S3Response, name, in_turn(getattr(S3Response, name)))
    main(sys.argv[1:])
