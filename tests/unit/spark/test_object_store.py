"""Spark's settings for a bucket are those of the tables' own client, and contain no secret."""

from __future__ import annotations

import pytest

from seamline.model.errors import SetupError
from seamline.spark.session.object_store import (
    OF_A_TOKEN_FILE,
    OF_THE_ENVIRONMENT,
    OF_THE_MACHINE,
    s3a_settings,
)

KEYS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_SESSION_TOKEN": "t0ken"}
PROVIDER = "spark.hadoop.fs.s3a.aws.credentials.provider"
ENDPOINT = "spark.hadoop.fs.s3a.endpoint"
REGION = "spark.hadoop.fs.s3a.endpoint.region"
PATH_STYLE = "spark.hadoop.fs.s3a.path.style.access"


@pytest.mark.parametrize("url", ["", "/srv/warehouse", "file:///srv/warehouse", "gs://lake", "az://lake/x"])
def test_a_warehouse_elsewhere_changes_nothing(url: str) -> None:
    """A session that has no use for the connector does not know of it."""
    assert s3a_settings({**KEYS, "AWS_ENDPOINT_URL": "http://store"}, url) == {}


def test_no_secret_is_a_setting() -> None:
    """Settings are shown on Spark's pages and written to its event log."""
    told = repr(s3a_settings({**KEYS, "AWS_REGION": "eu-central-1"}, "s3://lake/warehouse"))
    assert not [each for each in KEYS.values() if each in told]


@pytest.mark.parametrize(
    ("environ", "provider"),
    [
        (KEYS, OF_THE_ENVIRONMENT),
        ({**KEYS, "AWS_WEB_IDENTITY_TOKEN_FILE": "/run/token"}, OF_THE_ENVIRONMENT),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/run/token"}, OF_A_TOKEN_FILE),
        ({"AWS_ACCESS_KEY_ID": "AKIA"}, OF_THE_MACHINE),
        ({}, OF_THE_MACHINE),
    ],
)
def test_keys_come_from_where_the_tables_own_client_takes_them(
    environ: dict[str, str], provider: str
) -> None:
    """Half of a key is none."""
    assert s3a_settings(environ, "s3://lake")[PROVIDER] == provider


def test_amazons_own_store_is_found_by_its_region_alone() -> None:
    """An endpoint would pin one region's; its buckets are named by host."""
    found = s3a_settings({"AWS_REGION": "eu-central-1"}, "s3://lake")
    assert found[REGION] == "eu-central-1"
    assert not {ENDPOINT, PATH_STYLE} & set(found)
    assert s3a_settings({"AWS_DEFAULT_REGION": "eu-west-1"}, "s3://lake")[REGION] == "eu-west-1"
    assert REGION not in s3a_settings({}, "s3://lake")


@pytest.mark.parametrize(("virtual", "style"), [("", "true"), ("false", "true"), ("TRUE", "false")])
def test_another_store_is_found_by_path(virtual: str, style: str) -> None:
    """Few of them have a host name for each bucket."""
    environ = {"AWS_ENDPOINT_URL": "https://store:9000", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": virtual}
    found = s3a_settings(environ, "s3://lake")
    assert (found[ENDPOINT], found[PATH_STYLE], found[REGION]) == ("https://store:9000", style, "us-east-1")


def test_requests_in_the_clear_must_be_allowed() -> None:
    """The tables' own client refuses them; Spark would send keys' signatures and rows all the same."""
    environ = {"AWS_ENDPOINT_URL": "http://store:9000"}
    with pytest.raises(SetupError, match="not encrypted"):
        s3a_settings(environ, "s3://lake")
    assert s3a_settings({**environ, "AWS_ALLOW_HTTP": "True"}, "s3://lake")[ENDPOINT] == "http://store:9000"


def test_files_are_put_in_place_by_a_committer() -> None:
    """A renamed file is a copied one, which comes into sight before its job is done."""
    found = s3a_settings({}, "s3://lake")
    assert found["spark.hadoop.fs.s3a.committer.name"] == "magic"
    assert found["spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3"].endswith("S3ACommitterFactory")
