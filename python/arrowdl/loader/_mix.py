"""`mix_sources`: the sources that `Loader.mix` was given, as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, cast

from arrowdl.loader._epoch.read import Order
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._mixture.order import Member, MixedOrder, read_stop
from arrowdl.loader._mixture.schedule import read_schedule
from arrowdl.loader._open.source import make_request, open_source
from arrowdl.loader._options.functions import Functions
from arrowdl.loader._options.options import Options
from arrowdl.loader._options.sizes import choose_splits
from arrowdl.loader._reader import EpochReader
from arrowdl.loader._settings.flatten import (
    flatten_errors,
    read_ranks,
    read_seed,
    read_storage,
    split_size,
)
from arrowdl.loader._settings.ranks import Ranks
from arrowdl.loader._skip.tally import check_left_out
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._sources.base import IndexedSource, Source
from arrowdl.loader._sources.request import Request
from arrowdl.loader._sources.row_bytes import count_lanes

_OF_MIXTURE: dict[str, Callable[[Options], Any]] = {
    "transform=": lambda options: options.functions.transform,
    "transform_arrow=": lambda options: options.functions.transform_arrow,
    "batching=Pack(...)": lambda options: options.pack,
}


class Mixed(NamedTuple):
    """What `Loader.mix` makes a Loader of."""

    source: Any  # a `MixedSource`, which users have no other way to give
    ranks: Ranks
    skipped: Sequence[Skipped]  # files that cannot be opened


def mix_sources(
    sources: Any,
    weights: Any,
    stop: Any,
    origin: Any,
    columns: Any,
    filter: Any,
    vocabulary: Any,
    ranks: Any,
    seed: Any,
    storage: Any,
    options: Mapping[str, Any],  # the others of `Loader.mix`, as `on_error`
) -> Mixed:
    """Open the sources of a mixture.

    Raises TypeError if `sources` is not a mapping, or one of them is a stream; ValueError if the
    sources, or the weights, do not fit together.
    """
    storage = read_storage(storage)
    if storage.plan is not None:
        raise ValueError("Storage.plan is for one source: give each Loader of the mixture its own")
    ranks = read_sizes(read_ranks(ranks))
    skip = flatten_errors(options.get("on_error", "raise"))
    skips = skip["on_error"] == "skip"
    functions = Functions(transform_arrow=options.get("transform_arrow"))
    dtype = options.get("dtype")
    request = make_request(columns, filter, vocabulary, storage, functions, dtype, skips=skips)
    mixture = _open_members(sources, weights, stop, origin, request, read_seed(seed).number, ranks)
    if options.get("transform_arrow") is None:
        request.vocabulary.check_names(mixture.column_names or [])
    if request.skipped:
        check_left_out(request.skipped, mixture, skip["max_skipped_rows"])
    return Mixed(mixture, ranks, request.skipped or ())


def _open_members(
    sources: Any, weights: Any, stop: Any, origin: Any, request: Request, seed: int, ranks: Ranks
) -> MixedSource:
    """Open the sources of a mixture; each that is not a Loader gets a seed of its own."""
    if not isinstance(sources, Mapping) or not sources:
        shown = "empty" if isinstance(sources, Mapping) else f"a {type(sources).__name__}"
        raise TypeError(
            f"sources= is {shown}: give one or more sources by their names, as in "
            '{"code": code, "web": web}'
        )
    if origin is not None and not (isinstance(origin, str) and origin):
        raise TypeError(f"origin={origin!r}: give the name of a column")
    names = list(sources)
    seeds = Order(seed, None)

    def make_member(name: str, source: Any) -> Member:
        if isinstance(source, EpochReader):
            return _take_loader(name, source)
        member_seed = seeds.make_seed(0, f"source {name}")
        return Member(
            name, _require_indexed(name, open_source(source, request)), member_seed, None, False
        )

    schedule = read_schedule(names, weights)
    rows, _, _ = split_size(ranks.global_batch_size)
    assert isinstance(ranks.splits, int)
    rows_of_step = 0 if rows is None else rows // ranks.splits
    members = [make_member(name, source) for name, source in sources.items()]
    order = MixedOrder(members, schedule, rows_of_step, read_stop(stop), ranks.splits)
    mixture = MixedSource(members, order, origin, request.dtype)
    mixture.vocabulary = request.vocabulary
    if united := mixture.columns.find_united(request.vocabulary):
        mixture.use_vocabulary(united)
    return mixture


def _take_loader(name: str, loader: EpochReader) -> Member:
    options: Options = loader._options
    for option, find in _OF_MIXTURE.items():
        if find(options) is not None:
            raise ValueError(
                f'the Loader "{name}" has {option}: give it to Loader.mix, whose batches have '
                "rows of all sources"
            )
    if options.functions.chain:
        raise ValueError(
            f'the Loader "{name}" has map() or filter(): call it on what Loader.mix returns, whose '
            "batches have rows of all sources"
        )
    source = _require_indexed(name, loader._source)
    size = options.buffer_rows if options.shuffle else None
    # The mixture may give it another vocabulary, and the Loader keeps its own.
    lanes = count_lanes(source.measure_held(), options.buffer_rows)
    return Member(name, copy(source), options.seed, size, True, lanes)


def _require_indexed(name: str, source: Source) -> IndexedSource:
    if source.schedule:
        raise TypeError(
            f'"{name}" is a mixture, and a mixture cannot be mixed again: name the sources of '
            f'"{name}" here, each with its weight there times the weight of "{name}"'
        )
    if source.num_rows is None:
        raise TypeError(
            f'"{name}" is a stream: a mixture takes sources whose rows can be read in any order, '
            "such as files, datasets and tables. Make a table of it (pyarrow.table(stream)), or "
            "write it to files"
        )
    return cast("IndexedSource", source)


def read_sizes(ranks: Ranks) -> Ranks:
    """Return the ranks of a mixture, with the number of its sequences.

    Raises TypeError or ValueError if a mixture has no such steps.
    """
    if ranks.global_batch_size is None:
        raise TypeError(
            "give ranks=Ranks(global_batch_size=...), the rows of a step on all ranks, or its "
            "tokens, Tokens(...)"
        )
    if ranks.splits is None:
        raise ValueError(
            'Ranks.splits=None: a mixture needs sequences, give their number or "auto"'
        )
    rows, tokens, _ = split_size(ranks.global_batch_size)
    return replace(ranks, splits=choose_splits(ranks.splits, rows, tokens))
