"""What a store says where it refuses, in a sentence with a way out.

Its own words are not passed on: a session's token may be among them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from seamline.model.errors import StoreRefused, StoreUnavailable
from seamline.runtime.store_settings import name_endpoint, name_region

CODE = re.compile(r"(?:<Code>|\(code: )([\w.]+)(?:</Code>|\))")
STATUS = re.compile(r"(?:code: |\[0m )(\d{3}) [A-Z]")
DEED = re.compile(r"(?:Error performing |Generic S3 error: )(list request|[A-Z]+\b|DeleteObjects)")
REGION = re.compile(r"<Region>([a-z0-9-]+)</Region>")
SERVER_TIME = re.compile(r"<ServerTime>([0-9TZ:.-]+)</ServerTime>")
PAGE = re.compile(r"<!doctype html|<html", re.IGNORECASE)
DEEDS = {
    "list request": "list",
    "GET": "read",
    "HEAD": "read",
    "PUT": "write",
    "POST": "write or delete",
    "DELETE": "delete",
    "DeleteObjects": "delete",
}
RIGHTS = "allow s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject there, for the user or role of the keys."
RENEW = "get new ones, set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, and start again what runs."
SET_CLOCK = "set this machine's clock by NTP."
NAME_REGION = "set AWS_REGION to the bucket's region."
SENTENCES: Mapping[str, tuple[str, str]] = {
    "NoSuchBucket": ("There is no bucket {url}.", "create it, or correct its name where the warehouse is named."),
    "InvalidBucketName": ("{url} cannot be the name of a bucket.", "correct it where the warehouse is named."),
    "AccessDenied": ("The credentials for {url} may not {deed} objects there.", RIGHTS),
    "InvalidAccessKeyId": ("The store does not know the key for {url}.", "correct AWS_ACCESS_KEY_ID."),
    "SignatureDoesNotMatch": ("The secret key for {url} is not the right one.", "correct AWS_SECRET_ACCESS_KEY."),
    "InvalidToken": ("The session's token for {url} is not valid.", RENEW),
    "ExpiredToken": ("The credentials for {url} have expired.", RENEW),
    "RequestTimeTooSkewed": ("This machine's clock differs too much from that of the store of {url}{time}.", SET_CLOCK),
    "PermanentRedirect": ("{url} is not in the region {region}{other}.", NAME_REGION),
    "NoCredentials": (
        "There are no credentials for {url}: no keys are set, and this machine has no role.",
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine or container a role.",
    ),
    "NoRole": (
        "The token of AWS_WEB_IDENTITY_TOKEN_FILE does not give the role for {url}.",
        "correct AWS_ROLE_ARN, or let the role trust who has issued the token.",
    ),
    "NotS3": ("{endpoint} does not speak S3.", "set AWS_ENDPOINT_URL to the store's address, not to its console's."),
    "NotImplemented": (
        "{endpoint} does not support a request that a warehouse needs.",
        "use a store with conditional puts (If-None-Match): S3, GCS, Azure, versitygw.",
    ),
    "ObjectLock": (
        "{url} locks each object for a time, and takes none without a checksum.",
        "use a bucket without a default retention: upkeep could free nothing there.",
    ),
    "Unsaid": (
        "The store of {url} refuses requests, and does not say why.",
        "check the credentials, the region and the clock.",
    ),
    "KMS": ("The key that encrypts the objects of {url} cannot be used.", "allow its use, or enable it, in KMS."),
}  # fmt: skip
KINDS = {
    "AllAccessDisabled": "AccessDenied",
    "AccountProblem": "AccessDenied",
    "ExpiredTokenException": "ExpiredToken",
    "TokenRefreshRequired": "ExpiredToken",
    "RequestExpired": "RequestTimeTooSkewed",
    "IllegalLocationConstraintException": "PermanentRedirect",
    "TemporaryRedirect": "PermanentRedirect",
}
"""Codes that mean the same as others."""
WORDS = {
    "incorrectly configured region": "PermanentRedirect",
    "ETag Header missing": "NotS3",
    "Got invalid DeleteObjects response": "NotS3",
    "http://169.254.": "NoCredentials",
}
"""What a client says where there is no code."""


BY_STATUS = {400: "Unsaid", 401: "AccessDenied", 403: "AccessDenied", 405: "Unsaid", 501: "NotImplemented"}
"""What is meant by an answer without a body."""


def explain_failure(
    url: str, error: Exception, env: Mapping[str, str] = os.environ, *, answered: bool = False
) -> OSError:
    """Say why a request about a bucket has failed: StoreRefused, or StoreUnavailable where that may pass.

    Credentials that cannot be had may pass where the store has ``answered`` before, by others of the same source.
    Raise it ``from None``: what the store has said is in the error that it is made of.
    """
    if (kind := find_kind(str(error))) and not (answered and kind in ("NoCredentials", "NoRole")):
        return refuse(kind, url, str(error), env)
    return StoreUnavailable(
        f"{url}: {name_endpoint(env)} did not do what it was asked for: {shorten_error(error)}.",
        hint="try again. If it persists, check AWS_ENDPOINT_URL and the network.",
    )


def refuse(kind: str, url: str, said: str = "", env: Mapping[str, str] = os.environ) -> StoreRefused:
    """Make the sentence of a refusal about a bucket."""
    fact, hint = SENTENCES[kind]
    return StoreRefused(fact.format(url=url, **find_details(said, env)), hint=hint)


def find_kind(said: str) -> str:
    """Find which refusal an error's text is about; empty where it may pass."""
    for words, kind in WORDS.items():
        if words in said:
            return kind
    status = int(found[1]) if (found := STATUS.search(said)) else 0
    if "https://sts." in said:
        return "NoRole" if 400 <= status < 500 and "Throttling" not in said else ""
    if found := CODE.search(said):
        return kind_of_code(found[1], said)
    if PAGE.search(said) and status < 500:
        return "NotS3"
    return BY_STATUS.get(status, "")


def kind_of_code(code: str, said: str) -> str:
    """Find which refusal a code is; empty where it may pass."""
    if code == "AuthorizationHeaderMalformed":
        return "PermanentRedirect" if REGION.search(said) else "InvalidAccessKeyId"
    if code == "InvalidRequest" and "Content-MD5" in said:
        return "ObjectLock"
    kind = KINDS.get(code, code.partition(".")[0])
    return kind if kind in SENTENCES else ""


def find_details(said: str, env: Mapping[str, str]) -> dict[str, str]:
    """Find what a sentence names beside the bucket."""
    other, time, deed = REGION.search(said), SERVER_TIME.search(said), DEED.search(said)
    return {
        "deed": DEEDS.get(deed[1] if deed else "", "use"),
        "endpoint": name_endpoint(env),
        "region": name_region(env),
        "other": f", but in {other[1]}" if other else "",
        "time": f", where it is {time[1]}" if time else "",
    }


def shorten_error(error: Exception) -> str:
    """Return what an error says without its long description, and without what the store has answered."""
    said = str(error)
    words = said.replace("\x1b[31m↳\x1b[0m", "").partition("<")[0].partition("\n\nDebug source")[0]
    code = f" ({found[1]})" if (found := CODE.search(said)) else ""
    return " ".join(words.split()).rstrip(": ") + code
