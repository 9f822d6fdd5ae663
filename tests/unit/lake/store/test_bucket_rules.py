"""What a bucket does by itself is found out before it has done it to a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest
from tests.faults.rig.store_proxy import StoreProxy, describe_refusal
from tests.services.addresses import Bucket

from seamline.cli.machine_checks import check_bucket
from seamline.lake.store.bucket_rules import judge_object
from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath

RULE = 'expiry-date="Fri, 21 Dec 2031 00:00:00 GMT", rule-id="tidy"'


@pytest.fixture
def owner(bucket: Bucket) -> Iterator[Any]:
    """A client that may change the bucket itself."""
    client = boto3.client(
        "s3",
        endpoint_url=bucket.endpoint,
        region_name=bucket.region,
        aws_access_key_id=bucket.access_key,
        aws_secret_access_key=bucket.secret_key,
    )
    with closing(client):
        yield client


def test_rules_are_told_by_what_they_do() -> None:
    """What loses tables is no note."""
    folder = ObjectPath("s3://lake", "w")
    assert not [*judge_object(folder, {"etag": "1", "x-amz-version-id": "null"})]
    loses, keeps, locks = judge_object(
        folder,
        {
            "x-amz-expiration": RULE,
            "x-amz-version-id": "1",
            "x-amz-object-lock-mode": "GOVERNANCE",
            "x-amz-object-lock-retain-until-date": "2031-01-01",
        },
    )
    assert "deletes what is put into s3://lake/w" in loses.fact and "tidy" in loses.fact
    assert (
        "keeps old versions" in keeps.fact
        and "locks objects (GOVERNANCE), now until 2031-01-01" in locks.fact
    )
    assert [each.loses for each in (loses, keeps, locks)] == [True, False, False]


@pytest.mark.slow
def test_a_bucket_that_keeps_versions_is_a_note(lake: Location, bucket: Bucket, owner: Any) -> None:
    """It works, and what upkeep deletes is paid for."""
    assert isinstance(lake, ObjectPath)
    assert [str(each) for each in check_bucket("W", lake)] == [f"ok    W: {lake}"]
    owner.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": "Enabled"})
    [writable, versions] = check_bucket("W", lake)
    assert writable.good and versions.good
    assert str(versions).startswith(f"note  the bucket: {lake.url} keeps old versions of objects. Hint: ")


@pytest.mark.slow
def test_a_rule_that_deletes_is_an_error_in_any_folder(shaky: Location, proxy: StoreProxy) -> None:
    """It may be about one pipeline's folder alone; nothing of the probe is left, and other people's get none."""
    assert isinstance(shaky, ObjectPath)
    first = shaky / "orders" / "control" / "_delta_log" / "x"
    first.write_bytes(b"x")
    (shaky / "theirs" / "x").write_bytes(b"x")
    proxy.answer(200, "", "/orders/_probe/", method="HEAD", headers={"x-amz-expiration": RULE, "ETag": "1"})
    [_, found] = check_bucket("W", shaky)
    assert not found.good and f"deletes what is put into {shaky}/orders" in found.found
    assert [str(each) for each, _ in shaky.walk_objects()] == [str(first), f"{shaky}/theirs/x"]
    assert not [path for _, path in proxy.seen if "theirs/_probe" in path]


@pytest.mark.slow
def test_what_cannot_be_looked_at_is_said(shaky: Location, proxy: StoreProxy) -> None:
    """Silence would be taken for a bucket without rules."""
    assert isinstance(shaky, ObjectPath)
    proxy.answer(403, "", "/_probe/", method="HEAD")
    [_, found] = check_bucket("W", shaky)
    assert found.note and "could not be looked at" in found.found
    proxy.clear()
    proxy.answer(403, describe_refusal("AccessDenied"), method="POST")
    [_, found] = check_bucket("W", shaky)
    assert found.note and "could delete nothing" in found.found and "delete objects" in found.found
