"""Rows gathered on a device, beside the same operations on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

RANDOM = """
import random
import numpy as np
import pyarrow as pa
from arrowdl import _core
from helpers.random_arrays import draw_type, draw_values, lay_out
from helpers.random_cases import check_cases

def is_refused(kind):
    '''What only the CPU gathers, and two dictionaries, of which a random array has several.'''
    types = pa.types
    if kind in (pa.string_view(), pa.binary_view()) or types.is_dictionary(kind):
        return True
    if types.is_run_end_encoded(kind):
        return is_refused(kind.value_type)
    return any(is_refused(kind.field(i).type) for i in range(kind.num_fields))

def draw(rng):
    kind = draw_type(rng)
    while is_refused(kind):
        kind = draw_type(rng)
    return kind

def read(array):
    assert not _core.is_host_readable(array.device)
    back = pa.array(array.to("cpu"))
    back.validate(full=True)
    return back.to_pylist()

def make_parts(rng, kind):
    lengths = [rng.choice([0, 1, 3, 9, 40]) for _ in range(rng.randrange(1, 5))]
    rows = [draw_values(rng, kind, length, rng.choice([0, 0.3, 1])) for length in lengths]
    return [arrowdl.from_arrow(lay_out(rng, kind, values)) for values in rows], sum(rows, [])

def cut(rng, array):
    start = rng.randrange(len(array) + 1)
    return array[start:rng.randrange(start, len(array) + 1)]
"""

CONCATENATE = """
def check(rng):
    kind = draw(rng)
    parts, values = make_parts(rng, kind)
    there = [part.to(DEVICE) for part in parts]
    made = _core.concatenate(there)
    assert read(made) == values, kind
    start = rng.randrange(len(values) + 1)
    twice = _core.concatenate([made[start:], made[:start], made])
    assert read(twice) == values[start:] + values[:start] + values, kind

check_cases(check, 120)
gc.collect()
settle()
assert debug.live_objects() == 0
"""

STREAMS = """
def as_struct(column):
    return _core.make_struct(["x"], [column])

def check(rng):
    kind = draw(rng)
    here = [as_struct(part) for part in make_parts(rng, kind)[0]]
    there = [part.to(DEVICE) for part in here]
    size, seed, rows = rng.randrange(1, 60), rng.randrange(2**64), rng.randrange(1, 12)
    start, count = rng.randrange(4), rng.randrange(60)
    def change(parts):
        stream = _core.chain(parts)
        if seed % 3:
            stream = stream.shuffle(size, seed)
        return list(stream.slice(start, count).rebatch(rows))
    expected, made = change(here), change(there)
    assert [read(array) for array in made] == [pa.array(array).to_pylist() for array in expected]

check_cases(check, 120)
gc.collect()
settle()
assert debug.live_objects() == 0
"""


@pytest.mark.parametrize("device", ["cuda:1", "rocm:1"])
def test_arrays_are_joined(on_fake_gpus: Callable[[str], None], device: str) -> None:
    on_fake_gpus(f'DEVICE = "{device}"' + RANDOM + CONCATENATE)


@pytest.mark.parametrize("device", ["cuda:1", "rocm:1"])
def test_streams_are_shuffled_and_cut_again(
    on_fake_gpus: Callable[[str], None], device: str
) -> None:
    on_fake_gpus(f'DEVICE = "{device}"' + RANDOM + STREAMS)


def test_rows_go_through_the_host_without_kernels(on_fake_cuda: Callable[[str], None]) -> None:
    """HIP without hiprtc. In one process each: random arrays joined, and shuffled."""
    for code in (CONCATENATE, STREAMS):
        on_fake_cuda('DEVICE = "rocm:1"' + RANDOM + code)


def test_large_scans(on_fake_cuda: Callable[[str], None]) -> None:
    """More rows than one chunk, and than one chunk of chunks, adds up."""
    on_fake_cuda(f"""{RANDOM}
rows = pa.array([[i] * (i % 3) for i in range(5000)], pa.list_(pa.int16()))
there = arrowdl.from_arrow(rows).to("cuda")
made = _core.concatenate([there[7:], there[:7]])
assert read(made) == rows.to_pylist()[7:] + rows.to_pylist()[:7]
""")


def test_fixed_widths_do_not_wait(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{RANDOM}
import ctypes
rows = np.arange(12, dtype="i4")
memory = cuda.allocate(rows.nbytes)
ctypes.memmove(memory, rows.ctypes.data, rows.nbytes)
stream = cuda.make_stream()
with cuda.gate(stream):
    array = arrowdl.to_arrow_device(cuda.tensor(memory, (12,), stream=stream))
    column = _core.make_struct(["x"], [array])
    joined = _core.concatenate([column[6:], column[:6]])
    shuffled = next(iter(_core.chain([column]).shuffle(12, 3)))
    assert not joined.is_ready() and not shuffled.is_ready()
assert [row["x"] for row in read(joined)] == [*range(6, 12), *range(6)]
here = _core.make_struct(["x"], [arrowdl.to_arrow_device(rows)])
assert read(shuffled) == pa.array(next(iter(_core.chain([here]).shuffle(12, 3)))).to_pylist()
""")


