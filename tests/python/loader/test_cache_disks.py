"""A cache on real disks that are read-only or full: one warning, no cache, and the right rows."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Mounts are private to the process, and end with it.
PROGRAM = """
import io, json, logging, subprocess, sys
import arrowdl, numpy, pyarrow as pa, pyarrow.parquet as pq
from fsspec.implementations.memory import MemoryFileSystem

logging.basicConfig(format="%(message)s")
folder, kind = sys.argv[1:]
store, ids = MemoryFileSystem(), list(range(4_000))
noise = pa.array([numpy.random.default_rng(i).bytes(500) for i in ids], pa.binary(500))
sink = io.BytesIO()
table = pa.table({"id": ids, "noise": noise})
pq.write_table(table, sink, row_group_size=500, compression="none", use_dictionary=False)
store.pipe("/rows.parquet", sink.getvalue())

def mount(*options):
    subprocess.run(["mount", *options, folder], check=True)

def read():
    loader = arrowdl.Loader(
        "/rows.parquet",
        100,
        storage=arrowdl.Storage(filesystem=store, cache=folder, cache_bytes=10**8),
        framework="numpy",
    )
    return all(
        [i for batch in loader for i in batch["id"].tolist()] == ids for _ in range(2)
    )

mount("-t", "tmpfs", "-o", "size=256k" if kind == "full" else "size=64m", "tmpfs")
if kind == "read-only, filled":
    assert read()
if kind != "full":
    mount("-o", "remount,ro")
print(json.dumps(read()))
"""


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    mounts = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(mounts, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="mounting needs root, and a system that lets it")
@pytest.mark.parametrize(
    ("kind", "warning"),
    [("full", "ENOSPC"), ("read-only", "EROFS"), ("read-only, filled", None)],
)
def test_rows_are_right_without_room(kind: str, warning: str | None, tmp_path: Path) -> None:
    command: list[Any] = ["unshare", "-m", sys.executable, "-c", PROGRAM, tmp_path, kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) is True
    told = [line for line in done.stderr.splitlines() if "is not used" in line]
    assert len(told) == (kind != "read-only, filled"), done.stderr
    assert warning is None or warning in told[0]
