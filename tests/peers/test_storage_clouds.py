"""Azure (Azurite 3.37) and Hugging Face (a double of the Hub): rows and secrets.

HDFS has no server in a registry; what its URLs become is tested on a double of pyarrow's client.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import arrowdl
import pyarrow as pa
import pyarrow.fs as fs
import pytest
from arrowdl.loader import FilePlan, Retries
from deltalake import DeltaTable, write_deltalake
from helpers.cloud_servers import (
    ACCOUNT,
    ACCOUNT_KEY,
    HUB_TOKEN,
    Azurite,
    Hub,
    find_azurite,
    run_hub,
)
from helpers.fault_proxy import Schedule, run_proxy
from helpers.options import group
from helpers.stores import IPC, PARQUET, ROWS, dump
from huggingface_hub import HfFileSystem

ALL = list(range(3 * ROWS))
FILES = {**PARQUET, **IPC}
PATIENT = Retries(tries=400, deadline=60.0, first_wait=0.001, most_wait=0.02)


def load(source: Any, **options: Any) -> arrowdl.Loader:
    options = {"retries": PATIENT, "columns": ["id"], **options}
    return arrowdl.Loader(source, 16, framework="numpy", **group(**options))


def read(source: Any, **options: Any) -> list[int]:
    loader = load(source, **options)
    try:
        return [i for batch in loader for i in batch["id"].tolist()]
    finally:
        loader.close()


def check_rows(base: str, **options: Any) -> None:
    """Read files, folders and patterns, with workers, a cache and a plan."""
    assert read(f"{base}/b", **options) == ALL
    assert read(f"{base}/b/k=1/1.parquet", **options) == ALL[40:80]
    assert read(f"{base}/b/*/*.parquet", **options) == ALL
    assert read(f"{base}/c/?.arrow", **options) == ALL
    assert read(f"{base}/c", columns=None, **options) == ALL
    assert sorted(read(f"{base}/b", shuffle=True, num_workers=1, **options)) == ALL
    loader = load(f"{base}/b", **options)
    assert read(f"{base}/b", plan=loader.plan(), **options) == ALL
    with pytest.raises(FileNotFoundError, match="no file"):
        read(f"{base}/nothing/*.parquet", **options)


def show(error: BaseException | None) -> str:
    """Everything that is shown of an error, and of what it is chained to."""
    texts: list[str] = []
    while error is not None:
        texts += [*traceback.format_exception(error), repr(error), str(vars(error))]
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


# ---- Azure


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    command = find_azurite()
    if command is None:
        pytest.skip("Azurite needs Node, and npm when .venv-storage is made: rm -r .venv-storage")
    server = Azurite(command, tmp_path_factory.mktemp("azurite"))
    server.put("box", FILES)
    yield server
    server.kill()


@pytest.mark.parametrize("scheme", ["az", "abfs", "abfss"])
def test_azure_by_pyarrow(azurite: Azurite, scheme: str) -> None:
    options = azurite.make_options(azurite.port)
    for base in (f"{scheme}://box", f"{scheme}://box@{ACCOUNT}.dfs.core.windows.net"):
        assert read(f"{base}/b", storage_options=options) == ALL
    if scheme == "abfss":
        check_rows("abfss://box", storage_options=options)


def test_azure_by_adlfs_and_a_connection_string(azurite: Azurite) -> None:
    options = {"connection_string": azurite.make_connection_string(azurite.port)}
    check_rows("az://box", storage_options=options)
    assert read("abfs://box/b", storage_options=options) == ALL


def test_azure_by_file_systems(azurite: Azurite) -> None:
    import adlfs

    string = azurite.make_connection_string(azurite.port)
    made = adlfs.AzureBlobFileSystem(connection_string=string)
    native = fs.AzureFileSystem(**azurite.make_options(azurite.port))
    for filesystem in (made, native):
        assert read("box/b", filesystem=filesystem) == ALL


@pytest.mark.parametrize("scheme", ["az", "abfss"])
def test_delta_tables_of_azure(azurite: Azurite, scheme: str) -> None:
    """By a key and by a signature, with pyarrow's client."""
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    uri = {"az": "az://box/a b", "abfss": f"abfss://box@{ACCOUNT}.dfs.core.windows.net/c"}[scheme]
    place = {"endpoint": f"http://127.0.0.1:{azurite.port}/{ACCOUNT}", "allow_http": "true"}
    options = {"account_name": ACCOUNT, "account_key": ACCOUNT_KEY, **place}
    rows = pa.table({"id": range(6), "part": ["a b", "ü/x"] * 3})
    write_deltalake(uri, rows, partition_by=["part"], storage_options=options)
    may = AccountSasPermissions(read=True, list=True)
    kinds = ResourceTypes(container=True, object=True)
    end = datetime.now(UTC) + timedelta(days=1)
    sas = generate_account_sas(ACCOUNT, ACCOUNT_KEY, kinds, may, end)
    signature = sas.partition("sig=")[2].partition("&")[0]
    signed = {"account_name": ACCOUNT, "sas_token": sas, **place}
    for chosen in (options, signed):
        loader = load(DeltaTable(uri, storage_options=chosen))
        assert sorted(i for batch in loader for i in batch["id"].tolist()) == list(range(6))
        assert isinstance(loader._source.scanner.version.filesystem, fs.SubTreeFileSystem)
        shown = [repr(loader), str(loader.state_dict()), repr(loader.plan())]
        assert not [text for text in shown if ACCOUNT_KEY in text or signature in text]
    with run_proxy(azurite.port) as proxy:
        table = DeltaTable(uri, storage_options=signed)
        table._storage_options["endpoint"] = f"http://127.0.0.1:{proxy.server_port}/{ACCOUNT}"
        loader = load(table, retries=Retries(tries=2, first_wait=0.001))
        proxy.refusal = 403, b"<Error/>"
        with pytest.raises(OSError, match="403") as caught:
            list(loader)
        assert signature not in show(caught.value)
        assert unquote(signature) not in show(caught.value)


