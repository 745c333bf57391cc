"""Fixtures for all Python tests: nothing leaks, 64-bit JAX, the fake CUDA driver."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers.fake_cuda import ENDING, FOLDERS, HIPRTC, PREAMBLE
from helpers.processes import run_python

# A shell starts what runs in the background with Ctrl-C ignored, which processes inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if find_spec("hypothesis"):  # the same cases each time, however slow the machine is
    from hypothesis import settings

    settings.register_profile("arrowdl", derandomize=True, deadline=None)
    settings.load_profile("arrowdl")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Functions as parameters are named, not shown with an address: workers must agree on ids."""
    return getattr(val, "__qualname__", None) if callable(val) else None


def _skip_what_lacks_a_library() -> Generator[None]:
    """Without the libraries that ARROWDL_WITHOUT names, a test that needs one is skipped."""
    without = os.environ.get("ARROWDL_WITHOUT", "").split()
    try:
        return (yield)
    except Exception as error:
        found = re.search(r"No module named '(\w+)", traceback.format_exc())
        if found is None or found[1] not in without:
            raise
        traceback.clear_frames(error.__traceback__)  # arrays that the fixtures below would count
        pytest.skip(f"{found[1]} is not installed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    return (yield from _skip_what_lacks_a_library())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    return (yield from _skip_what_lacks_a_library())


def _live_objects() -> int:
    core = sys.modules.get("arrowdl._core")
    return 0 if core is None else core.live_objects()


@pytest.fixture(scope="session")
def _held_by_modules() -> Iterator[int]:
    """What the modules of the tests made while they were imported, and hold to the end."""
    gc.collect()
    yield _live_objects()
    gc.unfreeze()  # for the modules that look for leaks at exit


@pytest.fixture(scope="module", autouse=True)
def _quick_collections(_held_by_modules: int) -> None:
    """Keep collections from what stays: torch and jax, what they keep, the results of tests."""
    gc.collect()
    gc.freeze()  # looking through these takes as long as a hundred tests


@pytest.fixture(autouse=True)
def _nothing_leaks(_held_by_modules: int) -> Iterator[None]:
    """Check that a test releases all foreign and exported memory that it takes."""
    yield
    # Each test has the same count, so that no leak hides behind one of an earlier test. Threads
    # that read ahead release what they hold a little later.
    if _live_objects() != _held_by_modules:
        for name in ("last_exc", "last_value", "last_traceback"):  # the locals of a failed test
            if hasattr(sys, name):
                delattr(sys, name)
        deadline = time.monotonic() + 10
        gc.collect()
        while _live_objects() != _held_by_modules and time.monotonic() < deadline:
            time.sleep(0.01)
            gc.collect()  # a thread may have let go of an exception, and of its frames, since then
    assert _live_objects() == _held_by_modules, "objects of arrowdl were left alive"


@pytest.fixture
def x64() -> Iterator[None]:
    """JAX with 64-bit values."""
    import jax

    with jax.enable_x64(True):
        yield


@pytest.fixture
def on_fake_cuda(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Runs code in a process whose CUDA driver, and HIP, are the fake ones."""
    if not all(any(folder.glob("*.so*")) for folder in FOLDERS):
        pytest.skip("the fake drivers are not built: make test-python builds them")
    paths = {"LD_LIBRARY_PATH": FOLDERS, "PYTHONPATH": [Path(__file__).parent]}
    for name, added in paths.items():
        known = [path for path in [os.environ.get(name)] if path]
        monkeypatch.setenv(name, os.pathsep.join([*map(str, added), *known]))

    def run(code: str) -> None:
        has_torch = "torch" in code and find_spec("torch") is not None
        run_python(f"{PREAMBLE}{code}\n{ENDING}", forks=has_torch)

    return run


@pytest.fixture
def on_fake_gpus(
    on_fake_cuda: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """The same, where ROCm too has a compiler, and so kernels."""
    if not any(HIPRTC.glob("*.so*")):
        pytest.skip("the fake compiler is not built: make test-python builds it")
    known = os.environ["LD_LIBRARY_PATH"]
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{HIPRTC}{os.pathsep}{known}")
    return on_fake_cuda
