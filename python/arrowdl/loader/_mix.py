"""`open_mixture`: the sources that `Loader.mix` was given, as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from arrowdl.loader._checks import require_int
from arrowdl.loader._epoch.read import Order
from arrowdl.loader._mixture.mixture import Member, MixedSource, read_stop
from arrowdl.loader._mixture.shares import read_schedule
from arrowdl.loader._options import Options, choose_splits
from arrowdl.loader._reader import EpochReader
from arrowdl.loader._schema.vocabulary import Vocabulary
from arrowdl.loader._sources.base import IndexedSource, Source
from arrowdl.loader._sources.row_bytes import count_lanes


def open_mixture(
    sources: Any,
    weights: Any,
    stop: Any,
    origin: Any,
    open: Callable[[Any], Source],
    seed: int,
    global_batch_size: int | None,
    splits: int,
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
    global_batch_size : int, optional
        None with a budget of tokens.
    splits : int
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
    mixture = MixedSource(
        [make_member(name, given) for name, given in sources.items()],
        schedule,
        0 if global_batch_size is None else global_batch_size // splits,
        read_stop(stop),
        splits,
        origin,
    )
    mixture.vocabulary = vocabulary
    mixture.unite_vocabularies()
    return mixture


def _take_loader(name: str, loader: EpochReader) -> Member:
    options: Options = loader._options
    for option in ("transform", "transform_arrow", "pack"):
        if getattr(options, option) is not None:
            raise ValueError(
                f'the Loader "{name}" has {option}=: give it to Loader.mix, whose batches have '
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
    if isinstance(source, MixedSource):
        raise TypeError(
            f'"{name}" is a mixture, and a mixture takes sources: name the sources of '
            f'"{name}" here, each with its weight there times that of "{name}"'
        )
    if not isinstance(source, IndexedSource):
        raise TypeError(
            f'"{name}" is a stream: a mixture takes sources whose rows can be read in any order, '
            "such as files, datasets and tables. Make a table of it (pyarrow.table(stream)), or "
            "write it to files"
        )
    return source


def read_sizes(
    global_batch_size: Any,
    global_batch_tokens: Any,
    batch_size: Any,
    batch_tokens: Any,
    splits: Any,
) -> tuple[int | None, int]:
    """Return the rows of a step of a mixture, None with a budget of tokens, and its sequences.

    Raises
    ------
    TypeError, ValueError
        A mixture has no such steps.
    """
    for name, value in (("batch_size", batch_size), ("batch_tokens", batch_tokens)):
        if value is not None:
            raise ValueError(
                f"{name}={value!r}: a mixture has the same steps on any number of ranks, give it "
                f"global_{name}="
            )
    size = global_batch_size
    if size is not None:
        size = require_int("global_batch_size", size, 1, 2**40)
    elif global_batch_tokens is None:
        raise TypeError(
            "give global_batch_size=, the rows of a step on all ranks, or "
            "global_batch_tokens=, its tokens"
        )
    if splits is None:
        raise ValueError('splits=None: a mixture has sequences, give their number or "auto"')
    number = choose_splits(splits, size, global_batch_tokens)
    return size, require_int("splits", number, 1, 2**32)
