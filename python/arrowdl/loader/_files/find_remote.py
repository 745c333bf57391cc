"""Files of stores by their URLs: files, patterns and directories, as on the local file system."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import groupby
from typing import TYPE_CHECKING

from arrowdl.loader._files.find_local import (
    Root,
    has_marker,
    is_hidden,
    make_absolute,
    read_path,
    skip_documents,
)
from arrowdl.loader._files.layouts import MARKERS, Folder, Listing
from arrowdl.loader._storage.access import Access
from arrowdl.loader._storage.readers import Stamp
from arrowdl.loader._storage.threads import FOOTERS_AT_ONCE, map_in_threads
from arrowdl.loader._storage.urls import is_url

if TYPE_CHECKING:
    import pyarrow.fs as fs


def open_filesystem(
    paths: Sequence[str],
    access: Access,
    planned_stamps: Mapping[str, Stamp],
    revisions: Mapping[str, str] | None = None,
) -> fs.FileSystem:
    """Make the file system that has `paths` and the files and revisions that a plan knows."""
    filesystem, _ = access.open(_name_local(paths, access), planned_stamps, revisions)
    for path in planned_stamps:
        filesystem.normalize_path(path)  # raises if it is in none of the stores
    return filesystem


def _name_local(paths: Sequence[str], access: Access) -> list[str]:
    if access.filesystem is not None:
        return list(paths)
    return [path if is_url(path) else make_absolute(read_path(path)) for path in paths]


def expand_urls(
    # URLs, and local paths beside them; of ``access.filesystem``, its own paths
    paths: Sequence[str],
    access: Access,
) -> list[Root]:
    """List the files of a store that `paths` name, in one listing for each directory or pattern.

    Raises FileNotFoundError if no file matches.
    """
    filesystem, store_paths = access.open(_name_local(paths, access))
    lister = _Lister(filesystem)
    expanded = map_in_threads(lister.expand, store_paths, FOOTERS_AT_ONCE)
    shared = _find_shared(
        [path for path, root in zip(store_paths, expanded, strict=True) if not root]
    )
    roots = []
    for path, root in zip(store_paths, expanded, strict=True):
        if root is None:
            roots.append(Root(shared, [path], filesystem))
        else:
            chosen = skip_documents(path, root.files, lister.read_start)
            roots.append(Root(root.base, list(chosen), filesystem))
    return [
        Root(base, [file for root in same for file in root.files], filesystem)
        for base, same in groupby(roots, key=lambda root: root.base)
    ]


def _find_shared(files: Sequence[str]) -> str:
    """Return the directory that files share; empty if they share none."""
    parts = [path.split("/")[:-1] for path in files]
    shared = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "/".join(shared)


class _Lister:
    def __init__(self, filesystem: fs.FileSystem) -> None:
        self._filesystem = filesystem
        self._checked: set[str] = set()

    def expand(self, path: str) -> Root | None:
        """List the files of a directory or pattern; None for a single file."""
        import pyarrow.fs as fs

        kind = None
        listing = Listing()
        if is_pattern := _is_pattern(path):
            base = _find_base(path)
            listed = self._list(base, recursive=not _is_flat(_relate(base, path)))
            # "a[1].parquet" is the file of that name if there is one, as on a local disk.
            kinds = {info.path: info.type for info in listed}
            kind = kinds.get(path.rstrip("/"))
            if kind is None:
                self._match(base, path, listed, listing)
        if not is_pattern or not listing:
            kind = self._find_kind(path) if kind is None else kind
            if kind == fs.FileType.File:
                return None
            base = path
            if kind == fs.FileType.Directory:
                self._check_above(path)
                self._list_data(path, listing)
            is_pattern = is_pattern or kind != fs.FileType.Directory
        names = listing.sort()
        if not names and is_pattern:
            raise FileNotFoundError(f"no file at {path!r}, and none that it matches as a pattern")
        if not names:
            raise FileNotFoundError(f"no file in the directory {path!r} or below it")
        return Root(base.rstrip("/"), names, self._filesystem)

    def _find_kind(self, path: str) -> fs.FileType:
        import pyarrow.fs as fs

        if _is_of_web(path) and path.endswith("/"):  # a page of links
            return fs.FileType.Directory
        from arrowdl.loader._storage.handlers import ask_for_files

        return ask_for_files(self._filesystem, [path])[0].type

    def _list(self, path: str, *, recursive: bool) -> list[fs.FileInfo]:
        import pyarrow.fs as fs

        from arrowdl.loader._storage.handlers import list_files

        selector = fs.FileSelector(path, recursive=recursive, allow_not_found=True)
        return list_files(self._filesystem, selector)

    def _list_data(self, path: str, listing: Listing) -> None:
        """Add what is below a directory and not hidden."""
        below = self._list(path, recursive=True)
        folders = _list_names(path, below)
        files: dict[str, dict[str, str]] = {path.rstrip("/"): {}}
        files |= _list_files(file for file in below if not has_marker(_relate(path, file.path), ()))
        for folder, folder_files in files.items():
            listing.add(self._open_folder(folder, folders), folder_files)

    def _match(self, base: str, pattern: str, listed: list[fs.FileInfo], listing: Listing) -> None:
        """Add the files that match, and the files in directories that match."""
        import pyarrow.fs as fs

        parts = _relate(base, pattern)
        written = [part for part in parts if is_hidden(part)]
        is_flat = _is_flat(parts)
        folders = _list_names(base, listed)
        matches = []
        for info in listed:
            names = _relate(base, info.path)
            if not _is_below(names, parts) or has_marker(names, written):
                continue
            if is_flat and info.type == fs.FileType.Directory:
                self._check_between(base, info.path, folders)
                self._list_data(info.path, listing)
            else:
                matches.append(info)
        if listing or matches:
            self._check_above(base)
        for folder, folder_files in _list_files(matches).items():
            self._check_between(base, folder, folders)
            listing.add(self._open_folder(folder, folders), folder_files, are_matches=True)

    def _check_between(self, base: str, path: str, folders: dict[str, set[str]]) -> None:
        """Raise ValueError if `base` or a folder between it and `path` is a table."""
        parent = path.rpartition("/")[0]
        while len(parent) >= len(base.rstrip("/")) and parent not in self._checked:
            self._checked.add(parent)
            self._check_names(parent, [name for name in MARKERS if name in folders.get(parent, ())])
            parent = parent.rpartition("/")[0]

    def _check_above(self, path: str) -> None:
        """Raise ValueError if a folder above `path` is a table, as far as the names hint at one."""
        # Each folder is a request; where a user may not look, nothing is known.
        parent, _, name = path.rstrip("/").rpartition("/")
        while parent and _is_of_table(name) and not _is_of_web(path):
            with suppress(OSError):
                self._check_names(parent, self._find_markers(parent))
            parent, _, name = parent.rpartition("/")

    def _find_markers(self, path: str) -> list[str]:
        """List the folders in `path` that a table has; none if the store refuses to say."""
        import pyarrow.fs as fs

        from arrowdl.loader._storage.handlers import ask_for_files

        asked = [f"{path}/{marker}" for marker in MARKERS]
        try:
            infos = ask_for_files(self._filesystem, asked)
        except Exception:  # clients of fsspec have errors of their own
            return []
        kinds = [info.type for info in infos]
        return [
            name for name, kind in zip(MARKERS, kinds, strict=True) if kind == fs.FileType.Directory
        ]

    def _check_names(self, path: str, markers: Sequence[str]) -> None:
        if markers:
            self._open_folder(path, {path: set(markers)}).check()

    def _open_folder(self, path: str, folders: dict[str, set[str]]) -> Folder:
        def read(name: str) -> bytes:
            with self._filesystem.open_input_file(f"{path}/{name}") as file:
                return bytes(file.read())

        def list_names(name: str) -> set[str]:
            below = f"{path}/{name}"
            if below not in folders:  # of a pattern for one directory
                folders[below] = _list_names(below, self._list(below, recursive=False))[below]
            return folders[below]

        return Folder(path, folders.get(path, set()), list_names, read)

    def read_start(self, path: str) -> bytes:
        """Read the first bytes of a file."""
        with self._filesystem.open_input_file(path) as file:
            return bytes(file.read(6))


def _list_names(base: str, below: Iterable[fs.FileInfo]) -> dict[str, set[str]]:
    """List the names in each folder of what is below `base`."""
    folders: dict[str, set[str]] = {base.rstrip("/"): set()}
    for info in below:
        pieces = info.path.rstrip("/").split("/")
        for i in range(len(pieces) - len(_relate(base, info.path)), len(pieces)):
            folders.setdefault("/".join(pieces[:i]), set()).add(pieces[i])
    return folders


def _list_files(infos: Iterable[fs.FileInfo]) -> dict[str, dict[str, str]]:
    """Return the paths of files by their folders and names."""
    import pyarrow.fs as fs

    folders: dict[str, dict[str, str]] = {}
    for info in infos:
        if info.type == fs.FileType.File:
            folder, _, name = info.path.rpartition("/")
            folders.setdefault(folder, {})[name] = info.path
    return folders


def _relate(base: str, path: str) -> list[str]:
    """Return the names of a path below `base`."""
    return path[len(base) :].strip("/").split("/")


def _is_flat(parts: Sequence[str]) -> bool:
    """Whether the names of one directory say what matches a pattern."""
    return len(parts) == 1 and parts[0] != "**"


def _is_of_table(name: str) -> bool:
    """Whether tables name folders of their files so."""
    return name == "data" or "=" in name


def _is_of_web(path: str) -> bool:
    return path.startswith(("http://", "https://"))


def _is_pattern(path: str) -> bool:
    return glob.has_magic(path.partition("?")[0] if _is_of_web(path) else path)


def _find_base(pattern: str) -> str:
    """Return the directories of a pattern before the first wildcard."""
    parts = pattern.split("/")
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:first]) + ("/" if _is_of_web(pattern) else "")


def _is_below(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a path, or a directory above it, matches a pattern; "**" is any directories."""
    if not parts:
        return True
    if parts[0] == "**":
        return any(_is_below(names[i:], parts[1:]) for i in range(len(names) + 1))
    return bool(names) and fnmatchcase(names[0], parts[0]) and _is_below(names[1:], parts[1:])
