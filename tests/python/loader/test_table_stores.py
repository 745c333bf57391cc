"""Options of Rust's object_store, and its variables, as those of pyarrow's clients; or refused."""

from __future__ import annotations

import os
from typing import Any

import pyarrow.fs as fs
import pytest
from arrowdl.loader._storage.secrets import is_secret
from arrowdl.loader._storage.table_stores import open_table_store

KEYS = {"access_key_id": "AKIAOFATEST", "secret_access_key": "secretofatest"}
REGION = {"region": "eu-north-1"}
LOCAL = {"endpoint": "http://127.0.0.1:9", "allow_http": "true"}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def open_options(url: str, options: dict[str, str]) -> dict[str, Any] | None:
    """The options of pyarrow's file system that are set, and the path in it."""
    made = open_table_store(url, options)
    if made is None:
        return None
    assert isinstance(made, fs.SubTreeFileSystem)
    prefix, base = made.base_path, made.base_fs
    if isinstance(base, fs.SubTreeFileSystem):
        prefix, base = base.base_path + prefix, base.base_fs
    _, arguments = base.__reduce__()[:2]
    found: dict[str, Any] = next(own for own in arguments if isinstance(own, dict))
    return {name: own for name, own in found.items() if own} | {"path": prefix}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (KEYS | REGION, {"access_key": "AKIAOFATEST", "secret_key": "secretofatest"}),
        (
            {f"AWS_{name.upper()}": value for name, value in (KEYS | REGION).items()}
            | {"AWS_SESSION_TOKEN": "tokenofatest"},
            {"access_key": "AKIAOFATEST", "session_token": "tokenofatest", "region": "eu-north-1"},
        ),
        (LOCAL | KEYS, {"scheme": "http", "endpoint_override": "127.0.0.1:9"}),
        (
            {"aws_endpoint_url": "https://minio.example/", "skip_signature": "YES"} | KEYS,
            {"scheme": "https", "endpoint_override": "minio.example", "anonymous": True},
        ),
        (
            {"endpoint": "https://bucket.example:1", "aws_virtual_hosted_style_request": "true"}
            | KEYS,
            {"endpoint_override": "example:1", "force_virtual_addressing": True},
        ),
        (
            REGION | KEYS | {"timeout": "9s", "AWS_S3_ALLOW_UNSAFE_RENAME": "true", "token": ""},
            {"region": "eu-north-1"},
        ),
    ],
)
def test_options_of_s3(options: dict[str, str], expected: dict[str, Any]) -> None:
    found = open_options("s3://bucket/a%20b/%C3%BC%2525/", options)
    assert found is not None
    assert found["path"] == "bucket/a b/ü%25/"
    assert expected.items() <= found.items()
    if "anonymous" in expected:
        assert "secret_key" not in found


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("s3://bucket/t", KEYS | REGION | {"sse_customer_key_base64": "a2V5"}),
        ("s3://bucket/t", KEYS | REGION | {"unheard_of": "1"}),
        ("s3://bucket/t", KEYS | REGION | {"aws_region": "us-east-1"}),
        ("s3://bucket/t", REGION | {"access_key_id": "AKIAOFATEST"}),
        ("s3://bucket/t", REGION | {"session_token": "tokenofatest"}),
        ("s3://bucket/t", KEYS | REGION | {"skip_signature": "perhaps"}),
        ("s3://bucket/t", KEYS | {"endpoint": "http://127.0.0.1:9/below"}),
        ("s3://bucket/t", KEYS | LOCAL | {"virtual_hosted_style_request": "true"}),
        ("s3://bucket/t?version=1", KEYS | REGION),
        ("s3:///t", KEYS | REGION),
        ("r2://bucket/t", KEYS | REGION),
        ("gs://bucket/t", {"google_service_account": "/key.json"}),
        ("az://box/t", {"account_key": "a2V5"}),
        ("az://box/t", {"account_name": "one", "use_azure_cli": "true"}),
        ("abfss://box@one.dfs.core.windows.net/t", {"account_key": "a2V5", "sas_key": "sv=1"}),
        ("https://one.blob.core.windows.net/box/t", {"account_key": "a2V5"}),
    ],
)
def test_what_pyarrow_does_not_know_is_left_to_deltalake(url: str, options: dict[str, str]) -> None:
    assert open_table_store(url, options) is None


def test_options_of_google() -> None:
    options = {"google_base_url": "http://127.0.0.1:9", "google_skip_signature": "true"}
    found = open_options("gs://box/t", options)
    assert found is not None
    assert found["path"] == "box/t/"
    assert (found["endpoint_override"], found["scheme"]) == ("127.0.0.1:9", "http")
    assert found["anonymous"]


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("az://box/t", {"account_name": "one", "azure_storage_account_key": "a2V5"}),
        ("azure://box/t", {"AZURE_STORAGE_ACCOUNT_NAME": "one", "master_key": "a2V5"}),
        ("abfss://box@one.dfs.core.windows.net/t", {"access_key": "a2V5"}),
        (
            "az://box/t",
            {"account_name": "one", "account_key": "a2V5", "endpoint": "http://127.0.0.1:9/one"},
        ),
    ],
)
def test_options_of_azure(url: str, options: dict[str, str]) -> None:
    found = open_options(url, options)
    assert found is not None
    assert found["path"] == "box/t/"
    assert (found["account_name"], found["account_key"]) == ("one", "a2V5")
    is_local = "endpoint" in options
    assert (found["blob_storage_authority"] == "127.0.0.1:9") == is_local


def test_variables_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    found = open_options("s3://bucket/t", KEYS)
    assert found is not None
    assert found["endpoint_override"] == "127.0.0.1:9"
    found = open_options("s3://bucket/t", KEYS | {"endpoint": "http://127.0.0.1:8"})
    assert found is not None
    assert found["endpoint_override"] == "127.0.0.1:8", "an option goes first"
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "one")
    monkeypatch.setenv("AZURE_STORAGE_SAS_KEY", "sv=1&sig=abc")
    found = open_options("az://box/t", {})
    assert found is not None
    assert found["sas_token"] == "?sv=1&sig=abc"
    monkeypatch.setenv("AWS_REQUEST_PAYER", "requester")
    assert open_table_store("s3://bucket/t", KEYS) is None


def test_a_proxy_of_the_environment_is_left_to_deltalake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert open_table_store("s3://bucket/t", KEYS | REGION) is None
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert open_table_store("s3://bucket/t", KEYS | LOCAL) is not None


@pytest.mark.parametrize(
    "name",
    [
        *("secret_access_key", "AWS_SESSION_TOKEN", "aws_sse_customer_key_base64"),
        *("azure_storage_sas_key", "sas_token", "azure_storage_master_key", "client_secret"),
        *("google_service_account_key", "server_side_encryption_customer_key_base64"),
    ],
)
def test_secrets_are_known_by_their_names(name: str) -> None:
    assert is_secret(name)
