"""Loader for JAX: global arrays of several devices, and batches of one shape."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest

ROWS = 37
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(range(ROWS * 2), pa.float32()), 2),
        "tokens": pa.array([list(range(i % 3)) for i in range(ROWS)], pa.list_(pa.int32())),
        "text": [str(i) for i in range(ROWS)],
    }
)
PLAIN = TABLE.select(["id", "vector"])


@pytest.mark.parametrize("framework", ["torch", "jax", "numpy"])
@pytest.mark.parametrize("source", [PLAIN, PLAIN.to_reader], ids=["table", "stream"])
@pytest.mark.parametrize("world_size", [1, 3])
def test_padded_batches_have_one_shape(framework: Any, source: Any, world_size: int) -> None:
    seen: list[int] = []
    for rank in range(world_size):
        loader = arrowdl.Loader(
            source, 10, framework=framework, pad_last=True, ranks=arrowdl.Ranks(rank, world_size)
        )
        for batch in loader:
            assert {name: tuple(value.shape) for name, value in batch.items()} == {
                "id": (10,),
                "vector": (10, 2),
                "valid": (10,),
            }
            valid = np.asarray(batch["valid"])
            assert valid.dtype == bool
            assert valid[: valid.sum()].all()
            ids = np.asarray(batch["id"])[valid]
            assert np.array_equal(np.asarray(batch["vector"])[valid][:, 0], ids * 2)
            seen += ids.tolist()
    assert set(seen) == set(range(ROWS))
    assert len(seen) - ROWS < world_size


def test_lists_are_padded_with_rows_of_the_batch() -> None:
    *_, last = arrowdl.Loader(TABLE.select(["id", "tokens"]), 10, pad_last=True)
    assert last["valid"].tolist() == [True] * 7 + [False] * 3
    assert last["id"].tolist() == [*range(30, 37), 30, 31, 32]
    assert [len(row) for row in last["tokens"].unbind()] == [i % 3 for i in last["id"].tolist()]


def test_states_of_padded_batches() -> None:
    loader = arrowdl.Loader(PLAIN, 10, pad_last=True)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    del batches
    loader.load_state_dict(state)
    assert [int(batch["valid"].sum()) for batch in loader] == [10, 10, 7]


def test_masks_may_be_written_to() -> None:
    for batch in arrowdl.Loader(PLAIN, 10, pad_last=True):
        assert batch["valid"][:7].all()
        batch["valid"] &= batch["id"] < 0


def test_nothing_is_padded_to_nothing() -> None:
    assert list(arrowdl.Loader(PLAIN.slice(0, 0), 10, pad_last=True)) == []


def make_sharding() -> Any:
    """A sharding over one device."""
    import jax

    return jax.sharding.SingleDeviceSharding(jax.devices()[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: arrowdl.Loader(PLAIN, 10, pad_last=True, drop_last=True), "keeps the last batch"),
        (lambda: arrowdl.Loader(PLAIN, 10, pad_last=True, stack=True), "one matrix"),
        (
            lambda: list(arrowdl.Loader(pa.table({"valid": [1]}), 10, pad_last=True)),
            'adds a column "valid"',
        ),
        (lambda: arrowdl.Loader(PLAIN, 10, device=make_sharding()), 'needs framework="jax"'),
    ],
)
def test_contradictions_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


SHARDED = """
import arrowdl, jax, pyarrow as pa
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from helpers import transforms

def main():
    assert len(jax.devices()) == 4
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
    table = pa.table({"id": pa.array(range(37), pa.int32()),
                      "x": pa.FixedSizeListArray.from_arrays(pa.array(range(74), pa.float32()), 2)})
    double = jax.jit(lambda batch: batch["x"] * 2)
    for workers in (0, 1):
        loader = arrowdl.Loader(
            table,
            8,
            framework="jax",
            device=sharding,
            pad_last=True,
            transform=transforms.add_one,
            num_workers=workers,
        )
        seen = []
        for batch in loader:
            for name in ("id", "x", "valid", "more"):
                assert batch[name].sharding == sharding, name
            shards = batch["x"].addressable_shards
            assert [shard.data.shape for shard in shards] == [(2, 2)] * 4
            assert double(batch).sharding.is_equivalent_to(sharding, 2)
            assert np.array_equal(batch["more"], batch["id"] + 1)
            assert batch["step"] == 3
            seen += np.asarray(batch["id"])[np.asarray(batch["valid"])].tolist()
        assert seen == list(range(37))
    try:
        list(arrowdl.Loader(table, 8, framework="jax", device=sharding))
    except ValueError as error:
        assert "4" in str(error)
    else:
        raise AssertionError("five rows for four devices")
    try:
        list(arrowdl.Loader(pa.table({"id": [1, 2, 3, 4]}), 4, framework="jax", device=sharding))
    except BufferError as error:
        assert "jax_enable_x64" in str(error)
    else:
        raise AssertionError("64 bits were cut down")
    table = pa.table({name: pa.array(range(1024), pa.float32()) for name in "abc"})
    put, calls = jax.device_put, []

    def count(*args, **options):
        calls.append(args)
        return put(*args, **options)

    jax.device_put = count
    batches = list(arrowdl.Loader(table, 256, framework="jax", device=sharding))
    assert len(calls) == len(batches) == 4, "one call for the columns of a batch"
    for number, batch in enumerate(batches):
        for name in "abc":
            start = table[name].chunk(0).buffers()[1].address + number * 1024
            shards = sorted(batch[name].addressable_shards, key=lambda shard: shard.device.id)
            addresses = [shard.data.unsafe_buffer_pointer() for shard in shards]
            assert addresses == [start + 256 * shard for shard in range(4)], "no copy"
    print("sharded")

if __name__ == "__main__":
    main()
"""


SECOND_CPU = """
import arrowdl, jax, pyarrow as pa
import numpy as np

first, second = jax.devices()[:2]
table = pa.table({"x": pa.array(range(8), pa.int32())})
array = arrowdl.from_arrow(table["x"].chunk(0))
for make in (
    lambda: array.to(second),
    lambda: arrowdl.to_jax(array, device=second),
    lambda: arrowdl.Loader(table, 4, framework="jax", device=second),
):
    try:
        make()
    except BufferError as error:
        assert "CpuDevice(id=1) is not the first CPU of JAX" in str(error)
    else:
        raise AssertionError("the device was dropped")
single = jax.sharding.SingleDeviceSharding(second)
for device, where in ((first, first), (single, second)):
    for batch in arrowdl.Loader(table, 4, framework="jax", device=device):
        assert batch["x"].devices() == {where}
taken = arrowdl.to_arrow_device(jax.device_put(np.arange(4, dtype="i4"), second))
assert pa.array(taken).to_pylist() == [0, 1, 2, 3]
print("second")
"""


@pytest.mark.parametrize("code", [SHARDED, SECOND_CPU], ids=["sharded", "second"])
def test_several_devices(code: str, tmp_path: Any, request: Any) -> None:
    name = request.node.callspec.id
    script = tmp_path / f"{name}.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, *(["-S"] if sys.flags.no_site else []), script],
        env={
            **os.environ,
            "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    # JAX may print more than the script.
    assert (done.returncode, done.stdout.splitlines().count(name)) == (0, 1), done.stderr
