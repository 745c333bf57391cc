"""Folders with files beside their data, of which only metadata say what counts: tables, caches."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from arrowdl.loader._skipped import describe

# What Hugging Face's save_to_disk() writes.
_SAVED = re.compile(r"data-\d+-of-\d+\.arrow")
# What it writes beside data: the results of map(), filter(), shuffle() ...
_CACHED = re.compile(r"cache-[0-9a-f]+(_\d+_of_\d+)?\.arrow")
# Names in the folder of a table, whose files are below it, too.
MARKERS = ("_delta_log", ".hoodie", "_spark_metadata", "metadata")
# What load_dataset() keeps: a file of each split, or several.
_SPLIT = re.compile(r".+-[A-Za-z]\w*(\.\w+)*(-\d+-of-\d+)?\.arrow")
_ALL_FILES = "or give the list of its files, glob.glob(...), to read them all"

ListNames = Callable[[str], Collection[str]]  # takes a folder below, lists the names in it
Read = Callable[[str], bytes]  # takes a name, returns what the file has


class Folder:
    """The names in a folder."""

    def __init__(
        self,
        path: str,
        names: Collection[str],  # of its files and folders, hidden ones too
        list_names: ListNames,  # for what is below it; a name that is not there has no names
        read: Read,
    ) -> None:
        self.path = path
        self.names = names
        self._list_names = list_names
        self._read = read

    def check(self) -> None:
        """Raise ValueError if the folder is a table, whose files may have rows that are deleted."""
        if table := self._find_table():
            what, advice = table
            raise ValueError(
                f"{self.path!r} is {what}, and some of its files may have rows that were deleted, "
                f"or come twice: {advice}, {_ALL_FILES}"
            )

    def _find_table(self) -> tuple[str, str] | None:
        path, names = self.path, self.names
        if "_delta_log" in names:
            return "a table of Delta Lake", f"give deltalake.DeltaTable({path!r})"
        if "metadata" in names and any(
            name.endswith(".metadata.json") for name in self._list_names("metadata")
        ):
            return (
                "a table of Iceberg",
                "give the table that a catalog of pyiceberg loads, or pyiceberg.table.StaticTable"
                f".from_metadata({path + '/metadata/...metadata.json'!r})",
            )
        if "_versions" in names and "data" in names:
            return "a dataset of Lance", f"give lance.dataset({path!r})"
        if "/.hoodie" in "/".join(("", *names)):  # each partition has such a file
            return "a table of Hudi", "write the rows that an engine reads to Parquet files"
        if "_spark_metadata" in names:
            return (
                "what a stream of Spark writes, whose log has the files that count",
                "write the rows that spark.read.parquet() reads to another folder",
            )
        if {"blobs", "refs", "snapshots"} <= set(self.names):
            return (
                "a cache of Hugging Face's Hub, which has each file twice",
                f"give one of its snapshots, {path + '/snapshots/...'!r}",
            )
        return None

    def choose(self, files: Sequence[str]) -> list[str]:
        """Return those of the names of `files` that are data, in their order.

        Raises ValueError if they are those of several splits, or what says so cannot be read.
        """
        if "dataset_dict.json" in self.names:
            splits = self._list_splits("dataset_dict.json")
            raise ValueError(
                f"{self.path!r} is a DatasetDict of Hugging Face, with the splits "
                f"{', '.join(map(repr, splits))}: give the folder of one of them, "
                f"{self.path + '/' + next(iter(splits), '...')!r}"
            )
        if "state.json" in self.names:
            state = self._load_state()
            if "_data_files" in state:
                return self._choose_saved(state, files)
        if "dataset_info.json" in self.names:
            chosen = [name for name in files if not _CACHED.fullmatch(name)]
            self._check_splits(chosen)
            return chosen
        return list(files)

    def _choose_saved(self, state: Mapping[str, Any], files: Sequence[str]) -> list[str]:
        """Return the files that save_to_disk() wrote."""
        if state.get("_indices_data_files") or state.get("_indices_files"):
            raise ValueError(
                f"{self.path!r} has an indices mapping, as old versions of Hugging Face's datasets "
                "wrote it: load it by such a version, and save it again after flatten_indices()"
            )
        try:
            saved = [file["filename"] for file in state["_data_files"]]
        except (TypeError, KeyError):
            saved = []
        if not saved or not all(isinstance(name, str) for name in saved):
            raise self._refuse("state.json", "has no list of files")
        if len(set(saved)) < len(saved):
            raise self._refuse("state.json", "lists a file twice")
        missing = [name for name in saved if name not in self.names]
        if missing:
            raise FileNotFoundError(
                f"{self.path!r} lacks {missing[0]!r}, which its state.json lists: copy the folder "
                "again, or save the dataset again"
            )
        return [name for name in saved if name in files]

    def _check_splits(self, files: Sequence[str]) -> None:
        """Raise ValueError if files that load_dataset() has cached are of several splits."""
        try:
            splits = self._list_splits("dataset_info.json")
        except ValueError:
            if self._is_of_huggingface():
                raise
            return  # another program wrote a file of this name
        names = [
            split
            for split in splits
            if any(re.search(rf"-{re.escape(split)}(-\d+-of-\d+)?\.arrow$", name) for name in files)
        ]
        if len(names) > 1:
            raise ValueError(
                f"{self.path!r} has the splits {', '.join(map(repr, names))} of a dataset of "
                f"Hugging Face: give a pattern for one, {self.path + f'/*-{names[0]}*.arrow'!r}"
            )

    def _list_splits(self, name: str) -> list[str]:
        splits = self._load(name).get("splits") or ()
        if not isinstance(splits, (list, dict)) or not all(
            isinstance(split, str) for split in splits
        ):
            raise self._refuse(name, "names no splits")
        return list(splits)

    def _load_state(self) -> Mapping[str, Any]:
        """Read what save_to_disk() lists; empty if another program wrote a file of this name."""
        try:
            return self._load("state.json")
        except ValueError:
            if self._is_of_huggingface():
                raise
            return {}

    def _is_of_huggingface(self) -> bool:
        """Whether files have names that Hugging Face's datasets gives."""
        kinds = (_SAVED, _CACHED, _SPLIT)
        return any(kind.fullmatch(name) for name in self.names for kind in kinds)

    def _load(self, name: str) -> Mapping[str, Any]:
        """Read an object of JSON; raise ValueError if the file is something else."""
        try:
            content = json.loads(self._read(name))
        except (ValueError, RecursionError) as error:
            raise self._refuse(name, f"is not JSON ({describe(error)})") from None
        if not isinstance(content, dict):
            raise self._refuse(name, "is not an object of JSON")
        return content

    def _refuse(self, name: str, why: str) -> ValueError:
        return ValueError(
            f"the {name} of {self.path!r} {why}: copy the folder again, save the dataset again, "
            f"{_ALL_FILES}"
        )


