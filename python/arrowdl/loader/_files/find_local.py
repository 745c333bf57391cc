"""Files by their names: paths, globs and directories."""

from __future__ import annotations

import glob
import inspect
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, groupby, takewhile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import url2pathname

from arrowdl.loader._files.layouts import Listing, check_above, open_folder

# What people and tools leave beside data.
_DOCUMENTS = {
    *(".md", ".txt", ".rst", ".html", ".pdf", ".json", ".yaml", ".yml", ".toml", ".xml", ".log"),
    *(".crc", ".md5", ".sha256", ".py", ".ipynb", ".sh", ".png", ".jpg", ".jpeg", ".gif", ".svg"),
}
_DOCUMENT_NAMES = {"README", "LICENSE", "LICENCE", "NOTICE", "CHANGELOG"}
_END = 9  # characters that most suffixes are shorter than
_PACKAGE = str(Path(__file__).parents[2])


class Root(NamedTuple):
    """Files below a directory; directories between them that are named key=value are columns."""

    base: str
    files: list[str]
    filesystem: Any = None  # None for the local one


def list_paths(source: Any) -> list[str] | None:
    """List the paths that a user gave; None if `source` is neither a path nor a list of paths.

    Raises ValueError if an empty list.
    """
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if not isinstance(source, (list, tuple)):
        return None
    if not source:
        raise ValueError(
            f"{source!r} is empty: give a list of files or of record batches (glob.glob() returns "
            "an empty list if no file matches; the Loader also takes the pattern itself)"
        )
    if not all(isinstance(path, (str, os.PathLike)) for path in source):
        return None
    return [os.fspath(path) for path in source]


def expand_paths(
    source: Any,  # a path, a glob, a directory, or a list of these
) -> list[Root] | None:
    """List the files that `source` names; None if it is not a path.

    Raises FileNotFoundError if no file matches. Raises ValueError if an empty list.
    """
    listed = list_paths(source)
    if listed is None:
        return None
    paths = [read_path(path) for path in listed]
    base = _find_shared_directory([path for path in paths if os.path.isfile(path)])
    roots = [
        Root(base, [make_absolute(path)]) if os.path.isfile(path) else _expand_path(path)
        for path in paths
    ]
    return [
        Root(base, [file for root in same for file in root.files])
        for base, same in groupby(roots, key=lambda root: root.base)
    ]


def _find_shared_directory(files: Sequence[str]) -> str:
    directories = [os.path.dirname(make_absolute(file)) for file in files]
    return os.path.commonpath(directories) if directories else ""


def make_absolute(path: str) -> str:
    """Make a path absolute without resolving "link/..", as os.path.abspath does."""
    if os.path.isabs(path) and os.path.normpath(path) == path:  # as most paths: faster
        return path
    return str(Path(path).absolute())


def read_path(path: str) -> str:
    """Return the path that a URL of a file names, or `path` with "~" as the home directory."""
    scheme, separator, rest = path.partition("://")
    if not separator:
        return path if os.path.lexists(path) else os.path.expanduser(path)
    if scheme == "file":
        return url2pathname(rest)
    raise AssertionError(f"{scheme}:// is opened by `find_remote`")


def check_named(files: Iterable[str], paths: Sequence[str]) -> None:
    """Raise ValueError if one of the files of a plan is not at or below the paths of a user."""
    bases = []
    for path in map(read_path, paths):
        is_pattern = glob.has_magic(path) and not os.path.exists(path)
        bases.append(Path(make_absolute(_find_base(path) if is_pattern else path)))
    for file in files:
        if not any(Path(file).is_relative_to(base) for base in bases):
            raise ValueError(
                f"the plan has {file!r}, which is not at or below {', '.join(map(repr, paths))}: "
                "open what the plan is of, or make a new plan"
            )


def _expand_path(path: str) -> Root:
    listing = Listing()
    if os.path.isdir(path):
        base = make_absolute(path)
        check_above(base, set())
        _list_directory(base, listing)
        if not (files := listing.sort()):
            raise FileNotFoundError(f"no file in the directory {path!r} or below it")
    else:
        base = make_absolute(_find_base(path))
        _match(path, listing)
        if not (files := listing.sort()):
            raise FileNotFoundError(f"no file at {path!r}, and none that it matches as a pattern")
    return Root(base, list(skip_documents(path, files)))


