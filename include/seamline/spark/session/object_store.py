"""Spark's settings for a warehouse in an S3 bucket, from the environment that the tables' own clients read.

No secret is among them, so that none gets into Spark's pages, logs and event log: whoever reads or writes, driver and
executors, takes keys from its own environment, or from the role of its machine.
"""

from __future__ import annotations

from collections.abc import Mapping

from seamline.model.errors import SetupError
from seamline.runtime.java import is_in_bucket

PROVIDERS = "software.amazon.awssdk.auth.credentials"
OF_THE_ENVIRONMENT = f"{PROVIDERS}.EnvironmentVariableCredentialsProvider"
OF_A_TOKEN_FILE = f"{PROVIDERS}.WebIdentityTokenFileCredentialsProvider"
OF_THE_MACHINE = "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider"
TRUE = ("1", "true", "on", "yes", "y")
"""What Seamline's and Delta's clients take for yes, in any case."""
CONNECTOR = {
    # Locations are spelled s3:// everywhere.
    "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "mapreduce.outputcommitter.factory.scheme.s3": "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory",
    # A file is put in its place, whole, when the job is committed: renaming would be a copy, which a task that was
    # given up could still make after its file was counted.
    "fs.s3a.committer.name": "magic",
    "fs.s3a.committer.magic.track.commits.in.memory.enabled": "true",
}
COMMITTER = {
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    "spark.sql.parquet.output.committer.class": (
        "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter"
    ),
}


def s3a_settings(environ: Mapping[str, str], url: str) -> Mapping[str, str]:
    """Return Spark's settings for a warehouse at ``url``; none where it is on disk, or in another kind of store.

    SetupError for an endpoint that the environment does not allow.
    """
    if not is_in_bucket(url):
        return {}
    found = {**CONNECTOR, "fs.s3a.aws.credentials.provider": choose_provider(environ)}
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if endpoint := environ.get("AWS_ENDPOINT_URL"):
        require_allowed(endpoint, environ)
        found["fs.s3a.endpoint"] = endpoint
        virtual = is_true(environ.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", ""))
        found["fs.s3a.path.style.access"] = str(not virtual).lower()
        # What signs a request must name one; a server that has none takes any.
        region = region or "us-east-1"
    if region:
        found["fs.s3a.endpoint.region"] = region
    return {**{f"spark.hadoop.{name}": value for name, value in found.items()}, **COMMITTER}


def choose_provider(environ: Mapping[str, str]) -> str:
    """Choose who is asked for keys, in the order of the tables' own client."""
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        return OF_THE_ENVIRONMENT
    if environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        return OF_A_TOKEN_FILE
    return OF_THE_MACHINE


def require_allowed(endpoint: str, environ: Mapping[str, str]) -> None:
    """Raise SetupError for an endpoint without encryption that nobody has allowed, as the tables' own client does."""
    if endpoint.lower().startswith("http://") and not is_true(environ.get("AWS_ALLOW_HTTP", "")):
        raise SetupError(
            f"AWS_ENDPOINT_URL is {endpoint}, over which requests are not encrypted.",
            hint="use https, or set AWS_ALLOW_HTTP=true where the network is yours.",
        )


def is_true(text: str) -> bool:
    """Read a setting that is yes or no."""
    return text.strip().lower() in TRUE
