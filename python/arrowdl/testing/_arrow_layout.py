"""What Arrow's format strings say of an array, and whether a schema and an array agree."""

from __future__ import annotations

import ctypes
import itertools
import re
import struct
from dataclasses import dataclass
from typing import Any

from arrowdl.testing._report import Recorder
from arrowdl.testing._structs import HOST_READABLE, NULLABLE, ArrowArray, ArrowSchema


@dataclass(frozen=True)
class Layout:
    """The buffers and children of a format."""

    # ``validity``, ``bits``, ``values``, ``offsets``, ``sizes``, ``bytes``, ``views``, ``types``
    buffers: tuple[str, ...]
    width: int = 0  # bytes of a value, or of an offset
    children: int | None = 0  # None if any number is allowed
    list_size: int = 0  # the rows of a child for one row of a list of a fixed size


_PRIMITIVE = {"c": 1, "C": 1, "s": 2, "S": 2, "i": 4, "I": 4, "l": 8, "L": 8}
_PRIMITIVE |= {"e": 2, "f": 4, "g": 8, "tdD": 4, "tdm": 8, "tts": 4, "ttm": 4, "ttu": 8, "ttn": 8}
_PRIMITIVE |= {"tiM": 4, "tiD": 8, "tin": 16}
_PRIMITIVE |= {f"tD{unit}": 8 for unit in "smun"}

_VALUES = ("validity", "values")
_FIXED: dict[str, Layout] = {
    "n": Layout(()),
    "b": Layout(("validity", "bits")),
    **{format: Layout(_VALUES, width) for format, width in _PRIMITIVE.items()},
    **{format: Layout(("validity", "offsets", "bytes"), 4) for format in "zu"},
    **{format: Layout(("validity", "offsets", "bytes"), 8) for format in "ZU"},
    **{format: Layout(("validity", "views"), 16) for format in ("vz", "vu")},
    "+l": Layout(("validity", "offsets"), 4, 1),
    "+L": Layout(("validity", "offsets"), 8, 1),
    "+vl": Layout(("validity", "view offsets", "sizes"), 4, 1),
    "+vL": Layout(("validity", "view offsets", "sizes"), 8, 1),
    "+s": Layout(("validity",), 0, None),
    "+m": Layout(("validity", "offsets"), 4, 1),
    "+r": Layout((), 0, 2),
}