def check_above(path: str, checked: set[str]) -> None:
    """Raise ValueError if a local folder above `path` is a table; add those above to `checked`."""
    child = path
    while (parent := os.path.dirname(child)) != child and parent not in checked:
        checked.add(parent)
        markers = [name for name in MARKERS if os.path.isdir(os.path.join(parent, name))]
        if markers:
            open_folder(parent, markers).check()
        child = parent


def open_folder(path: str, names: Collection[str]) -> Folder:
    """Return a local folder with `names`."""

    def list_names(name: str) -> list[str]:
        below = os.path.join(path, name)
        return os.listdir(below) if os.path.isdir(below) else []

    def read(name: str) -> bytes:
        with open(os.path.join(path, name), "rb") as file:
            return file.read()

    return Folder(path, names, list_names, read)


class Listing:
    """Files in a sorted order, but for those of folders that have an order of their own."""

    def __init__(self) -> None:
        self._files: list[str] = []
        self._ordered: list[list[str]] = []

    def __bool__(self) -> bool:
        return bool(self._files)

    def add(
        self,
        folder: Folder,
        files: Mapping[str, str],  # paths by their names in the folder
        *,
        # whether a pattern matches these: if none is data, it names what it means
        are_matches: bool = False,
    ) -> None:
        """Add the data of a folder."""
        folder.check()
        in_order = sorted(files)
        names = folder.choose(in_order)
        if are_matches and not names:
            names = in_order
        chosen = list(map(files.__getitem__, names))
        self._files += chosen
        if chosen != sorted(chosen):
            self._ordered.append(chosen)

    def sort(self) -> list[str]:
        """Return all files, each once."""
        files = sorted(dict.fromkeys(self._files))  # most are in order
        for chosen in self._ordered:
            places = sorted(map(files.index, chosen))
            for place, file in zip(places, chosen, strict=True):
                files[place] = file
        return files
