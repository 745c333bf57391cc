"""Stores of Delta Lake tables by pyarrow's clients, from the options of Rust's object_store.

The file system of deltalake serves one request at a time, and holds the interpreter meanwhile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from arrowdl.loader._storage.urls import open_store

if TYPE_CHECKING:
    import pyarrow.fs as fs

_TRUE = {"1", "true", "on", "yes", "y"}
_FALSE = {"0", "false", "off", "no", "n"}
# Options of writers and connections, which change no byte that is read; the Loader tries again
# itself.
_IDLE = {
    *("allow_http", "max_retries", "retry_timeout", "timeout", "connect_timeout"),
    *("backoff_config.init_backoff", "backoff_config.max_backoff", "backoff_config.base"),
    *("pool_idle_timeout", "pool_max_idle_per_host", "http1_only", "http2_only", "user_agent"),
    *("http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle"),
    *("copy_if_not_exists", "conditional_put", "disable_tagging", "checksum_algorithm"),
    *("unsigned_payload", "s3_allow_unsafe_rename", "s3_locking_provider", "concurrency_limit"),
    *("allow_unsafe_rename", "delta_dynamo_table_name", "endpoint_url_dynamodb"),
}
# Without their prefixes, "aws_" and so on.
_S3_NAMES = {
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "session_token": "session_token",
    "token": "session_token",
    "region": "region",
    "default_region": "region",
    "endpoint": "endpoint_override",
    "endpoint_url": "endpoint_override",
    "endpoint_url_s3": "endpoint_override",
    "skip_signature": "anonymous",
    "virtual_hosted_style_request": "force_virtual_addressing",
}
_GCS_NAMES = {"base_url": "endpoint_override", "skip_signature": "anonymous"}
_AZURE_NAMES = {
    "account_name": "account_name",
    "account_key": "account_key",
    "access_key": "account_key",
    "master_key": "account_key",
    "sas_key": "sas_token",
    "sas_token": "sas_token",
    "endpoint": "endpoint",
    "client_id": "client_id",
    "client_secret": "client_secret",
    "tenant_id": "tenant_id",
    "authority_id": "tenant_id",
}
_S3_KEYS = ("access_key", "secret_key", "session_token")
_SWITCHES = ("anonymous", "force_virtual_addressing")
# Variables that object_store reads and pyarrow's clients do not, or not alike.
_S3_VARIABLES = re.compile(
    r"AWS_(?:ENDPOINT|SKIP_SIGNATURE|VIRTUAL_HOSTED_STYLE_REQUEST|S3_EXPRESS|REQUEST_PAYER"
    r"|SSE_CUSTOMER_KEY_BASE64|METADATA_ENDPOINT)$"
)
_GCS_VARIABLES = re.compile(r"GOOGLE_(?:SERVICE_ACCOUNT\w*|BASE_URL|SKIP_SIGNATURE)$")
_AZURE_VARIABLES = re.compile(
    r"AZURE_(?:STORAGE_\w+|ENDPOINT|SKIP_SIGNATURE|USE_AZURE_CLI|USE_FABRIC_ENDPOINT"
    r"|MSI_ENDPOINT|IDENTITY_ENDPOINT)$"
)


def open_table_store(
    url: str,  # Percent-encoded, as deltalake has it
    options: Mapping[str, Any],  # the table's ``storage_options``
) -> fs.FileSystem | None:
    """Make pyarrow's file system of what is below a table's URL, with paths below it.

    It is None if an option or the URL has a meaning that pyarrow's client does not know.
    """
    import pyarrow.fs as fs

    parts = urlsplit(url)
    make = _SCHEMES.get(parts.scheme)
    if make is None or not parts.netloc or parts.query or parts.fragment:
        return None
    chosen = make(parts.netloc, options)
    if chosen is None or _needs_proxy(parts.netloc, chosen):
        return None
    scheme = "az" if make is _choose_azure and parts.scheme in ("azure", "adl") else parts.scheme
    root = f"{scheme}://{parts.netloc}{unquote(parts.path)}"
    try:
        store = open_store(root, chosen)
    except (ImportError, ValueError):
        return None
    if isinstance(store.filesystem, fs.PyFileSystem):  # fsspec's
        return None
    return fs.SubTreeFileSystem(store.to_inner_path(root).rstrip("/"), store.filesystem)


def _choose_s3(bucket: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
    chosen = _translate(options, _S3_VARIABLES, re.compile("^aws_"), _S3_NAMES)
    if chosen is None:
        return None
    if chosen.get("anonymous"):
        chosen = {name: value for name, value in chosen.items() if name not in _S3_KEYS}
    keys = [name for name in _S3_KEYS if name in chosen]
    if keys not in ([], [*_S3_KEYS], [*_S3_KEYS[:2]]):  # the rest is of another place
        return None
    if "endpoint_override" not in chosen:
        return chosen
    endpoint = urlsplit(chosen["endpoint_override"])
    host = endpoint.netloc
    if endpoint.scheme not in ("http", "https") or endpoint.path.strip("/"):
        return None
    if chosen.get("force_virtual_addressing"):  # the host has the bucket; pyarrow adds it
        if not host.startswith(f"{bucket}."):
            return None
        host = host.removeprefix(f"{bucket}.")
    return {**chosen, "endpoint_override": f"{endpoint.scheme}://{host}"}


def _choose_gcs(bucket: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
    chosen = _translate(options, _GCS_VARIABLES, re.compile("^google_"), _GCS_NAMES)
    if chosen is None:
        return None
    endpoint = chosen.get("endpoint_override")
    if endpoint:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or parts.path.strip("/"):
            return None
        chosen |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    return chosen


def _choose_azure(host: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
    prefix = re.compile("^azure_(?:storage_)?")
    chosen = _translate(options, _AZURE_VARIABLES, prefix, _AZURE_NAMES)
    if chosen is None or not ("account_name" in chosen or "@" in host):
        return None
    account = chosen.get("account_name") or host.partition("@")[2].partition(".")[0]
    endpoint = urlsplit(chosen.pop("endpoint", ""))
    if endpoint.netloc:
        if endpoint.path.strip("/") != account:  # as emulators have it
            return None
        for kind in ("blob", "dfs"):
            chosen[f"{kind}_storage_authority"] = endpoint.netloc
            chosen[f"{kind}_storage_scheme"] = endpoint.scheme
    if "sas_token" in chosen:
        chosen["sas_token"] = f"?{chosen['sas_token'].lstrip('?')}"
    return chosen


_SCHEMES: dict[str, Callable[[str, Mapping[str, Any]], dict[str, Any] | None]] = {
    **dict.fromkeys(("s3", "s3a"), _choose_s3),
    "gs": _choose_gcs,
    **dict.fromkeys(("az", "azure", "adl", "abfs", "abfss"), _choose_azure),
}


def _translate(
    options: Mapping[str, Any],
    variables: re.Pattern[str],  # of the names of variables
    prefix: re.Pattern[str],  # that names may have
    names: Mapping[str, str],
) -> dict[str, Any] | None:
    """Return options, and variables of the environment, by pyarrow's names, if all are known."""
    chosen: dict[str, Any] = {}
    environment = {name: text for name, text in os.environ.items() if variables.match(name)}
    for source in (environment, options):
        translated: dict[str, Any] = {}
        for name, value in source.items():
            short = prefix.sub("", name.lower(), count=1)
            if short in _IDLE or value == "":
                continue
            keyword = names.get(short)
            if (
                keyword is None
                or not isinstance(value, str)
                or translated.get(keyword, value) != value
            ):
                return None
            translated[keyword] = value
        chosen |= translated
    for name in _SWITCHES:
        if name in chosen:
            text = chosen[name].lower()
            if text not in _TRUE | _FALSE:
                return None
            chosen[name] = text in _TRUE
    return chosen


def _needs_proxy(host: str, chosen: Mapping[str, Any]) -> bool:
    """Whether deltalake sends requests through a proxy of the environment: pyarrow does not."""
    proxies = getproxies()
    endpoint = chosen.get("endpoint_override") or chosen.get("blob_storage_authority") or host
    target = str(endpoint).partition("://")[2] or str(endpoint)
    return bool({"http", "https", "all"} & set(proxies)) and not proxy_bypass(target)
