"""Says that filters keep no row of an epoch."""

from __future__ import annotations

from arrowdl.loader._epoch.read import Reader
from arrowdl.loader._options.options import Options
from arrowdl.loader._sources.base import Source
from arrowdl.loader._stats import Stats

_LONGEST = 200  # characters of a filter


def describe_empty(
    read: Stats,  # what the epoch has counted
    reader: Reader,
    options: Options,
    source: Source,  # the rows that `filter` keeps. Without any, it is empty
    filter: str | None,  # what the user gave as `filter`
) -> str:
    """Say that filters keep no row of an epoch that was read from its start to its end.

    The text is empty if they keep a row, or the epoch has no row to drop.
    """
    if read.filtered_rows and not read.rows:
        return (
            f"filter({_list_functions(options)}) dropped all {read.filtered_rows:,} rows of this "
            f"epoch{_name(reader)}: valid_rows is 0 for each batch. Look at what the function "
            "returns for a batch: True for the rows that stay"
        )
    if filter is not None and not read.batches and (kept := source.explain_empty()):
        return (
            f"filter={_shorten(filter)} keeps {kept}: this epoch has no batch. Look at some "
            "rows of a Loader without it: nulls and NaN are equal to nothing, and values may "
            "have another spelling, unit or time zone"
        )
    return ""


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _name(reader: Reader) -> str:
    """Name the rank and the worker whose rows these are, if there are several."""
    ranks, workers = reader.sharding.world_size, reader.step
    names = [f"worker {reader.worker} of {workers}"] if workers > 1 else []
    names += [f"rank {reader.rank} of {ranks}"] if ranks > 1 else []
    return f" on {' of '.join(names)}" if names else ""


def _list_functions(options: Options) -> str:
    functions = [step.function for step in options.functions.steps if step.is_filter]
    return ", ".join(getattr(one, "__qualname__", type(one).__qualname__) for one in functions)
