"""`open_epochs`: the epochs of a source, by its kind."""

from __future__ import annotations

from typing import Any, cast

from arrowdl.loader._epoch.epochs import Epochs, StreamEpochs
from arrowdl.loader._epoch.indexed import IndexedEpochs
from arrowdl.loader._epoch.mixed import MixedEpochs
from arrowdl.loader._epoch.packed import PackedEpochs
from arrowdl.loader._mixture.mixture import MixedSource
from arrowdl.loader._options.options import Options
from arrowdl.loader._sources.base import IndexedSource, Source
from arrowdl.loader._sources.stream import StreamSource


def open_epochs(source: Source, options: Options) -> Epochs[Any]:
    """Return the epochs of a source, with blocks in the place of rows if `pack` is given.

    Raises TypeError if the options need the lengths of rows, and the source is a stream. Raises
    ValueError if the options name a column that the source does not have.
    """
    rows: Epochs[Any]
    if isinstance(source, StreamSource):
        rows = StreamEpochs(source, options)
    elif isinstance(source, MixedSource):
        rows = MixedEpochs(source, options)
    else:
        rows = IndexedEpochs(cast("IndexedSource", source), options)
    return rows if options.pack is None else PackedEpochs(rows, options.pack)
