"""`States`: the state dictionaries of a Loader, with what they must have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from arrowdl.loader._epoch.compare_states import compare_states
from arrowdl.loader._epoch.cursor import Cursor
from arrowdl.loader._epoch.state import SAMPLE, STATE_VERSION, UNREAD
from arrowdl.loader._files.file_sample import sample_files
from arrowdl.loader._files.written_files import describe_files, warn_of_rewrites
from arrowdl.loader._pipeline import Pipeline, open_pipeline
from arrowdl.loader._sources.base import Source


class States:
    """Names a source in states."""

    # `is_auto`: the user gave no number of rows for the shuffle buffer.
    def __init__(self, source: Source, *, is_auto: bool) -> None:
        self._is_auto = is_auto
        self._source = source

    @cached_property
    def _named(self) -> dict[str, Any]:
        """The items of a state that name the source: they do not change, and take some time."""
        source, files = self._source, self._source.files
        digests = describe_files(files.list_stamps())
        items: dict[str, Any] = {"source": source.identify(), "snapshot": files.snapshot}
        items |= {"files": any(digests) and digests, SAMPLE: sample_files(files.list_rows())}
        return {key: value for key, value in items.items() if value}

    def save(self, cursor: Cursor) -> dict[str, Any]:
        """Return the state of a Loader at a cursor; see `Loader.state_dict`."""
        options = cursor.epochs.options
        unread = cursor.epochs.source.describe_unread()
        return {
            "version": STATE_VERSION,
            **self._named,
            **({UNREAD: unread} if unread else {}),
            "seed": options.seed,
            "shuffle": options.shuffle,
            "buffer_size": options.buffer_rows,
            **cursor.get_state(),
        }

    def find_pipeline(self, state: Mapping[str, Any], pipeline: Pipeline) -> Pipeline:
        """Return what reads the steps of a state: by its buffer, unless the user gave its rows."""
        options, rows = pipeline.options, state["buffer_size"]
        is_sorted = options.sizes.bucket_by is not None
        buffers = options.shuffle or is_sorted
        if not (self._is_auto and buffers and rows) or state["shuffle"] != options.shuffle:
            return pipeline
        if rows != options.buffer_rows or not _has_steps(pipeline, state):
            pipeline = open_pipeline(pipeline.source, options.with_buffer(rows))
        if is_sorted and not _has_steps(pipeline, state):
            # A number of rows that a user gave is that of the windows, too.
            unbounded = replace(pipeline.options, bucket_rows=None)
            pipeline = open_pipeline(pipeline.source, unbounded)
        return pipeline

    def load(self, state: Mapping[str, Any], cursor: Cursor) -> None:
        """Move a cursor to a state. Raises ValueError if it belongs to other rows or steps."""
        is_mixed = bool(cursor.epochs.source.schedule)
        compare_states(state, self.save(cursor), is_mixed=is_mixed)
        cursor.set_state(state)
        warn_of_rewrites(state.get("files"), self._named.get("files", ()))


def _has_steps(pipeline: Pipeline, state: Mapping[str, Any]) -> bool:
    """Whether steps depend on the lengths of rows as they did when `state` was saved."""
    cursor = Cursor(pipeline.epochs)
    return bool(state.get("steps") == cursor.describe_steps().get("steps"))
