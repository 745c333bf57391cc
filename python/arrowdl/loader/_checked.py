"""`open_checked`: opens what a Loader was given, and checks that its options fit the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arrowdl.loader._epoch.packed import check_pack
from arrowdl.loader._open.open_by_plan import open_by_plan
from arrowdl.loader._open.source import make_request
from arrowdl.loader._options.options import Options
from arrowdl.loader._parquet.polars_decoder import import_polars
from arrowdl.loader._settings.storage import Storage
from arrowdl.loader._skip.tally import check_left_out
from arrowdl.loader._skipped import Skipped
from arrowdl.loader._sources.base import Source
from arrowdl.loader._sources.tokenized import tokenize_ahead


def open_checked(
    source: Any, columns: Any, filter: Any, vocabulary: Any, storage: Storage, options: Options
) -> tuple[Source, Options, Sequence[Skipped]]:
    """Open a source, and check that `options` can make batches of its rows.

    The arguments but `options` are those of `Loader`. Returns the source, the options of its
    batches, and the files that cannot be opened and are skipped. Raises TypeError or ValueError if
    the source cannot be read, or lacks a column that the options name; OSError if files cannot be
    opened and are not skipped.
    """
    if storage.decoder == "polars":
        import_polars()  # on all ranks alike, before they share a plan
    functions, dtype, skips = options.functions, options.dtype, options.skips
    request = make_request(columns, filter, vocabulary, storage, functions, dtype, skips=skips)
    opened = open_by_plan(source, request, storage.plan)
    if storage.decoder != "pyarrow":
        opened.use_decoder(storage.decoder)
    if request.skipped:
        check_left_out(request.skipped, opened, options.max_skipped_rows)
    opened, options = tokenize_ahead(opened, options)
    names = opened.column_names if options.pack is None else check_pack(opened, options.pack)
    if names is not None:
        options.functions.check_arrow_columns(names)
    if names is not None and options.functions.transform_arrow is None:
        options.check_columns(names)
        opened.vocabulary.check_names(names)
    return opened, options, request.skipped or ()
