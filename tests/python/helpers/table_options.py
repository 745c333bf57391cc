"""Options of deltalake and pyiceberg for tables in an S3 server of this machine."""

from __future__ import annotations

from typing import Any

from helpers.s3_server import KEYS


def list_delta_options(port: int) -> dict[str, str]:
    """The storage_options of a Delta table at a port."""
    return {
        "endpoint": f"http://127.0.0.1:{port}",
        "allow_http": "true",
        "region": "us-east-1",
        "access_key_id": KEYS["access_key"],
        "secret_access_key": KEYS["secret_key"],
        "conditional_put": "etag",
        "max_retries": "0",  # they are the Loader's
    }


def list_iceberg_options(port: int) -> dict[str, str]:
    """The properties of an Iceberg table's files at a port."""
    return {
        "s3.endpoint": f"http://127.0.0.1:{port}",
        "s3.region": "us-east-1",
        "s3.access-key-id": KEYS["access_key"],
        "s3.secret-access-key": KEYS["secret_key"],
        "s3.retry-strategy-impl": f"{__name__}.{try_once.__name__}",
    }


def try_once() -> Any:
    """A strategy of pyarrow's S3 client, which would wait for seconds between its tries."""
    import pyarrow.fs as fs

    return fs.AwsStandardS3RetryStrategy(max_attempts=1)