def _read_start(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(6)


def skip_documents(
    path: str,
    files: Sequence[str],
    read_start: Callable[[str], bytes] = _read_start,
) -> Sequence[str]:
    """Leave out files such as README.md that were found beside data, with a warning."""
    if not any(_is_document(file, lambda _: b"") for file in list_ends(files)):
        return files  # by their names
    documents = [file for file in sorted(files) if _is_document(file, read_start)]
    if not documents or len(documents) == len(files):
        return files
    more = f" and {len(documents) - 1} other files" if len(documents) > 1 else ""
    warnings.warn(
        f"the Loader skips {documents[0]!r}{more} in {path!r}: neither Parquet nor Arrow IPC, by "
        "name and content. A pattern, such as '*.parquet', chooses the files",
        stacklevel=_count_package_frames(),
    )
    return [file for file in files if file not in documents]


def _count_package_frames() -> int:
    """Count the frames from the caller of this function to the user's, which a warning names."""
    frame, count = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


def _is_document(path: str, read_start: Callable[[str], bytes]) -> bool:
    """Whether a file is text or an image by its name, and neither Parquet nor Arrow IPC inside."""
    name = os.path.basename(path)
    if os.path.splitext(name)[1].lower() not in _DOCUMENTS and name not in _DOCUMENT_NAMES:
        return False
    return not read_start(path).startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"))


def list_ends(paths: Sequence[str]) -> Collection[str]:
    """Return the ends of paths, such as "0.parquet"; the paths if one may have no suffix."""
    ends = dict.fromkeys([path[-_END:] for path in paths])
    are_names = all(os.path.splitext(end)[1] and not os.path.split(end)[0] for end in ends)
    return ends if are_names else paths


def _find_base(pattern: str) -> str:
    """Return the directories of `pattern` before the first wildcard."""
    return str(Path(*takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts)))


def _list_directory(path: str, listing: Listing, above: tuple[str, ...] = ()) -> None:
    """Add the files in `path` and below it; links to a directory `above` are not followed."""
    real = os.path.realpath(path)
    if real in above:
        return
    entries = list(os.scandir(path))
    shown = [entry for entry in entries if not is_hidden(entry.name)]
    files = {entry.name: entry.path for entry in shown if entry.is_file()}
    listing.add(open_folder(path, {entry.name for entry in entries}), files)
    for entry in shown if len(files) < len(shown) else ():
        if entry.is_dir():
            _list_directory(entry.path, listing, (*above, real))


def _match(pattern: str, listing: Listing) -> None:
    """Add the files that match, and the files in directories that match."""
    base = _find_base(pattern)
    written = [part for part in Path(pattern).parts if is_hidden(part)]
    files: dict[str, dict[str, str]] = {}
    checked: set[str] = set()
    for path in glob.glob(pattern, recursive=True):
        parts = Path(os.path.relpath(path, base)).parts
        way = list(accumulate(parts, os.path.join, initial=base))
        if has_marker(parts, written) or _leads_back(way):
            continue
        absolute = make_absolute(path)
        if os.path.isdir(path):
            check_above(absolute, checked)
            _list_directory(absolute, listing, tuple(map(os.path.realpath, way[:-1])))
        elif os.path.isfile(path) or not os.path.exists(path):  # a pipe waits for its writer
            folder, name = os.path.split(absolute)
            files.setdefault(folder, {})[name] = absolute
    for folder, folder_files in files.items():
        check_above(folder, checked)
        listing.add(open_folder(folder, os.listdir(folder)), folder_files, are_matches=True)


def has_marker(parts: Sequence[str], written: Sequence[str]) -> bool:
    """Whether one of `parts` is hidden, unless the pattern names it in `written`."""
    return any(
        is_hidden(part) and not any(fnmatchcase(part, name) for name in written) for part in parts
    )


def _leads_back(way: Sequence[str]) -> bool:
    """Whether a link leads back to a directory above it; glob follows such a link 40 times."""
    return any(
        os.path.islink(step) and os.path.realpath(step) in map(os.path.realpath, way[:i])
        for i, step in enumerate(way)
    )


def is_hidden(name: str) -> bool:
    """Whether a file is a marker or metadata, by the convention of Spark, Hadoop and others."""
    return name.startswith(("_", ".")) or name.endswith("_$folder$")
