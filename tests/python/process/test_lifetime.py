"""Ownership: everything is released exactly once, whatever happens on the way."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import subprocess
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import arrowdl
import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
import torch
from arrowdl import _core
from helpers.arrow import ArrayRelease, MadeArray, MadeDeviceArray, MadeSchema, list_releases
from helpers.capsules import capsule_name
from helpers.dlpack import Deleter, MadeTensor, read_capsule
from helpers.processes import run_python


class Watched(np.ndarray):
    """A numpy array that one can hold weakly and wait for."""


def watched(values) -> tuple[np.ndarray, weakref.ref]:
    array = np.asarray(values).view(Watched)
    return array, weakref.ref(array)


def int32_array(length: int = 3) -> tuple[MadeSchema, MadeArray]:
    data = np.arange(length, dtype=np.int32)
    return MadeSchema("i"), MadeArray(length, [None, data])


# ---------------------------------------------------------------- a tensor in, an array out


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("copies", [True, False])
def test_a_tensor_is_released_with_the_last_that_needs_it(versioned, copies):
    made = MadeTensor(np.arange(6.0).reshape(2, 3), versioned=versioned)
    array = arrowdl.to_arrow_device(made.capsule(), copy=copies)
    assert made.released == int(copies)
    views = [array[1:], array[:0], pa.array(array), np.from_dlpack(array), torch.from_dlpack(array)]
    views += [array.__arrow_c_array__(), array.__dlpack__(), array.__dlpack__(max_version=(1, 0))]
    del array
    assert made.released == int(copies)
    while views:
        assert made.released == int(copies)
        views.pop()
    gc.collect()
    assert made.released == 1


def test_the_live_object_counter_counts():
    before = _core.live_objects()
    arrays = [arrowdl.to_arrow_device(np.arange(3)) for _ in range(10)]
    assert _core.live_objects() >= before + 10
    arrays.clear()
    assert _core.live_objects() == before


REFUSED = {
    "dtype": ({"dtype": (0, 3)}, {}),
    "negative extent": ({"shape": (-1,)}, {}),
    "copy": ({"strides": (2,), "shape": (1 + 1,)}, {"copy": False}),
    "no device": ({"device": (-1, 0)}, {}),
    "mask": ({}, {"mask": np.ones(5, bool)}),
    "mask type": ({}, {"mask": "text"}),
    "version": ({"version": (2, 0)}, {}),
}


@pytest.mark.parametrize(("tensor", "options"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_tensor_is_released_once(tensor, options):
    made = MadeTensor(np.arange(4, dtype=np.int32), **tensor)
    capsule = made.capsule()
    with pytest.raises((BufferError, ValueError, TypeError)):
        arrowdl.to_arrow_device(capsule, **options)
    del capsule
    assert made.released == 1


@pytest.mark.parametrize("option", [{"layout": "odd"}, {"copy": 3}, {"stream": 1}, {"x": 1}])
def test_a_call_that_fails_before_it_took_the_tensor_leaves_the_capsule_whole(option):
    made = MadeTensor(np.arange(3))
    capsule = made.capsule()
    with pytest.raises((ValueError, TypeError, BufferError)):
        arrowdl.to_arrow_device(capsule, **option)
    assert (capsule_name(capsule), made.released) == ("dltensor_versioned", 0)
    assert np.from_dlpack(arrowdl.to_arrow_device(capsule)).tolist() == [0, 1, 2]
    assert made.released == 1


def test_a_failing_mask_is_released_once():
    mask = MadeTensor(np.ones(5, bool))
    with pytest.raises(ValueError, match="mask"):
        arrowdl.to_arrow_device(np.arange(3), mask=mask.capsule())
    assert mask.released == 1


@pytest.mark.parametrize("make", [torch.arange, jnp.arange, np.arange])
def test_a_real_tensor_is_given_back(make):
    tensor = make(1000)
    reference = weakref.ref(tensor)
    array = arrowdl.to_arrow_device(tensor)
    del tensor
    assert pa.array(array).to_pylist() == list(range(1000))
    del array
    gc.collect()
    assert reference() is None


# ---------------------------------------------------------------- an array in, a tensor out


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 3)])
def test_an_unconsumed_dlpack_capsule_releases(version):
    base, reference = watched(np.arange(3.0))
    array = arrowdl.to_arrow_device(base)
    del base
    capsule = array.__dlpack__(max_version=version)
    del array
    assert reference() is not None
    del capsule
    assert reference() is None


@pytest.mark.parametrize("consume", [torch.from_dlpack, np.from_dlpack, jax.dlpack.from_dlpack])
def test_a_consumed_dlpack_capsule_releases_with_the_tensor(consume):
    base, reference = watched(np.arange(3, dtype=np.float32))
    array = arrowdl.to_arrow_device(base)
    del base
    tensor = consume(array)
    del array
    if consume is not jax.dlpack.from_dlpack:  # which copies memory that is not aligned to it
        assert reference() is not None
    assert tensor.tolist() == [0, 1, 2]
    del tensor
    gc.collect()
    assert reference() is None


def test_arrow_capsules_release_what_no_consumer_took():
    base, reference = watched(np.arange(3.0))
    array = arrowdl.to_arrow_device(base)
    del base
    schemas = [array.__arrow_c_schema__()]
    arrays = []
    for schema, capsule in (array.__arrow_c_array__(), array.__arrow_c_device_array__()):
        schemas.append(schema)
        arrays.append(capsule)
    del array, capsule
    while arrays:
        assert reference() is not None
        arrays.pop()
    assert reference() is None, "a schema keeps no data alive"


def test_a_consumer_that_refuses_after_it_took_the_capsule_still_releases():
    """numpy consumes a bfloat16 capsule before it looks at the type."""
    base, reference = watched(np.arange(4, dtype=np.int16))
    made = MadeTensor(base, (4,), dtype="bfloat16", strides=(1,))
    array = arrowdl.to_arrow_device(made.capsule())
    before = _core.live_objects()
    for _ in range(3):
        with pytest.raises((BufferError, RuntimeError, TypeError)):
            np.from_dlpack(array)
    assert _core.live_objects() == before
    assert made.released == 0
    del array
    assert made.released == 1
    del base, made
    gc.collect()
    assert reference() is None


def test_a_capsule_that_its_consumer_refuses_runs_python_code_safely():
    """numpy drops the capsule with its error pending, and the deleter here is Python code."""
    made = MadeTensor(np.zeros(4, np.int16), dtype="bfloat16")

    class Once:
        def __dlpack__(self, **keywords):
            return arrowdl.to_arrow_device(made.capsule()).__dlpack__(**keywords)

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(Once())
    assert made.released == 1


DIE_OF_AN_EXCEPTION = {
    "an array": lambda array: [array(), 1 / 0],
    "a tensor capsule": lambda array: [array().__dlpack__(), 1 / 0],
    "a versioned capsule": lambda array: [array().__dlpack__(max_version=(1, 0)), 1 / 0],
    "a schema capsule": lambda array: [array().__arrow_c_schema__(), 1 / 0],
    "array capsules": lambda array: [array().__arrow_c_array__(), 1 / 0],
    "device array capsules": lambda array: [array().__arrow_c_device_array__(), 1 / 0],
    "a schema": lambda array: [array().schema, 1 / 0],
}


@pytest.mark.parametrize("die", DIE_OF_AN_EXCEPTION.values(), ids=DIE_OF_AN_EXCEPTION.keys())
@pytest.mark.parametrize("origin", ["tensor", "arrow"])
def test_what_dies_of_an_exception_does_not_disturb_it(die, origin):
    """The releases here are Python code, which must not run with an error pending."""
    tensor = MadeTensor(np.arange(3))
    schema, array = int32_array()
    made = tensor if origin == "tensor" else array

    def make():
        if origin == "tensor":
            return arrowdl.to_arrow_device(tensor.capsule())
        return arrowdl.c_data.import_array(array.address, schema.address)

    with pytest.raises(ZeroDivisionError) as caught:
        die(make)
    assert caught.value.__context__ is None
    del caught
    assert made.released == 1


def test_a_raw_deleter_called_by_hand_releases_once():
    base, reference = watched(np.arange(3.0))
    array = arrowdl.to_arrow_device(base)
    capsule = array.__dlpack__(max_version=(1, 0))
    managed = read_capsule(capsule)
    assert managed.dl_tensor.data == base.ctypes.data
    del base, array
    tensor = torch.from_dlpack(capsule)
    del capsule
    assert reference() is not None
    del tensor
    assert reference() is None


# ---------------------------------------------------------------- Arrow structs from outside


@pytest.mark.parametrize("device", [False, True])
def test_an_array_from_addresses_is_released_once(device):
    schema, made = int32_array()
    source = MadeDeviceArray(made) if device else made
    take = arrowdl.c_data.import_device_array if device else arrowdl.c_data.import_array
    array = take(source.address, schema.address)
    parts = [array[1:], np.from_dlpack(array), pa.array(array), array.schema]
    del array
    while parts:
        assert made.released == 0
        parts.pop()
    gc.collect()
    assert (made.released, schema.released) == (1, 1)


def test_a_field_keeps_the_whole_array_and_no_more():
    schema = MadeSchema("+s", children=[MadeSchema("i", "a"), MadeSchema("i", "b")])
    data = np.arange(3, dtype=np.int32)
    children = [MadeArray(3, [None, data]), MadeArray(3, [None, data])]
    made = MadeArray(3, [None], children=children)
    array = arrowdl.c_data.import_array(made.address, schema.address)
    field = array["b"]
    del array
    assert list_releases(made) == [0, 0, 0]
    del field
    assert list_releases(made) == [1, 1, 1]
    assert list_releases(schema) == [1, 1, 1]


# ---------------------------------------------------------------- the object itself


def test_release_gives_the_memory_back_at_once():
    made = MadeTensor(np.arange(3))
    array = arrowdl.to_arrow_device(made.capsule())
    assert not array.is_released
    array.release()
    assert array.is_released
    assert made.released == 1
    array.release()
    assert made.released == 1


def test_release_leaves_what_was_exported_before():
    array = arrowdl.to_arrow_device(np.arange(3))
    exported, part = pa.array(array), array[1:]
    array.release()
    assert exported.to_pylist() == [0, 1, 2]
    assert pa.array(part).to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "use",
    [
        len,
        pa.array,
        np.from_dlpack,
        np.asarray,
        torch.from_dlpack,
        arrowdl.from_arrow,
        arrowdl.to_torch,
        arrowdl.to_numpy,
        arrowdl.to_arrow_device,
        lambda array: array[1:],
        lambda array: array["a"],
        lambda array: array.type,
        lambda array: array.schema,
        lambda array: array.shape,
        lambda array: array.dtype,
        lambda array: array.device,
        lambda array: array.nbytes,
        lambda array: array.null_count,
        lambda array: array.validity,
        lambda array: array.values,
        lambda array: array.__dlpack__(),
        lambda array: array.__dlpack_device__(),
        lambda array: array.__arrow_c_schema__(),
        lambda array: array.__arrow_c_array__(),
        lambda array: array.__arrow_c_device_array__(),
        lambda array: array._repr_html_(),
    ],
)
def test_use_after_release_is_a_clear_error(use):
    array = arrowdl.to_arrow_device(np.arange(3))
    array.release()
    with pytest.raises(ValueError, match="has been released"):
        use(array)


def test_a_released_array_can_be_printed():
    array = arrowdl.to_arrow_device(np.arange(3))
    array.release()
    assert repr(array) == "<arrowdl.DeviceArray (released)>"


def test_weak_references_die_with_the_array():
    array = arrowdl.to_arrow_device(np.arange(3))
    seen = []
    reference = weakref.ref(array, seen.append)
    assert reference() is array
    del array
    assert reference() is None
    assert len(seen) == 1


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_is_refused_with_advice(protocol):
    array = arrowdl.to_arrow_device(np.arange(3))
    with pytest.raises(TypeError, match=r"cannot be pickled.*pyarrow\.array"):
        pickle.dumps(array, protocol)


@pytest.mark.parametrize("make", [arrowdl.DeviceArray, lambda: object.__new__(arrowdl.DeviceArray)])
def test_instantiation_is_refused(make):
    with pytest.raises(TypeError):
        make()


@pytest.mark.parametrize("base", [arrowdl.DeviceArray, arrowdl.Schema, arrowdl.Device])
def test_subclassing_is_refused(base):
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Sub", (base,), {})


def test_arrays_are_immutable_and_equal_by_identity():
    array = arrowdl.to_arrow_device(np.arange(3))
    with pytest.raises(AttributeError):
        array.shape = (1, 3)
    with pytest.raises(AttributeError):
        array.anything = 1
    with pytest.raises(TypeError):
        array[0] = 1
    same = array
    assert array == same
    assert array != arrowdl.to_arrow_device(np.arange(3))
    assert len({array, array}) == 1


# ---------------------------------------------------------------- threads


def test_torch_frees_our_memory_on_another_thread():
    made = MadeTensor(np.arange(1000.0))
    tensor = torch.from_dlpack(arrowdl.to_arrow_device(made.capsule()))
    box = [tensor]
    del tensor
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert made.released == 1


def test_autograd_threads_free_our_memory():
    made = MadeTensor(np.ones(100, np.float32))
    leaf = torch.ones(100, requires_grad=True)
    data = torch.from_dlpack(arrowdl.to_arrow_device(made.capsule()))
    (leaf * data).sum().backward()
    del data
    gc.collect()
    assert leaf.grad.sum().item() == 100
    assert made.released == 1


WITNESS = """
int PyGILState_Check(void);