def test_faults_of_azure(azurite: Azurite) -> None:
    with run_proxy(azurite.port) as proxy:
        loader = load("az://box/b", storage_options=azurite.make_options(proxy.server_port))
        proxy.schedule = Schedule(7, 0.2, ("503", "500", "reset", "delay"))
        assert [i for batch in loader for i in batch["id"].tolist()] == ALL


def test_faults_of_azure_by_adlfs(azurite: Azurite) -> None:
    """Azure's client of Python, and what adlfs makes of its errors."""
    with run_proxy(azurite.port) as proxy:
        options = {"connection_string": azurite.make_connection_string(proxy.server_port)}
        proxy.schedule = Schedule(7, 0.2, ("503", "500", "reset", "truncate", "delay"))
        assert read("az://box/b", storage_options=options) == ALL
        assert proxy.schedule.seen["503"]
        assert proxy.schedule.seen["reset"]
        proxy.schedule = Schedule(7, 1.0, ("503",))
        once = Retries(tries=2, first_wait=0.001)
        with pytest.raises(OSError, match=r"'az://box/b' failed 2 times") as caught:
            read("az://box/b", storage_options=options, retries=once)
        assert ACCOUNT_KEY not in show(caught.value)


def test_a_blob_that_changed_is_an_error(azurite: Azurite) -> None:
    azurite.put("changing", {"a.parquet": dump(0), "b.parquet": dump(ROWS)})
    loader = load("az://changing", storage_options=azurite.make_options(azurite.port))
    azurite.put("changing", {"b.parquet": dump(7)})
    with pytest.raises(OSError, match=r"'az://changing/b.parquet' has changed"):
        list(loader)


def test_keys_and_connection_strings_of_azure_are_nowhere(
    azurite: Azurite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "arrowdl.loader")
    string = azurite.make_connection_string(azurite.port)
    once = Retries(tries=2, first_wait=0.0)
    shown = []
    for options in (
        {"connection_string": string},
        azurite.make_options(azurite.port),
    ):
        loader = load("az://box/b", storage_options=options)
        plan = loader.plan()
        shown += [repr(loader), str(loader.state_dict()), str(loader.stats()), repr(plan)]
        shown += [str(plan.files), repr(loader._source), repr(loader._options)]
    for options in (
        {"connection_string": string.replace("AccountName", "AcountName")},
        {"connection_string": f"AccountKey={ACCOUNT_KEY}"},
        azurite.make_options(azurite.port, account_name="other"),
        azurite.make_options(azurite.port, oops=1),
        {**azurite.make_options(azurite.port), "account_key": f"{ACCOUNT_KEY}no base64"},
    ):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            load("az://box/b", storage_options=options, retries=once)
        shown.append(show(caught.value))
    shown.append(caplog.text)
    for text in shown:
        assert ACCOUNT_KEY not in text
        assert ACCOUNT_KEY[:20] not in text


# ---- Hugging Face


@pytest.fixture
def hub() -> Iterator[Hub]:
    with run_hub("user/name", FILES) as hub:
        yield hub


def test_hugging_face(hub: Hub) -> None:
    options = {"endpoint": hub.address, "token": HUB_TOKEN}
    check_rows("hf://datasets/user/name", storage_options=options)
    assert read("hf://datasets/user/name@main/b", storage_options=options) == ALL
    hub.requests.clear()
    loader = load("hf://datasets/user/name/b", storage_options=options)
    files = [path for path in hub.requests if "/resolve/" in path]
    assert len(files) == 3, "one read for each footer"
    shown = [repr(loader), str(loader.state_dict()), repr(loader.plan()), str(loader.plan().files)]
    hub.files["b/k=1/1.parquet"] = dump(7)
    with pytest.raises(OSError, match=r"k=1/1\.parquet' has changed") as caught:
        list(loader)
    shown.append(show(caught.value))
    with pytest.raises(Exception) as wrong:  # noqa: PT011
        load("hf://datasets/user/name/b", storage_options={**options, "token": f"{HUB_TOKEN}x"})
    shown.append(show(wrong.value))
    assert not [text for text in shown if HUB_TOKEN in text]


