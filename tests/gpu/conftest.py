"""The suite of a machine with an NVIDIA GPU: `make test-gpu`. Elsewhere all of it is skipped."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

# Read when the libraries start: jax would take most of the GPU's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def why_no_gpu() -> str | None:
    """Why the suite cannot run. That arrowdl alone finds no driver is a failure, and no reason."""
    import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    if not torch.cuda.is_available():
        return f"torch {torch.__version__} finds no CUDA device"
    return None


@pytest.fixture(scope="session")
def _gpu() -> Iterator[None]:
    """A GPU whose kernels are loaded: the first use of one may wait for all the others."""
    reason = why_no_gpu()
    if reason is not None:
        pytest.skip(reason)
    from helpers.gpu import warm_up

    warm_up()
    gc.collect()
    gc.freeze()  # torch and jax are for good: looking through them takes longer than a spin
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def jax(_gpu: None) -> Any:
    module = pytest.importorskip("jax")
    try:
        module.devices("cuda")
    except RuntimeError as error:
        pytest.skip(f"jax finds no GPU: {error}")
    from helpers.gpu import ROWS

    np.asarray(module.dlpack.from_dlpack(module.numpy.zeros(ROWS)) + 0)  # its kernels are loaded
    return module


@pytest.fixture(autouse=True)
def _nothing_leaks(_gpu: None) -> Iterator[None]:
    """Whatever a test makes is released when it is over, and no release was given up."""
    from arrowdl import debug
    from helpers.gpu import settle, synchronize_all

    before = debug.live_objects()
    abandoned = debug.abandoned_releases()
    yield
    synchronize_all()
    if "ARROWDL_SANITIZED" in os.environ:  # compute-sanitizer keeps frames, and what they refer to
        return
    settle(before, seconds=0.1)
    if debug.live_objects() != before:
        for name in ("last_exc", "last_value", "last_traceback"):  # the locals of a failed test
            if hasattr(sys, name):
                delattr(sys, name)
        gc.collect()
        settle(before)
    assert debug.pending_releases() == 0, "memory still waits, and every stream is idle"
    assert debug.live_objects() == before, "objects of arrowdl were left alive"
    assert debug.abandoned_releases() == abandoned, "memory was never given back"


@pytest.fixture
def tensor() -> Any:
    """Zeros on the GPU, with nothing under way."""
    import torch
    from helpers.gpu import ROWS

    zeros = torch.zeros(ROWS, device="cuda")
    torch.cuda.synchronize()
    return zeros


@pytest.fixture
def side() -> Any:
    """A stream to produce on."""
    import torch

    return torch.cuda.Stream()


@pytest.fixture
def other(side: Any) -> Any:
    """A stream to consume on."""
    import torch

    # torch hands its streams out of a pool, in turns.
    stream = torch.cuda.Stream()
    assert stream.cuda_stream != side.cuda_stream
    return stream


@pytest.fixture
def two_gpus() -> None:
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs, there is one")
