"""The names of table snapshots, in states and in errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


def remove_secrets(location: str) -> str:
    """Return a location without user, password, query and fragment of its URL.

    >>> remove_secrets("https://me:secret@host/table?sig=abc")
    'https://host/table'
    """
    if "://" not in location:
        return location
    return re.sub(r"://[^/@]*@", "://", re.split(r"[?#]", location)[0])


@contextmanager
def naming_snapshot(name: str) -> Iterator[None]:
    """Add the snapshot that was read to an error, and what to do if its files are gone."""
    try:
        yield
    except Exception as error:
        note = (
            f"while arrowdl.Loader read {name}. If its files were removed (vacuum, cleanup, "
            "expired snapshots), make a new Loader of a version that exists, and keep files for "
            "longer than a training"
        )
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise
