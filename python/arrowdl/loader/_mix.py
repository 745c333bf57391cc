"""`open_mixture`: the sources that `Loader.mix` was given, as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, cast

from arrowdl.loader._epoch.read import Order
from arrowdl.loader._mixture.mixture import Member, MixedSource, read_stop
from arrowdl.loader._mixture.schedule import read_schedule
from arrowdl.loader._options import Options, choose_splits
from arrowdl.loader._reader import EpochReader
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._settings.flatten import split_size
from arrowdl.loader._settings.ranks import Ranks
from arrowdl.loader._sources.base import IndexedSource, Source
from arrowdl.loader._sources.row_bytes import count_lanes

_OF_MIXTURE = {
    "transform=": "transform",
    "transform_arrow=": "transform_arrow",
    "batching=Pack(...)": "pack",
}


def open_mixture(
    sources: Any,
    weights: Any,
    stop: Any,
    origin: Any,
    open: Callable[[Any], Source],
    seed: int,
    ranks: Ranks,
    vocabulary: Vocabulary,
) -> MixedSource:
    """Open the sources of a mixture.

    Parameters
    ----------
    sources : mapping of str to object
        Loaders, or what `open` takes.
    weights, stop, origin
        As in `Loader.mix`.
    open : callable
        Opens a source.
    seed : int
        Of which each source that is no Loader gets one of its own.
    ranks : Ranks
        That `read_sizes` returned.
    vocabulary : Vocabulary
        That the user gave.

    Raises
    ------
    TypeError
        `sources` is no mapping, or one of them is a stream.
    ValueError
        The sources do not fit together, or the weights do not fit them.
    """
    if not isinstance(sources, Mapping) or not sources:
        given = "empty" if isinstance(sources, Mapping) else f"a {type(sources).__name__}"
        raise TypeError(
            f"sources= is {given}: give one or more sources by their names, as in "
            '{"code": code, "web": web}'
        )
    if origin is not None and not (isinstance(origin, str) and origin):
        raise TypeError(f"origin={origin!r}: give the name of a column")
    names = list(sources)
    order = Order(seed, None)

    def make_member(name: str, given: Any) -> Member:
        if isinstance(given, EpochReader):
            return _take_loader(name, given)
        own = order.make_seed(0, f"source {name}")
        return Member(name, _require_indexed(name, open(given)), own, None, False)

    schedule = read_schedule(names, weights)
    rows, _, _ = split_size(ranks.global_batch_size)
    assert isinstance(ranks.splits, int)
    mixture = MixedSource(
        [make_member(name, given) for name, given in sources.items()],
        schedule,
        0 if rows is None else rows // ranks.splits,
        read_stop(stop),
        ranks.splits,
        origin,
    )
    mixture.vocabulary = vocabulary
    mixture.unite_vocabularies()
    return mixture


def _take_loader(name: str, loader: EpochReader) -> Member:
    options: Options = loader._options
    for option, field in _OF_MIXTURE.items():
        if getattr(options, field) is not None:
            raise ValueError(
                f'the Loader "{name}" has {option}: give it to Loader.mix, whose batches have '
                "rows of all sources"
            )
    if options.chain:
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
            f'"{name}" is a mixture, and a mixture takes sources: name the sources of '
            f'"{name}" here, each with its weight there times that of "{name}"'
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

    Raises
    ------
    TypeError, ValueError
        A mixture has no such steps.
    """
    if ranks.global_batch_size is None:
        raise TypeError(
            "give ranks=Ranks(global_batch_size=...), the rows of a step on all ranks, or its "
            "tokens, Tokens(...)"
        )
    if ranks.splits is None:
        raise ValueError('Ranks.splits=None: a mixture has sequences, give their number or "auto"')
    rows, tokens, _ = split_size(ranks.global_batch_size)
    return replace(ranks, splits=choose_splits(ranks.splits, rows, tokens))
