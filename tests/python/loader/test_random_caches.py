"""Random damage to the folder of a cache: rows are right, and files elsewhere stay as they are."""

from __future__ import annotations

import errno
import os
import random
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from arrowdl.loader._storage import cache_folder, footers
from helpers.counted_files import CountedFiles
from helpers.options import group
from helpers.random_cases import choose_examples
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fcntl")

ROWS = 300
NAMES = ["a.parquet", "b.parquet", "c.arrow"]
ROW = {"id": lambda i: i, "x": lambda i: i / 7}


def write_files(root: Path) -> None:
    root.mkdir()
    for number, name in enumerate(NAMES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        table = pa.table({"id": ids, "x": [ROW["x"](i) for i in ids]})
        if name.endswith(".parquet"):
            pq.write_table(table, root / name, row_group_size=60, compression="none")
            continue
        with pa.ipc.new_file(root / name, table.schema) as writer:
            writer.write_table(table, max_chunksize=60)


def is_plain(path: Path) -> bool:
    """Whether a path is a file that may be written to, and is short enough to be read."""
    if path.is_symlink() or not path.is_file():
        return False
    status = path.stat()
    return status.st_nlink == 1 and status.st_size < 10**6


# ---- damage, each to a path of an entry


def _flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 2, 40)) if data else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _zero(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = rng.randrange(len(data) + 1)
    stop = rng.randrange(start, len(data) + 1)
    data[start:stop] = bytes(stop - start)
    path.write_bytes(data)


def _resize(path: Path, rng: random.Random) -> None:
    size = path.stat().st_size
    os.truncate(path, rng.choice((0, 1, max(0, size - 1), size // 2, size + 1, 2 * size, 2**34)))


def _swap(path: Path, rng: random.Random) -> None:
    other = rng.choice(sorted(path.parent.iterdir()))
    kept = path.parent / "kept"
    other.rename(kept)
    if path.exists():
        path.rename(other)
    kept.rename(path)


def _copy(path: Path, rng: random.Random) -> None:
    other = rng.choice(sorted(filter(is_plain, path.parent.iterdir())))
    path.write_bytes(other.read_bytes())


def _remove(path: Path, rng: random.Random) -> None:
    path.unlink()


def _link(path: Path, rng: random.Random) -> None:
    others = [*sorted(path.parent.iterdir()), Path("/dev/zero"), path.parent / "nothing"]
    target = rng.choice([*others, *[path.parent.parent / "precious"] * 3])
    path.unlink()
    if target != path and rng.random() < 0.3 and target.is_file():
        os.link(target, path)
    else:
        path.symlink_to(target)


def _make_folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()
    if rng.random() < 0.5:
        (path / "inside").write_bytes(b"x")


def _make_pipe(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _make_socket(path: Path, rng: random.Random) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.path.relpath(path))  # a path of a socket is short


def _write_part(path: Path, rng: random.Random) -> None:
    part = path.with_suffix(".part")
    if is_plain(part) or not os.path.lexists(part):
        part.write_bytes(rng.randbytes(rng.choice((0, 40))))


def _write_lock(path: Path, rng: random.Random) -> None:
    text = rng.choice((b"", b"x" * 32, b"9" * 32, b"0" * 32, b"-1", rng.randbytes(64)))
    lock = path.parent / "lock"
    if is_plain(lock):
        lock.write_bytes(text)


DAMAGE: list[Callable[[Path, random.Random], None]] = [
    *(_flip, _flip, _zero, _resize, _swap, _copy, _remove, _link, _make_folder, _make_pipe),
    *(_make_socket, _write_part, _write_lock),
]


def damage_folder(folder: Path, rng: random.Random) -> None:
    """Damage some entries, or the lock; or the folder itself."""
    if rng.random() < 0.05:
        with suppress(OSError):  # the reader writes to it
            shutil.rmtree(folder)
            rng.choice((lambda: None, lambda: folder.write_bytes(b"x"), folder.mkdir))()
        return
    for _ in range(rng.choice((1, 2, 5, 20))):
        found = sorted(folder.iterdir())
        path = rng.choice(found)
        if is_plain(path):
            try:
                rng.choice(DAMAGE)(path, rng)
            except OSError as error:  # the reader writes, renames and removes files, too
                if error.errno not in (errno.ENOENT, errno.EEXIST, errno.EADDRINUSE):
                    raise


class Cases:
    """Files, and a cache that has all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_files(folder / "store")
        self.files = CountedFiles(folder / "store")
        self.read(folder / "warm", random.Random(0))
        assert len(list((folder / "warm").iterdir())) > 10
        (folder / "precious").write_bytes(b"keep this" * 20)

    def open(self, cache: Path, rng: random.Random, names: list[str]) -> arrowdl.Loader:
        options: dict[str, Any] = {"cache": cache, "cache_bytes": rng.choice((10**7, 20_000))}
        options["shuffle"] = rng.random() < 0.5
        filesystem = fs.PyFileSystem(self.files)
        return arrowdl.Loader(
            names, 50, framework="numpy", **group(filesystem=filesystem, **options)
        )

    def read(self, cache: Path, rng: random.Random, *, is_damaged: bool = False) -> None:
        """Read all rows, and compare them; damage the folder on the way if `is_damaged`."""
        for names in (NAMES[:2], NAMES[2:]):
            loader = self.open(cache, rng, names)
            found: list[int] = []
            for i, batch in enumerate(loader):
                found += batch["id"].tolist()
                assert batch["x"].tolist() == [ROW["x"](i) for i in batch["id"].tolist()]
                if is_damaged and i == 2 and cache.is_dir() and any(cache.iterdir()):
                    damage_folder(cache, rng)
            start = ROWS * NAMES.index(names[0])
            assert sorted(found) == list(range(start, start + ROWS * len(names)))

    def check(self, rng: random.Random) -> None:
        cache = self.folder / "cache"
        shutil.copytree(self.folder / "warm", cache)
        try:
            damage_folder(cache, rng)
            self.read(cache, rng, is_damaged=rng.random() < 0.3)
            self.read(cache, rng)
            assert (self.folder / "precious").read_bytes() == b"keep this" * 20
        finally:
            shutil.rmtree(cache, ignore_errors=True)
            cache.unlink(missing_ok=True) if cache.is_file() else None


def test_random_damage_to_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folder, "_PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(footers, "_END_BYTES", 64)
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.chdir(folder)
        cases = Cases(Path(folder))

        @settings(max_examples=choose_examples(30, 600))
        @given(st.integers(0, 2**32))
        def check(number: int) -> None:
            cases.check(random.Random(number))

        check()
