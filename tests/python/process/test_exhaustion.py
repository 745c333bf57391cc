"""Memory and threads that cannot be had, at each point where the extension asks for them.

A preloaded library makes the n-th allocation fail, for every n (helpers/fail_allocations.cpp): each
failure is a MemoryError, leaves nothing behind, and the same call succeeds afterwards.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import arrowdl
import numpy as np
import pyarrow as pa
import pytest
from arrowdl import _core
from helpers.fake_cuda import FOLDERS

HELPERS = Path(__file__).parents[1] / "helpers"
COMPILER = (sysconfig.get_config_var("CXX") or "c++").split()[0]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the library is made for glibc"),
    pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs a C++ compiler"),
    pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="AddressSanitizer allocates itself"),
]


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "libfail_allocations.so"
    source = HELPERS / "fail_allocations.cpp"
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([COMPILER, *flags, "-o", library, source, "-ldl"], check=True, timeout=100)
    return library


def run(shim: Path, tmp_path: Path, *arguments: str) -> str:
    """What helpers/allocations.py says. Where it dies, the last point of its log is why."""
    log = tmp_path / "log"
    with log.open("w+b") as errors:
        done = subprocess.run(
            [sys.executable, HELPERS / "allocations.py", *arguments],
            env={
                **os.environ,
                "LD_PRELOAD": str(shim),
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            },
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
            timeout=400,
        )
    assert done.returncode == 0, log.read_text()[-3000:] + done.stdout
    return done.stdout


# One use or two of each kind of code: the others are in the whole sweep.
QUICK = ["dict_to_arrow", "numpy_of_arrays", "streams_prefetched", "blocks", "devices", "refusals"]


def test_some_allocations_fail(shim: Path, tmp_path: Path) -> None:
    said = run(shim, tmp_path, "extension", *QUICK)
    points, _, rest = said.rpartition("\n")[0].rpartition("\n")[2].partition(" ")
    assert rest == "points", said
    assert int(points) > 300
    assert said.count("\n") == 1, said


@pytest.mark.slow
def test_each_allocation_fails(shim: Path, tmp_path: Path) -> None:
    said = run(shim, tmp_path, "extension")
    assert said.count("\n") == 1, said
    assert int(said.split()[0]) > 2_000


@pytest.mark.slow
def test_each_allocation_for_frameworks_fails(shim: Path, tmp_path: Path) -> None:
    said = run(shim, tmp_path, "extension", "torch_tensors", "torch_jagged", "torch_blocks")
    assert said.count("\n") == 1, said
    said = run(shim, tmp_path, "extension", "jax_arrays")
    assert said.count("\n") == 1, said


@pytest.mark.slow
@pytest.mark.skipif(not all(map(Path.exists, FOLDERS)), reason="needs the fake drivers")
def test_each_allocation_for_a_device_fails(
    shim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join(map(str, FOLDERS)))
    uses = ["cuda_copies", "cuda_streams", "cuda_nulls", "cuda_exports"]
    said = run(shim, tmp_path, "extension", *uses)
    assert said.count("\n") == 1, said


def test_threads_that_cannot_start(shim: Path, tmp_path: Path) -> None:
    """Who needs one says so; helpers and late releases do without."""
    assert run(shim, tmp_path, "threads") == "done\n"


def test_a_memory_error_says_how_many_bytes() -> None:
    before = _core.live_objects()
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array([2**40], pa.int64()), pa.array([1], pa.int64())
    )
    with pytest.raises(MemoryError, match=rf"cannot allocate {8 * 2**40} bytes"):
        arrowdl.to_numpy(runs)
    huge = np.lib.stride_tricks.as_strided(np.zeros(1), (2**20, 2**21), (0, 0))
    with pytest.raises(MemoryError, match=rf"cannot allocate {8 * 2**41} bytes"):
        arrowdl.to_arrow_device(huge)
    assert _core.live_objects() == before
