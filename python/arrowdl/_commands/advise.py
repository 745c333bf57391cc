"""What would make a source quicker to read, or its columns more useful, by what was found."""

from __future__ import annotations

from collections.abc import Iterator

from arrowdl._commands.inspection import Column, Inspection
from arrowdl.loader._look.explain import show_bytes

_SMALL, _LARGE = 2**20, 2**27  # bytes of a row group: what is read at once has 128 MiB
_GOOD = "write row groups of some 10 to 100 MB"
_FEW_GROUPS = 12  # which a shuffle reads side by side
_STRINGS = ("string", "large_string", "string_view")


def advise(found: Inspection) -> list[str]:
    """Return sentences, the most useful first."""
    return [*_advise_groups(found), *_advise_codecs(found), *_advise_columns(found.columns)]


def _advise_groups(found: Inspection) -> Iterator[str]:
    sizes, groups = found.group_bytes, found.row_groups or 0
    if sizes is None:
        return
    if sizes.largest > _LARGE:
        yield (
            f"row groups are large (up to {show_bytes(sizes.largest)} before compression), and "
            f"are decoded as a whole: {_GOOD}"
        )
    if sizes.median < _SMALL and groups > 1:
        yield (
            f"row groups are small (median {show_bytes(sizes.median)} before compression), and "
            f"each costs headers and a request: {_GOOD}"
        )
    if groups < _FEW_GROUPS and sizes.largest > _LARGE // 4:
        yield (
            f"a shuffle that cannot hold all rows mixes those of {groups} row groups only: write "
            "more, smaller ones"
        )


def _advise_codecs(found: Inspection) -> Iterator[str]:
    slow = [codec for codec in found.codecs if codec in ("gzip", "brotli")]
    if slow:
        yield f"{' and '.join(slow)} decodes slowly: zstd and snappy take less time"


def _advise_columns(columns: list[Column]) -> Iterator[str]:
    yield from (column.problem for column in columns if column.problem)
    for chosen, advice in (
        ([one for one in columns if one.nulls], "nulls: give nulls= a policy for each"),
        (
            [one for one in columns if "double" in one.type],
            "float64, which training seldom needs: dtype='float32' casts it, and float32 files are "
            "half as large",
        ),
        (
            [one for one in columns if one.type in _STRINGS and one.is_short],
            "few distinct strings: vocabulary= makes codes of them",
        ),
    ):
        if chosen:
            yield f"{_name(chosen)}: {advice}"
    if chosen := [column for column in columns if column.is_sorted]:
        yield (
            f"rows are sorted by {_name(chosen)}: shuffle=True mixes them, and filter= by these "
            "columns skips row groups"
        )


def _name(columns: list[Column]) -> str:
    return ", ".join(f'"{column.name}"' for column in columns)
