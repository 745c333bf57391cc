"""``python -m arrowdl inspect``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from arrowdl._commands.inspection import Column, Inspection, inspect_source
from arrowdl._commands.sources import add_source, choose_framework, fail, open_named
from arrowdl.loader._look.explain import show_bytes


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code: 1 if the source cannot be read, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m arrowdl inspect",
        description="Say what a source has, and what a Loader makes of it. Only metadata is read.",
    )
    add_source(parser)
    parser.add_argument("--framework", choices=["torch", "jax", "numpy"], help="default: torch")
    parsed = parser.parse_args(arguments)
    try:
        source = open_named(parsed.source, parsed.as_)
        inspection = inspect_source(source, choose_framework(parsed.framework))
    except (OSError, TypeError, ValueError, ImportError) as error:
        return fail(error)
    inspection.advice = advise(inspection)
    print(json.dumps(asdict(inspection), indent=2, default=str) if parsed.json else inspection)
    return 0


_SMALL, _LARGE = 2**20, 2**27  # bytes of a row group: what is read at once has 128 MiB
_GOOD = "write row groups of some 10 to 100 MB"
_FEW_GROUPS = 12  # which a shuffle reads side by side
_STRINGS = ("string", "large_string", "string_view")


def advise(inspection: Inspection) -> list[str]:
    """Return sentences, the most useful first."""
    return [
        *_advise_groups(inspection),
        *_advise_codecs(inspection),
        *_advise_columns(inspection.columns),
    ]


def _advise_groups(inspection: Inspection) -> Iterator[str]:
    sizes, groups = inspection.group_bytes, inspection.row_groups or 0
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


def _advise_codecs(inspection: Inspection) -> Iterator[str]:
    slow = [codec for codec in inspection.codecs if codec in ("gzip", "brotli")]
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
        (
            [one for one in columns if "binary" in one.type],
            "bytes: transform_arrow= with arrowdl.Image or Audio decodes images and audio",
        ),
        (
            [one for one in columns if one.is_sorted],
            "rows are sorted by these: shuffle=True mixes them, filter= by them skips row groups",
        ),
    ):
        if chosen:
            names = ", ".join(f'"{one.name}"' for one in chosen)
            yield f"{names}: {advice}"