def read_state(loader: arrowdl.Loader) -> dict[str, Any]:
    return dict(json.loads(json.dumps(loader.state_dict())))


@pytest.mark.parametrize(
    ("revision", "way"),
    [
        ("", "url"),
        ("@main", "file system"),
        ("@v1", "url"),
        (f"@{'0' * 40}", "file system"),
        ("@refs%2Fconvert%2Fp", "url"),
    ],
)
def test_revisions_of_hugging_face(hub: Hub, revision: str, way: str) -> None:
    """A branch is the commit that it is at when the Loader is made, and states name it."""
    hub.branches.update({"v1": "0" * 40, "refs/convert/p": "0" * 40})
    options: dict[str, Any] = {"storage_options": {"endpoint": hub.address, "token": HUB_TOKEN}}
    if way == "file system":
        made = HfFileSystem(**options["storage_options"], skip_instance_cache=True)
        options = {"filesystem": made}
    base = f"{'hf://' * (way == 'url')}datasets/user/name"
    for folder in ("b/*/*.parquet" if way == "url" else "b", "c"):
        url = f"{base}{revision}/{folder}"
        loader = load(url, **options)
        state, plan = read_state(loader), loader.plan()
        assert state["snapshot"] == f"Hugging Face dataset 'user/name', revision {'0' * 40}"
        assert read_state(load(url, plan=plan, **options)) == state
        hub.commit("a", {path: dump(1_000) for path in PARQUET} | IPC)  # the branch moves on
        assert [i for batch in loader for i in batch["id"].tolist()] == ALL
        assert read(url, plan=plan, **options) == ALL
        load(f"{base}@{'0' * 40}/{folder}", **options).load_state_dict(state)
        if revision in ("", "@main"):
            with pytest.raises(ValueError, match=r"revision 0{40}, and .* revision a{40}: other"):
                load(url, **options).load_state_dict(state)
        hub.branches["main"] = "0" * 40


@pytest.mark.parametrize("way", ["url", "file system"])
def test_a_plan_of_another_revision(hub: Hub, way: str, tmp_path: Path) -> None:
    """It is an error that names both, unless a branch moved since the plan was made."""
    hub.branches.update({"v1": "0" * 40, "dev": "0" * 40})
    hub.commit("a", {path: dump(1_000) for path in PARQUET} | IPC)  # of main
    options: dict[str, Any] = {"storage_options": {"endpoint": hub.address, "token": HUB_TOKEN}}
    if way == "file system":
        made = HfFileSystem(**options["storage_options"], skip_instance_cache=True)
        options = {"filesystem": made}
    base = f"{'hf://' * (way == 'url')}datasets/user/name"
    load(f"{base}@dev/b", **options).plan().save(tmp_path / "plan.json")
    plan = FilePlan.load(tmp_path / "plan.json")
    for revision in ("main", "", "a" * 40):
        at = "" if len(revision) == 40 else f", which is at {'a' * 40}"
        text = f"the plan has revision {'0' * 40} of .* names '{revision or 'main'}'{at}: give"
        with pytest.raises(ValueError, match=text) as caught:
            load(f"{base}{revision and '@'}{revision}/b", plan=plan, **options)
        assert HUB_TOKEN not in show(caught.value)
    for revision in ("v1", "0" * 40):
        assert read(f"{base}@{revision}/b", plan=plan, **options) == ALL
    hub.branches["dev"] = "a" * 40
    hub.requests.clear()
    loader = load(f"{base}@dev/b", plan=plan, **options)
    assert not hub.requests
    assert loader.plan() == plan


def test_a_revision_that_is_not_there(hub: Hub) -> None:
    options = {"endpoint": hub.address, "token": HUB_TOKEN}
    with pytest.raises(FileNotFoundError, match="nothing"):
        load("hf://datasets/user/name@nothing/b", storage_options=options)


# ---- HDFS


class Hdfs(fs.FileSystemHandler):  # type: ignore[misc]
    """Stands in for pyarrow's HadoopFileSystem, which needs Hadoop's library and Java."""

    made: dict[str, Any] = {}  # noqa: RUF012


def test_urls_of_hdfs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path, data in PARQUET.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(data)

    def make(**options: Any) -> fs.FileSystem:
        Hdfs.made = options
        return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    monkeypatch.setattr(fs, "HadoopFileSystem", make)
    assert read("hdfs://name:8020/b", storage_options={"user": "someone"}) == ALL
    assert Hdfs.made == {"host": "name", "port": 8020, "user": "someone"}
    assert read("viewfs://cluster/b/*/*.parquet?replication=1") == ALL
    assert Hdfs.made["host"] == "cluster"