struct array {
    long long counts[5];
    void *buffers, *children, *dictionary;
    void (*release)(struct array *);
    int *seen;
};

struct tensor {
    unsigned version[2];
    int *seen;
};

void release_array(struct array *self) {
    *self->seen = PyGILState_Check();
    self->release = 0;
}

void delete_tensor(struct tensor *self) {
    *self->seen = PyGILState_Check();
}
"""


@pytest.fixture
def witness(tmp_path: Path) -> ctypes.CDLL:
    """Releases in C that write down whether they were called with the GIL. Nothing is linked:
    the process has the one symbol that is needed."""
    source, library = tmp_path / "witness.c", tmp_path / "witness.so"
    source.write_text(WITNESS)
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, env=env)
    return ctypes.CDLL(str(library))


def free_without_the_gil(data: list[torch.Tensor]) -> None:
    """Autograd drops what it saved once it has used it, and computes without the GIL."""
    leaf = torch.ones(100, requires_grad=True)
    total = (leaf * data.pop()).sum()
    total.backward()
    assert leaf.grad.sum().item() == 100


def test_a_foreign_release_is_called_with_the_gil(witness):
    seen = ctypes.c_int(-1)
    ones = np.ones(100, np.float32)
    # First that torch calls a deleter without it.
    tensor = MadeTensor(ones, strides=(1,))
    tensor.managed.deleter = ctypes.cast(witness.delete_tensor, Deleter)
    tensor.managed.manager_ctx = ctypes.addressof(seen)
    free_without_the_gil([torch.from_dlpack(tensor.capsule())])
    assert seen.value == 0
    tensor._release(tensor.address)
    # Then that arrowdl calls the release that is behind its own deleter with it.
    seen.value = -1
    schema, array = MadeSchema("f"), MadeArray(100, [None, ones])
    array.struct.release = ctypes.cast(witness.release_array, ArrayRelease)
    array.struct.private_data = ctypes.addressof(seen)
    data = [torch.from_dlpack(arrowdl.c_data.import_array(array.address, schema.address))]
    assert seen.value == -1
    free_without_the_gil(data)
    assert seen.value == 1
    array._release(array.address)
    assert schema.released == 1


def test_jax_computes_with_our_memory_and_frees_it():
    made = MadeTensor(np.arange(1000, dtype=np.float32))
    array = jax.dlpack.from_dlpack(arrowdl.to_arrow_device(made.capsule()))
    total = jax.jit(lambda x: (x * 2).sum())(array)
    del array
    assert total.item() == 999_000
    jax.effects_barrier()
    gc.collect()
    assert made.released == 1


def test_one_array_serves_many_threads():
    array = arrowdl.to_arrow_device(np.arange(1000).reshape(10, 100))
    start = threading.Barrier(8)

    def work(index: int) -> int:
        start.wait()
        total = 0
        for _ in range(50):
            total += int(np.from_dlpack(array[index : index + 1]).sum())
            total += len(pa.array(array))
            repr(array)
        return total

    with ThreadPoolExecutor(8) as pool:
        totals = list(pool.map(work, range(8)))
    assert totals == [50 * (sum(range(i * 100, i * 100 + 100)) + 10) for i in range(8)]


def test_release_races_with_use_and_nothing_breaks():
    for _ in range(50):
        made = MadeTensor(np.arange(100))
        array = arrowdl.to_arrow_device(made.capsule())
        start = threading.Barrier(3)

        def use(array=array, start=start):
            start.wait()
            try:
                return int(np.from_dlpack(array).sum())
            except ValueError as error:
                return str(error)[:40]

        def release(array=array, start=start):
            start.wait()
            array.release()

        with ThreadPoolExecutor(3) as pool:
            results = [pool.submit(use), pool.submit(use), pool.submit(release)]
        for result in results[:2]:
            assert result.result() in (4950, "this DeviceArray has been released: read")
        del array, use, release
        gc.collect()
        assert made.released == 1


@pytest.mark.slow
def test_round_trips_on_four_threads_leave_memory_flat():
    """100,000 in a process of its own, so that nothing else moves its size."""
    said = run_python(
        """
        import gc, threading
        import numpy as np
        import arrowdl
        from arrowdl import _core

        ROUNDS = 25_000

        def resident():
            with open("/proc/self/statm") as statm:
                return int(statm.read().split()[1]) * 4096

        def work(rounds):
            base = np.arange(64.0).reshape(8, 8)
            address = base.ctypes.data
            for i in range(rounds):
                array = arrowdl.to_arrow_device(base if i % 2 else base.T)
                back = np.from_dlpack(array)
                assert (back.ctypes.data == address) == bool(i % 2)

        def spread(rounds):
            threads = [threading.Thread(target=work, args=(rounds,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            gc.collect()

        spread(1000)
        before = resident()
        spread(ROUNDS)
        print(resident() - before, _core.live_objects())
        """
    )
    grown, alive = map(int, said.split())
    assert alive == 0
    assert grown < 4 << 20  # a leak of one object each would be 10 MB and more


# ---------------------------------------------------------------- the end of the process, and fork


AT_EXIT = """
import jax, jax.numpy as jnp, numpy as np, pyarrow as pa, torch
import arrowdl

array = arrowdl.to_arrow_device(np.arange(16, dtype=np.float32))
keep = [
    array,
    arrowdl.to_arrow_device(torch.arange(9)),
    arrowdl.to_arrow_device(jnp.arange(9)),
    arrowdl.from_arrow(pa.array([1])),
    torch.from_dlpack(array),
    np.from_dlpack(array),
    jax.dlpack.from_dlpack(array),
    pa.array(array),
    torch.from_dlpack(arrowdl.from_arrow(pa.array([1.0]))),
    array.__dlpack__(),
    array.__dlpack__(max_version=(1, 0)),
    array.__arrow_c_array__(),
    array.__arrow_c_device_array__(),
    array.schema,
    array.device,
]
keep.append(keep)
"""


@pytest.mark.parametrize(
    "hold",
    [
        pytest.param("", id="by globals"),
        pytest.param("import builtins; builtins.keep = keep; del keep", id="longer"),
    ],
)
@pytest.mark.slow
def test_the_interpreter_exits_with_live_objects(hold):
    run_python(AT_EXIT + hold)


@pytest.mark.slow
def test_the_interpreter_exits_while_a_thread_holds_an_array():
    run_python(
        """
        import threading
        import torch
        import arrowdl

        ready = threading.Event()

        def hold():
            array = arrowdl.to_arrow_device(torch.arange(9))
            tensor = torch.from_dlpack(array)
            ready.set()
            threading.Event().wait()
            print(array, tensor)

        threading.Thread(target=hold, daemon=True).start()
        ready.wait()
        """
    )


@pytest.mark.slow
def test_a_forked_child_uses_and_frees_what_it_inherited():
    said = run_python(
        """
        import os
        import numpy as np, torch
        import arrowdl
        from arrowdl import _core

        torch.set_num_threads(1)
        ours = arrowdl.to_arrow_device(torch.arange(1000.0))
        tensor = torch.from_dlpack(ours)
        alive = _core.live_objects()
        child = os.fork()
        if child == 0:
            assert _core.live_objects() == alive
            assert float(np.from_dlpack(ours).sum()) == 499500
            del tensor
            ours.release()
            assert _core.live_objects() == 0
            again = torch.from_dlpack(arrowdl.to_arrow_device(torch.ones(10)))
            assert again.sum().item() == 10
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert float(tensor.sum()) == 499500
        print(_core.live_objects() == alive)
        """
    )
    assert said == "True\n"


@pytest.mark.slow
def test_a_forked_child_ends_as_a_process_does():
    run_python(
        """
        import os, sys
        import numpy as np, torch
        import arrowdl

        ours = arrowdl.to_arrow_device(np.arange(1000.0))
        tensor = torch.from_dlpack(ours)
        child = os.fork()
        if child == 0:
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        """
    )


@pytest.mark.slow
def test_worker_processes_of_torch_take_arrays_by_fork():
    said = run_python(
        """
        import numpy as np, torch
        import arrowdl

        array = arrowdl.to_arrow_device(np.arange(40.0).reshape(20, 2))

        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return 20

            def __getitem__(self, i):
                return torch.from_dlpack(array[i : i + 1])[0] + 0

        loader = torch.utils.data.DataLoader(
            Rows(), batch_size=5, num_workers=2, multiprocessing_context="fork"
        )
        print(torch.cat(list(loader)).sum().item())
        """
    )
    assert said == "780.0\n"