@pytest.mark.parametrize("device", ["cuda", "rocm"])
def test_nulls_are_counted(on_fake_cuda: Callable[[str], None], device: str) -> None:
    on_fake_cuda(f"""{RANDOM}
rows = pa.array([None if i % 3 == 0 else i for i in range(1000)])
for rows in (rows, rows[1:3], pa.array([7, 8, 9])):
    there = arrowdl.from_arrow(rows).to("{device}")
    for start, stop in ((0, 0), (0, 1), (1, 3), (5, 999), (0, 1000)):
        window = there[start:stop]
        assert window.null_count == pa.array(window.to("cpu")).null_count
""")


def test_malformed_arrays_are_refused(on_fake_cuda: Callable[[str], None]) -> None:
    on_fake_cuda(f"""{RANDOM}
numbers = pa.array(range(4))
text = pa.py_buffer(b"abcd")
for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.string(), pa.large_string()):
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_large = pa.types.is_large_list(kind) or pa.types.is_large_string(kind)
    for wrong in ([0, 3, 2, 4], [0, 1 - 2**31, 2, 4], [0, 9, 2, 4], [0, 1, -3, 4]):
        offsets = np.array([0, 1, 2, 4], "i8" if is_large else "i4")
        buffers = [None, pa.py_buffer(offsets), *([text] if is_text else [])]
        rows = pa.Array.from_buffers(kind, 3, buffers, children=[] if is_text else [numbers])
        here = arrowdl.from_arrow(rows)
        offsets[:] = wrong
        there = here.to("cuda")
        refused(ValueError, "malformed", lambda: _core.concatenate([there, there]))
        refused(ValueError, "malformed", lambda: arrowdl.to_numpy(there, ragged="offsets"))
ends = np.array([2, 9], "i2")
runs = pa.RunEndEncodedArray.from_buffers(
    pa.run_end_encoded(pa.int16(), pa.int8()), 9, [None],
    children=[pa.Array.from_buffers(pa.int16(), 2, [None, pa.py_buffer(ends)]),
              pa.array([1, 2], pa.int8())])
ends[1] = 5
there = arrowdl.from_arrow(runs).to("cuda")
refused(ValueError, "malformed", lambda: _core.concatenate([there, there]))
""")


@pytest.mark.parametrize("rows", [10, 70_000])
def test_offsets_of_null_rows_are_checked(on_fake_cuda: Callable[[str], None], rows: int) -> None:
    """As on the CPU, also where the lengths of null rows cancel each other out."""
    on_fake_cuda(f"""{RANDOM}
offsets = np.zeros({rows} + 1, "i4")
valid = pa.array([i > 1 for i in range({rows})]).buffers()[1]
here = arrowdl.from_arrow(pa.Array.from_buffers(
    pa.list_(pa.int64()), {rows}, [valid, pa.py_buffer(offsets)], children=[pa.array(range(4))]))
offsets[1] = 10**8
offsets[2:] = np.minimum(np.arange({rows} - 1), 4)
there = here.to("cuda")
for array in (here, there):
    for ragged in ("offsets", "padded"):
        refused(ValueError, "malformed",
                lambda: arrowdl.to_numpy(array, nulls="fill", ragged=ragged))
    refused(ValueError, "malformed", lambda: _core.concatenate([array, array]))
""")


def test_what_kernels_cannot_gather_goes_through_the_host(
    on_fake_cuda: Callable[[str], None],
) -> None:
    on_fake_cuda(f"""{RANDOM}
codes = [arrowdl.from_arrow(pa.array(rows).dictionary_encode()).to("cuda")
         for rows in (["a", "b"], ["c"])]
assert read(_core.concatenate(codes)) == ["a", "b", "c"]
columns = [_core.make_struct(["x"], [one]) for one in codes]
shuffled = [row["x"] for rows in _core.chain(columns).shuffle(3, 1) for row in read(rows)]
assert sorted(shuffled) == ["a", "b", "c"]
union = pa.UnionArray.from_dense(
    pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()),
    [pa.array([1, 2]), pa.array([0.5])])
there = arrowdl.from_arrow(union).to("cuda")
assert read(_core.concatenate([there[1:], there])) == [0.5, 2, 1, 0.5, 2]
number = _core.read_row_numbers
numbered = _core.number_rows([there, there], number([0, 3], 9))
taken, is_shared = _core.take_rows(numbered, number([5, 0, 1], 6))
assert read(taken) == [2, 1, 0.5] and not is_shared
taken, is_shared = _core.take_rows(numbered, number([1, 2], 6))
assert read(taken) == [0.5, 2] and not is_shared
same = _core.concatenate([codes[0][1:], codes[0]])
assert read(same) == ["b", "a", "b"]
unused = arrowdl.from_arrow(pa.array(["x"]).dictionary_encode())[:0].to("cuda")
assert read(_core.concatenate([unused, codes[0][1:], unused, codes[0]])) == ["b", "a", "b"]
assert read(_core.concatenate([unused, unused])) == []
runs = pa.RunEndEncodedArray.from_arrays(pa.array([20_000], pa.int16()), pa.array([1]))
runs = arrowdl.from_arrow(runs).to("cuda")
refused(BufferError, "run ends", lambda: _core.concatenate([runs, runs]))
there_ints = arrowdl.from_arrow(pa.array([1, 2])).to("cuda")
lists = _core.make_list(there_ints, arrowdl.from_arrow(pa.array([0, 2, 2], pa.int32())).to("cuda"))
assert read(lists) == [[1, 2], []]
wrong = arrowdl.from_arrow(pa.array([0, 3], pa.int32())).to("cuda")
refused(ValueError, "offset 1 is 3", lambda: _core.make_list(there_ints, wrong))
""")