def find_layout(format: str) -> Layout | None:
    """Return the layout of a format string, None if the specification does not define it."""
    if format in _FIXED:
        return _FIXED[format]
    if re.fullmatch(r"ts[smun]:.*", format):
        return Layout(_VALUES, 8)
    if match := re.fullmatch(r"d:\d+,-?\d+(?:,(\d+))?", format):
        return Layout(_VALUES, int(match[1] or 128) // 8)
    if match := re.fullmatch(r"w:(\d+)", format):
        return Layout(_VALUES, int(match[1]))
    if match := re.fullmatch(r"\+w:(\d+)", format):
        return Layout(("validity",), 0, 1, int(match[1]))
    if match := re.fullmatch(r"\+u([ds]):((?:\d+)(?:,\d+)*)?", format):
        ids = (match[2] or "").split(",") if match[2] else []
        buffers = ("types", "union offsets") if match[1] == "d" else ("types",)
        return Layout(buffers, 4, len(ids))
    return None


def children_of(node: Any) -> list[Any]:
    return [node.children[index].contents for index in range(node.n_children)]


def addresses_of(array: ArrowArray) -> list[int]:
    return [array.buffers[index] or 0 for index in range(array.n_buffers)]


def bit(address: int, index: int) -> bool:
    return bool(ctypes.string_at(address + index // 8, 1)[0] >> (index % 8) & 1)


def is_valid(array: ArrowArray, row: int) -> bool:
    """Whether row `row` of an array with a bitmap as its first buffer is not null."""
    address = addresses_of(array)[0] if array.n_buffers else 0
    return not address or bit(address, array.offset + row)


# ---------------------------------------------------------------------------
# Schemas


def check_schema(schema: ArrowSchema, to: Recorder, path: str = "") -> bool:
    """Record what is wrong with a schema; return whether arrays can be compared with it."""
    where = path or "the top level"
    raw = schema.format
    layout = None if raw is None else find_layout(raw.decode(errors="replace"))
    sound = to.expect(layout is not None, f"{where} has the format {raw!r}", rule="arrow-format")
    if layout is None:
        return False
    enough = layout.children is None or schema.n_children == layout.children
    enough = enough and (schema.n_children == 0 or bool(schema.children))
    enough = enough and all(bool(schema.children[index]) for index in range(schema.n_children))
    sound &= to.expect(
        enough, f"{where} ({raw!r}) has {schema.n_children} children", rule="arrow-schema-children"
    )
    to.expect(
        schema.flags & ~0b111 == 0,
        f"{where} has the flags {schema.flags:#x}",
        rule="arrow-schema-flags",
    )
    if schema.metadata:
        try:
            read_metadata(schema.metadata)
            to.passed("arrow-metadata")
        except ValueError as error:
            to.expect(False, f"{where}: {error}", rule="arrow-metadata")
    if not enough:
        return False
    for index, child in enumerate(children_of(schema)):
        sound &= check_schema(child, to, f"{path}/{(child.name or b'').decode() or index}")
    if schema.dictionary:
        sound &= check_schema(schema.dictionary.contents, to, f"{path}/dictionary")
    return sound


def read_metadata(address: int) -> dict[bytes, bytes]:
    """The metadata at `address`. ValueError if its numbers make no sense."""
    position = address

    def number() -> int:
        nonlocal position
        value: int = struct.unpack("=i", ctypes.string_at(position, 4))[0]
        position += 4
        if not 0 <= value < 1 << 24:
            raise ValueError(f"metadata have a length of {value}")
        return value

    def text() -> bytes:
        nonlocal position
        length = number()
        value = ctypes.string_at(position, length)
        position += length
        return value

    return {text(): text() for _ in range(number())}


def describe_schema(schema: ArrowSchema) -> tuple[Any, ...]:
    """What two exports of one schema have in common."""
    below = tuple(describe_schema(child) for child in children_of(schema))
    inner = describe_schema(schema.dictionary.contents) if schema.dictionary else None
    return (schema.format, schema.name or b"", schema.flags & NULLABLE, below, inner)


# ---------------------------------------------------------------------------
# Arrays


def check_array(
    schema: ArrowSchema, array: ArrowArray, to: Recorder, *, device: int, path: str = ""
) -> None:
    """Record where `array` does not agree with `schema`, which is sound."""
    where = path or "the top level"
    layout = find_layout(schema.format.decode())
    assert layout is not None
    if not _counts_are_sound(schema, array, layout, to, where):
        return
    if array.length < 0 or array.offset < 0:
        to.expect(
            False,
            f"{where} has length {array.length} and offset {array.offset}",
            rule="arrow-length",
        )
        return
    to.passed("arrow-length")
    _check_nulls(schema, array, layout, to, where, device)
    _check_buffers(array, layout, to, where)
    _check_child_lengths(schema, array, layout, to, where)
    if device in HOST_READABLE:
        _check_offsets(array, layout, to, where)
        _check_indices(schema, array, layout, to, where)
    for index, (below, child) in enumerate(
        zip(children_of(schema), children_of(array), strict=True)
    ):
        name = (below.name or b"").decode() or str(index)
        check_array(below, child, to, device=device, path=f"{path}/{name}")
    if schema.dictionary:
        inner = (schema.dictionary.contents, array.dictionary.contents)
        check_array(*inner, to, device=device, path=f"{path}/dictionary")


def _counts_are_sound(
    schema: ArrowSchema, array: ArrowArray, layout: Layout, to: Recorder, where: str
) -> bool:
    same = array.n_children == schema.n_children
    same = same and (array.n_children == 0 or bool(array.children))
    same = same and all(bool(array.children[index]) for index in range(array.n_children))
    sound = to.expect(
        same,
        f"{where} has {array.n_children} children, its schema {schema.n_children}",
        rule="arrow-array-children",
    )
    sound &= to.expect(
        bool(array.dictionary) == bool(schema.dictionary),
        f"{where} has {'a' if array.dictionary else 'no'} dictionary, its schema "
        f"{'has one' if schema.dictionary else 'none'}",
        rule="arrow-dictionary",
    )
    needed = len(layout.buffers)
    is_view = "views" in layout.buffers  # and any number of data buffers, and their sizes
    enough = array.n_buffers >= 3 if is_view else array.n_buffers == needed
    enough = enough and (array.n_buffers == 0 or bool(array.buffers))
    sound &= to.expect(
        enough,
        f"{where} ({schema.format!r}) has {array.n_buffers} buffers, not {needed}",
        rule="arrow-n-buffers",
    )
    return sound


def _check_nulls(
    schema: ArrowSchema, array: ArrowArray, layout: Layout, to: Recorder, where: str, device: int
) -> None:
    if not to.expect(
        -1 <= array.null_count <= array.length,
        f"{where} has {array.null_count} nulls in {array.length} rows",
        rule="arrow-null-count",
    ):
        return
    bitmap = addresses_of(array)[0] if layout.buffers[:1] == ("validity",) else 0
    counted = None
    if bitmap and device in HOST_READABLE:
        counted = sum(not bit(bitmap, array.offset + row) for row in range(array.length))
        to.expect(
            array.null_count in (-1, counted),
            f"{where} says {array.null_count} nulls, the bitmap has {counted}",
            rule="arrow-null-count",
        )
    if layout.buffers[:1] == ("validity",) and not bitmap:
        to.expect(
            array.null_count == 0 or array.length == 0,
            f"{where} has null_count {array.null_count} and no bitmap",
            rule="arrow-null-buffer",
            severity="error" if array.null_count > 0 else "warning",
        )
    nulls = array.null_count if counted is None else counted
    if nulls is not None and nulls > 0 and not schema.flags & NULLABLE:
        to.prefer(
            False, f"{where} is not nullable and has {nulls} nulls", rule="arrow-not-nullable"
        )
    else:
        to.passed("arrow-not-nullable")


def _check_buffers(array: ArrowArray, layout: Layout, to: Recorder, where: str) -> None:
    rows = array.length + array.offset
    addresses = addresses_of(array)
    for kind, address in zip(layout.buffers, addresses, strict=False):
        if kind in ("validity", "bytes"):
            continue
        empty = rows == 0 or (kind == "values" and layout.width == 0)
        if not empty:
            to.expect(
                bool(address),
                f"the {kind} of {where} are NULL, for {rows} rows",
                rule="arrow-null-buffer",
                advice="export the buffer: NULL means that it has no bytes",
            )
        width = layout.width if kind not in ("bits", "types") else 1
        width = min(width & -width, 8) if width else 1  # the largest power of 2 that divides it
        to.prefer(
            address % width == 0,
            f"the {kind} of {where} are not at a multiple of {width} bytes",
            rule="arrow-alignment",
        )


def _check_child_lengths(
    schema: ArrowSchema, array: ArrowArray, layout: Layout, to: Recorder, where: str
) -> None:
    if schema.format not in (b"+s",) and not layout.list_size:
        return
    rows = (array.offset + array.length) * (layout.list_size or 1)
    for child in children_of(array):
        to.expect(
            child.length >= rows,
            f"a child of {where} has {child.length} rows, {rows} are needed",
            rule="arrow-child-length",
        )


def _check_offsets(array: ArrowArray, layout: Layout, to: Recorder, where: str) -> None:
    if "offsets" not in layout.buffers or array.length == 0:
        return
    address = addresses_of(array)[layout.buffers.index("offsets")]
    if not address:
        return
    code = "i" if layout.width == 4 else "q"
    count = array.length + 1
    raw = ctypes.string_at(address + array.offset * layout.width, count * layout.width)
    offsets = struct.unpack(f"={count}{code}", raw)
    rising = offsets[0] >= 0 and all(low <= high for low, high in itertools.pairwise(offsets))
    within = array.n_children == 0 or offsets[-1] <= children_of(array)[0].length
    data = "bytes" not in layout.buffers or offsets[-1] == 0 or addresses_of(array)[2] != 0
    to.expect(
        rising and within and data,
        f"the offsets of {where} are {offsets[:4]}..., ending at {offsets[-1]}"
        + ("" if within else ", after the end of the child")
        + ("" if data else ", of data that are NULL"),
        rule="arrow-offsets",
    )


_INDEX_CODES = dict(zip((b"c", b"C", b"s", b"S", b"i", b"I", b"l", b"L"), "bBhHiIqQ", strict=True))


def _check_indices(
    schema: ArrowSchema, array: ArrowArray, layout: Layout, to: Recorder, where: str
) -> None:
    if not schema.dictionary or array.length == 0 or layout.width not in (1, 2, 4, 8):
        return
    code = _INDEX_CODES.get(schema.format)
    address = addresses_of(array)[1]
    if not address or code is None:
        return
    raw = ctypes.string_at(address + array.offset * layout.width, array.length * layout.width)
    indices = struct.unpack(f"={array.length}{code}", raw)
    size = array.dictionary.contents.length
    wrong = [
        index for row, index in enumerate(indices) if is_valid(array, row) and not 0 <= index < size
    ]
    to.expect(
        not wrong,
        f"{where} has the index {wrong[0] if wrong else ''}, its dictionary {size} values",
        rule="arrow-dictionary-indices",
    )
