"""Random arrays and tensors whose C structs say what cannot be: refused, or read as they are.

A struct that lies within the address space cannot be told from an honest one, so what is written
into a field is negative, NULL, or more than any memory has.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import random
from collections.abc import Callable, Iterator
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
from helpers.arrow import ArrowArray, ArrowSchema, MadeArray, MadeSchema
from helpers.capsules import capsule_name, rename_capsule
from helpers.dlpack import CODES, MadeTensor
from helpers.random_arrays import draw_type, draw_values, lay_out
from helpers.random_cases import check_cases

REFUSALS = (BufferError, IndexError, MemoryError, OverflowError, TypeError, ValueError)
HUGE = [2**58, 2**59 - 1, 2**60, 2**61 + 1, 2**62, 2**63 - 1]
HOSTILE = [-1, -2, -(2**62), -(2**63), *HUGE]


# ---------------------------------------------------------------- honest structs


def copy_schema(source: Any) -> MadeSchema:
    children = [copy_schema(source.children[i].contents) for i in range(source.n_children)]
    dictionary = copy_schema(source.dictionary.contents) if source.dictionary else None
    made = MadeSchema("", children=children, dictionary=dictionary, flags=source.flags)
    made.struct.format, made.struct.name = source.format, source.name
    made.struct.metadata = source.metadata
    return made


def copy_array(source: Any) -> MadeArray:
    children = [copy_array(source.children[i].contents) for i in range(source.n_children)]
    dictionary = copy_array(source.dictionary.contents) if source.dictionary else None
    buffers = [source.buffers[i] for i in range(source.n_buffers)]
    fields = {"null_count": source.null_count, "offset": source.offset}
    return MadeArray(source.length, buffers, children=children, dictionary=dictionary, **fields)


@contextlib.contextmanager
def made_by_hand(array: pa.Array) -> Iterator[tuple[MadeSchema, MadeArray]]:
    """Structs of `array` whose release uses none of the fields."""
    schema, exported = ArrowSchema(), ArrowArray()
    array._export_to_c(ctypes.addressof(exported), ctypes.addressof(schema))
    made = copy_schema(schema), copy_array(exported)
    try:
        yield made
    finally:
        for struct in *made, schema, exported:
            if isinstance(struct, MadeSchema | MadeArray):
                struct.drop()
            else:
                struct.release(ctypes.pointer(struct))


def draw_array(rng: random.Random) -> pa.Array:
    drawn = draw_type(rng)
    return lay_out(rng, drawn, draw_values(rng, drawn, rng.randrange(1, 9), 0.2))


# ---------------------------------------------------------------- wrong fields


def damage_array(rng: random.Random, made: MadeArray) -> None:
    node = rng.choice(made.nodes)
    struct = node.struct
    match rng.randrange(9):
        case 0:
            struct.length = rng.choice(HOSTILE)
        case 1:
            struct.offset = rng.choice(HOSTILE)
        case 2:
            struct.length, struct.offset = rng.choice(HUGE), rng.choice(HUGE)
        case 3:
            struct.null_count = rng.choice(HOSTILE)
        case 4:
            struct.n_buffers = rng.choice([*HOSTILE, 2**33])
        case 5:
            struct.n_children = rng.choice([*HOSTILE, 2**33, max(struct.n_children - 1, 0)])
        case 6:
            struct.buffers = None
        case 7 if node.children and struct.children:
            i = rng.randrange(len(node.children))
            if rng.random() < 0.5:
                struct.children[i] = ctypes.POINTER(ArrowArray)()
            else:
                node.children[i].drop()
        case _:
            struct.children = None
            struct.dictionary = ctypes.POINTER(ArrowArray)()


def damage_schema(rng: random.Random, made: MadeSchema) -> None:
    node = rng.choice(made.nodes)
    struct = node.struct
    match rng.randrange(7):
        case 0:
            struct.format = rng.choice([None, b"", b"+w:-1", b"w:9999999999", b"+s", b"\xff"])
        case 1:
            struct.n_children = rng.choice([*HOSTILE, 2**33])
        case 2:
            struct.children = None
        case 3 if node.children and struct.children:
            i = rng.randrange(len(node.children))
            if rng.random() < 0.5:
                struct.children[i] = ctypes.POINTER(ArrowSchema)()
            else:
                node.children[i].drop()
        case 4 if node.children and struct.children:  # a circle
            struct.children[rng.randrange(len(node.children))] = ctypes.pointer(struct)
        case 5:
            struct.dictionary = ctypes.pointer(struct)
        case _:
            node.kept = ctypes.create_string_buffer(rng.randbytes(3) + b"\xff", 4)
            struct.metadata = ctypes.addressof(node.kept)  # a negative number of pairs


def damage_tensor(rng: random.Random, made: MadeTensor) -> None:
    tensor, ndim = made.tensor, len(made._shape)
    match rng.randrange(8):
        case 0:
            tensor.ndim = rng.choice([-1, -(2**31), 65, 2**31 - 1])
        case 1 if tensor.shape:
            tensor.shape[rng.randrange(ndim)] = rng.choice(HOSTILE)
        case 2 if tensor.strides and tensor.shape:
            tensor.shape[0] = max(tensor.shape[0], 2)
            tensor.strides[0] = rng.choice([2**58, -(2**58), 2**63 - 1, -(2**63)])
        case 3:
            tensor.shape = None
        case 4:
            tensor.data = rng.choice([None, 2**64 - 1]) if made.is_full else None
        case 5:
            tensor.byte_offset = rng.choice([2**63, 2**64 - 8, 2**60])
        case 6:
            tensor.dtype.bits = rng.choice([0, 7, 255])
            tensor.dtype.lanes = rng.choice([0, 3, 65535])
        case _:
            tensor.device.device_type = rng.choice([0, -1, -(2**31), 2**31 - 1])


# ---------------------------------------------------------------- readers


def read_everything(array: arrowdl.DeviceArray) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: repr(array),
        lambda: array.nbytes,
        lambda: array.null_count,
        lambda: array.shape,
        lambda: arrowdl.to_numpy(array, nulls="fill"),
        lambda: arrowdl.to_numpy(array, nulls="mask", ragged="offsets"),
        lambda: copy.deepcopy(arrowdl.to_numpy(array)),
        lambda: array.__dlpack__(),
        lambda: copy.deepcopy(array),
        lambda: list(arrowdl.from_arrow_stream([array[1:], array[:1]])),
        lambda: arrowdl.to_arrow_device(array, copy=True),
    ]
    for call in calls:
        with contextlib.suppress(*REFUSALS):
            call()


def attack_array(rng: random.Random) -> None:
    with made_by_hand(draw_array(rng)) as (schema, array):
        for _ in range(rng.randrange(1, 3)):
            if rng.random() < 0.7:
                damage_array(rng, array)
            else:
                damage_schema(rng, schema)
        with contextlib.suppress(*REFUSALS):
            if rng.random() < 0.5:
                taken = arrowdl.from_arrow((schema.capsule(), array.capsule()))
            else:
                taken = arrowdl.c_data.import_array(array.address, schema.address)
            read_everything(taken)


def attack_tensor(rng: random.Random) -> None:
    shape = tuple(rng.randrange(4) for _ in range(rng.randrange(1, 4)))
    data = np.zeros(max(int(np.prod(shape)), 1), rng.choice(["int8", "float32", "complex128"]))
    strides = np.zeros(shape, data.dtype).strides if rng.random() < 0.5 else None
    made = MadeTensor(
        data,
        shape,
        dtype=CODES[data.dtype.name],
        strides=strides and tuple(stride // data.itemsize for stride in strides),
        versioned=rng.random() < 0.5,
    )
    made.is_full = bool(np.prod(shape))  # type: ignore[attr-defined]
    for _ in range(rng.randrange(1, 3)):
        damage_tensor(rng, made)
    capsule = made.capsule()
    with contextlib.suppress(*REFUSALS):
        read_everything(arrowdl.to_arrow_device(capsule))
    del capsule
    assert made.released == 1


UNKNOWN = ["", "arrow", "arrow_array_", "used_dltensor", "used_dltensor_versioned", "DLTENSOR"]


def draw_capsules(rng: random.Random) -> list[Any]:
    """Capsules of one array, of a kind: a name says what is in it, so kinds are not mixed."""
    array = draw_array(rng)
    numbers = np.arange(6, dtype="float32").reshape(2, 3)[:: rng.choice([1, -1])]
    kinds: list[Callable[[], Any]] = [
        array.__arrow_c_array__,
        array.__arrow_c_device_array__,
        lambda: arrowdl.from_arrow(array).__arrow_c_device_array__(),
        lambda: (array.type.__arrow_c_schema__(),),
        lambda: (pa.chunked_array([array]).__arrow_c_stream__(),),
        lambda: (arrowdl.from_arrow_stream([array]).__arrow_c_device_stream__(),),
        lambda: (numbers.__dlpack__(),),
        lambda: (arrowdl.to_arrow_device(numbers).__dlpack__(max_version=(1, 1)),),
    ]
    return list(rng.choice(kinds)())


def make_giver(given: Any) -> Any:
    """Return an object whose methods of all protocols give the same, also a second time."""
    arrow = [f"__arrow_c_{name}__" for name in ("array", "stream", "schema")]
    arrow += [f"__arrow_c_device_{name}__" for name in ("array", "stream")]
    methods: dict[str, Any] = dict.fromkeys(
        [*arrow, "__dlpack__"], lambda self, *arguments, **options: given
    )
    return type("Giver", (), methods | {"__dlpack_device__": lambda self: (1, 0)})()


def shape_capsules(rng: random.Random, capsules: list[Any]) -> Any:
    """Put capsules together as no producer does, or as one does."""
    other = draw_capsules(rng)
    return rng.choice(
        [
            tuple(capsules),
            tuple(reversed(capsules)),
            (*capsules, *other),
            (other[0], capsules[0]),
            (capsules[0], None),
            list(capsules),
            capsules[0],
            capsules[-1],
            (capsules[-1], capsules[-1]),
            (),
        ]
    )


def attack_capsules(rng: random.Random) -> None:
    capsules = draw_capsules(rng)
    given = shape_capsules(rng, capsules)
    renamed = rng.choice(capsules) if rng.random() < 0.3 else None
    name = "" if renamed is None else capsule_name(renamed)
    if renamed is not None:
        rename_capsule(renamed, rng.choice(UNKNOWN))
    own = make_giver(given)
    array = arrowdl.from_arrow(pa.array([1, 2]))
    calls: list[Callable[[], Any]] = [
        lambda: arrowdl.from_arrow(given),
        lambda: arrowdl.from_arrow_stream(given),
        lambda: arrowdl.to_arrow_device(given),
        lambda: arrowdl.from_arrow(own),
        lambda: arrowdl.from_arrow_stream(own),
        lambda: arrowdl.to_arrow_device(own),
        lambda: arrowdl.to_numpy(own),
        lambda: array.__arrow_c_array__(given),
        lambda: next(iter(arrowdl.Loader(own, 2, framework="numpy"))),
    ]
    for call in rng.sample(calls, 4):  # the later ones get capsules that were consumed
        with contextlib.suppress(*REFUSALS, StopIteration, RuntimeError):
            taken = call()
            if isinstance(taken, arrowdl.DeviceArray):
                read_everything(taken)
            elif isinstance(taken, arrowdl.DeviceStream):
                list(taken)
    if renamed is not None:  # it was not taken, and its destructor asks for it by its name
        assert capsule_name(renamed) in UNKNOWN
        rename_capsule(renamed, name)


def test_honest_copies_are_read() -> None:
    rng = random.Random(0)
    for _ in range(20):
        source = draw_array(rng)
        with made_by_hand(source) as (schema, array):
            taken = arrowdl.c_data.import_array(array.address, schema.address)
            assert pa.array(taken).equals(source)
            read_everything(taken)
            del taken


def test_random_attacks_on_arrays() -> None:
    check_cases(attack_array, 150)


def test_random_attacks_on_tensors() -> None:
    check_cases(attack_tensor, 150)


def test_random_attacks_on_capsules() -> None:
    check_cases(attack_capsules, 150)
