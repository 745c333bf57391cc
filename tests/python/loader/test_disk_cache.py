"""The folder of `Storage(cache=...)`: bounded, shared by processes, safe against crashes."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import pickle
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from arrowdl.loader._storage import cache_folder, disk_cache
from arrowdl.loader._storage.disk_cache import DiskCache
from helpers.random_cases import choose_examples

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fcntl")

OVERHEAD = 52  # of an entry (20) and of the lock file (32)


class Store:
    """Counts what is fetched."""

    def __init__(self) -> None:
        self.fetched: list[str] = []

    def read(self, cache: DiskCache, key: str, nbytes: int = 100) -> bytes:
        def fetch() -> bytes:
            self.fetched.append(key)
            return make_data(key, nbytes)

        data = bytes(cache.read(key, nbytes, fetch))
        assert data == make_data(key, nbytes)
        return data


def make_data(key: str, nbytes: int = 100) -> bytes:
    return random.Random(key).randbytes(nbytes)


def measure(folder: Path) -> int:
    sizes = []
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # a part that its writer does not need
            sizes.append(path.stat().st_size)
    return sum(sizes)


def list_entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.range"))


@pytest.fixture
def store() -> Store:
    return Store()


def test_data_are_fetched_once_and_survive_the_process(tmp_path: Path, store: Store) -> None:
    cache = DiskCache(tmp_path / "made" / "here", 10_000)
    for _ in range(2):
        store.read(cache, "a")
        store.read(pickle.loads(pickle.dumps(cache)), "b")
    store.read(DiskCache(cache.folder, 10_000), "a")
    assert store.fetched == ["a", "b"]
    assert not list(cache.folder.glob("*.part"))


def test_least_recently_used_goes_first(tmp_path: Path, store: Store) -> None:
    cache = DiskCache(tmp_path, 4 * 120 + 32)
    for number, key in enumerate("abcd"):
        store.read(cache, key)
        newest = max(list_entries(tmp_path), key=lambda path: path.stat().st_mtime_ns)
        os.utime(newest, (number, number))
    store.read(cache, "a")  # used now
    store.read(cache, "e")
    store.fetched.clear()
    for key in "aed":
        store.read(cache, key)
    assert store.fetched == []
    store.read(cache, "b")
    assert store.fetched == ["b"]


def test_bound_smaller_than_an_entry(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    cache = DiskCache(tmp_path, 100 + OVERHEAD - 1)
    for _ in range(3):
        store.read(cache, "a", 100)
    assert len(store.fetched) == 3
    assert len(caplog.records) == 1
    assert "cache_bytes=151" in caplog.text
    store.read(cache, "b", 99)
    store.read(cache, "b", 99)
    assert store.fetched[3:] == ["b"]
    assert measure(tmp_path) == 151


@pytest.mark.parametrize("place", [0, 50, 99, 100, 108, 119])
def test_flipped_bit_is_fetched_again(tmp_path: Path, store: Store, place: int) -> None:
    cache = DiskCache(tmp_path, 1_000)
    store.read(cache, "a")
    (entry,) = list_entries(tmp_path)
    damaged = bytearray(entry.read_bytes())
    damaged[place] ^= 4
    entry.write_bytes(damaged)
    store.read(cache, "a")
    store.read(cache, "a")
    assert store.fetched == ["a", "a"]


@pytest.mark.parametrize("length", [0, 10, 119, 121])
def test_entry_of_another_length_is_fetched_again(
    tmp_path: Path, store: Store, length: int
) -> None:
    cache = DiskCache(tmp_path, 1_000)
    store.read(cache, "a")
    (entry,) = list_entries(tmp_path)
    os.truncate(entry, length)
    store.read(cache, "a")
    store.read(cache, "a")
    assert store.fetched == ["a", "a"]


def test_data_of_another_length_are_not_kept(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1_000)
    assert cache.read("a", 10, lambda: b"short") == b"short"
    assert measure(tmp_path) == 32


def test_error_of_the_store_is_raised_and_leaves_nothing(tmp_path: Path, store: Store) -> None:
    cache = DiskCache(tmp_path, 1_000)

    def fail() -> bytes:
        raise OSError(errno.ENOSPC, "of the store")

    for _ in range(2):
        with pytest.raises(OSError, match="of the store"):
            cache.read("a", 100, fail)
    assert measure(tmp_path) == 32
    store.read(cache, "a")
    store.read(cache, "a")
    assert store.fetched == ["a"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_full_disk_is_no_cache_with_one_warning(
    tmp_path: Path,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    number: int,
) -> None:
    cache = DiskCache(tmp_path, 10_000)
    store.read(cache, "before")
    written: list[int] = []

    def write(file: int, data: memoryview) -> int:
        if written:
            raise OSError(number, os.strerror(number))
        written.append(os.pwrite(file, data[:7], 0))
        return 7

    monkeypatch.setattr(disk_cache.os, "write", write)
    for key in ("a", "b", "a", "before"):
        store.read(cache, key)
    assert store.fetched == ["before", "a", "b", "a"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert errno.errorcode[number] in record.getMessage()
    assert str(tmp_path) in record.getMessage()
    assert not list(tmp_path.glob("*.part"))


def test_read_only_folder_is_read(
    tmp_path: Path,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    store.read(DiskCache(tmp_path, 10_000), "kept")
    open_file = os.open

    def refuse(*arguments: Any) -> Any:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def open_to_read(path: Any, flags: int, mode: int = 0o777) -> int:
        return refuse() if flags & (os.O_RDWR | os.O_WRONLY) else open_file(path, flags, mode)

    monkeypatch.setattr(disk_cache.os, "open", open_to_read)
    monkeypatch.setattr(disk_cache.os, "utime", refuse)
    cache = DiskCache(tmp_path, 10_000)
    for key in ("kept", "new", "new", "kept"):
        store.read(cache, key)
    assert store.fetched == ["kept", "new", "new"]
    assert len(caplog.records) == 1


def test_folder_that_cannot_be_made(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    cache = DiskCache(tmp_path / "file" / "cache", 10_000)
    for _ in range(2):
        store.read(cache, "a")
    assert store.fetched == ["a", "a"]
    assert len(caplog.records) == 1


def test_removed_folder_is_made_again(tmp_path: Path, store: Store) -> None:
    cache = DiskCache(tmp_path / "cache", 10_000)
    store.read(cache, "a")
    for path in cache.folder.iterdir():
        path.unlink()
    cache.folder.rmdir()
    store.read(cache, "a")
    store.read(cache, "a")
    assert store.fetched == ["a", "a"]


@pytest.mark.parametrize("step", ["write", "open", "scandir"])
def test_folder_that_is_removed_meanwhile_is_made_again(
    tmp_path: Path,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    step: str,
) -> None:
    cache = DiskCache(tmp_path / "cache", 10_000)
    call = getattr(disk_cache.os, step)

    def remove_and_call(*arguments: Any) -> Any:
        monkeypatch.setattr(disk_cache.os, step, call)
        shutil.rmtree(cache.folder)
        return call(*arguments)

    monkeypatch.setattr(disk_cache.os, step, remove_and_call)
    store.read(cache, "a")
    for _ in range(3):
        store.read(cache, "a")
    assert store.fetched in (["a"], ["a", "a"])
    assert not caplog.records
    assert len(list(cache.folder.glob("*.range"))) == 1


def test_folder_below_a_broken_link(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "folder")
    cache = DiskCache(tmp_path / "link" / "cache", 10_000)
    for _ in range(2):
        store.read(cache, "a")
    assert len(caplog.records) == 1


def test_two_threads_fetch_once(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 10_000)
    begun, go = threading.Event(), threading.Event()
    fetched = []

    def fetch() -> bytes:
        begun.set()
        assert go.wait(30)
        fetched.append(1)
        return b"x" * 100

    results: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: results.append(cache.read("a", 100, fetch)))
        for _ in range(4)
    ]
    threads[0].start()
    assert begun.wait(30)
    for thread in threads[1:]:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(30)
    assert results == [b"x" * 100] * 4
    assert fetched == [1]


def test_an_entry_that_is_copied_over_another_one(tmp_path: Path, store: Store) -> None:
    """As large, and whole."""
    cache = DiskCache(tmp_path, 10_000)
    for key in "abcdefgh":
        store.read(cache, key)
    contents = {entry: entry.read_bytes() for entry in list_entries(tmp_path)}
    for entry in contents:
        for data in contents.values():
            entry.write_bytes(data)
            for key in "abcdefgh":
                store.read(cache, key)


def test_entries_of_a_group_are_dropped(tmp_path: Path, store: Store) -> None:
    cache = DiskCache(tmp_path, 10_000)
    for key in ("a\x011", "a\x012", "ab\x011"):
        store.read(cache, key)
    cache.drop("a")
    assert len(list_entries(tmp_path)) == 1
    store.fetched.clear()
    store.read(cache, "ab\x011")
    assert store.fetched == []
    DiskCache(tmp_path / "nowhere", 10_000).drop("a")


def test_folder_and_files_are_of_one_user(tmp_path: Path, store: Store) -> None:
    cache = DiskCache(tmp_path / "cache", 10_000)
    before = os.umask(0)
    try:
        store.read(cache, "a")
    finally:
        os.umask(before)
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in cache.folder.iterdir()} == {0o600}


@pytest.mark.parametrize("make", ["link", "hard link", "pipe", "folder", "long"])
def test_lock_that_is_no_lock_file(
    tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture, make: str
) -> None:
    """It is not followed or written to, and the cache is left out."""
    folder, victim = tmp_path / "cache", tmp_path / "victim"
    folder.mkdir()
    victim.write_bytes(b"0" * 32)
    lock = folder / "lock"
    if make == "link":
        lock.symlink_to(victim)
    elif make == "hard link":
        lock.hardlink_to(victim)
    elif make == "pipe":
        os.mkfifo(lock)
    elif make == "folder":
        lock.mkdir()
    else:
        lock.write_bytes(b"x" * 33)
    cache = DiskCache(folder, 10_000)
    for _ in range(2):
        store.read(cache, "a")
    assert store.fetched == ["a", "a"]
    assert victim.read_bytes() == b"0" * 32
    assert len(caplog.records) == 1
    assert make == "folder" or "lock" in caplog.text


# Holds the lock of a folder, as a rank that was stopped does.
HOLDING = """
import sys
from pathlib import Path
from arrowdl.loader._storage.disk_cache import DiskCache
with DiskCache(Path(sys.argv[1]), 10_000)._room.locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_lock_that_another_process_holds(
    tmp_path: Path,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(cache_folder, "_PATIENCE_SECONDS", 0.2)
    store.read(DiskCache(tmp_path, 10_000), "kept")
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        cache = DiskCache(tmp_path, 10_000)
        for key in ("a", "kept", "a"):
            store.read(cache, key)
        process.communicate("")
    assert store.fetched == ["kept", "a", "a"]
    (record,) = caplog.records
    assert re.search("another process has held .*lock' for 0.2 s", record.getMessage())


@pytest.mark.parametrize("make", ["link", "pipe", "socket", "folder", "sparse", "short"])
def test_entry_that_is_none(tmp_path: Path, store: Store, make: str) -> None:
    """It is not followed, waited for or read, and makes room for one."""
    cache = DiskCache(tmp_path / "cache", 10_000)
    store.read(cache, "a")
    (entry,) = list_entries(cache.folder)
    other = tmp_path / "other"
    entry.replace(other)
    if make == "link":
        entry.symlink_to(other)
    elif make == "pipe":
        os.mkfifo(entry)
    elif make == "folder":
        entry.mkdir()
    elif make == "socket":
        with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(cache.folder):
            made.bind(entry.name)
    else:
        entry.touch()
        os.truncate(entry, 40 * 2**30 if make == "sparse" else 5)
    store.read(cache, "a")
    store.read(cache, "a")
    assert store.fetched == ["a", "a"]
    assert entry.is_file()
    assert not entry.is_symlink()


@pytest.mark.parametrize("make", ["link", "pipe"])
def test_part_that_is_none(tmp_path: Path, store: Store, make: str) -> None:
    cache = DiskCache(tmp_path, 10_000)
    store.read(cache, "a")
    (entry,) = list_entries(tmp_path)
    part = entry.with_suffix(".part")
    entry.unlink()
    if make == "link":
        part.symlink_to(tmp_path / "lock")
    else:
        os.mkfifo(part)
    store.read(cache, "a")
    store.read(cache, "a")
    assert store.fetched == ["a", "a"]


def test_entry_of_another_user(tmp_path: Path, store: Store) -> None:
    if os.geteuid():
        pytest.skip("only root can give files away")
    cache = DiskCache(tmp_path, 10_000)
    store.read(cache, "a")
    (entry,) = list_entries(tmp_path)
    os.chown(entry, 12345, 12345)
    store.read(cache, "a")
    store.read(cache, "a")
    assert store.fetched == ["a", "a"]
    os.chown(tmp_path / "lock", 12345, 12345)
    store.read(DiskCache(tmp_path, 10_000), "b")
    store.read(DiskCache(tmp_path, 10_000), "b")
    assert store.fetched[2:] == ["b", "b"]


# A process that dies while it writes the second half of an entry.
DYING = """
import os, signal, sys
from pathlib import Path
from arrowdl.loader._storage import disk_cache
write, written = os.write, []
def write_half(file, data):
    if written:
        print("half", flush=True)
        signal.pause()
    written.append(1)
    return write(file, data[: len(data) // 2])
disk_cache.os.write = write_half
cache = disk_cache.DiskCache(Path(sys.argv[1]), 10_000)
cache.read("a", 5_000, lambda: b"x" * 5_000)
"""


def test_kill_in_the_middle_of_a_write(tmp_path: Path, store: Store) -> None:
    command = [sys.executable, "-c", DYING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        (part,) = tmp_path.glob("*.part")
        assert part.stat().st_size == 5_020  # its room is taken
        cache = DiskCache(tmp_path, 10_000)
        store.read(cache, "big", 6_000)  # no room beside it
        assert measure(tmp_path) <= 10_000
        assert part.exists()
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    store.read(cache, "big", 6_000)  # finds the room again
    store.read(cache, "big", 6_000)
    assert store.fetched == ["big", "big"]
    assert not part.exists()
    assert measure(tmp_path) <= 10_000
    store.read(cache, "a", 5_000)
    assert measure(tmp_path) <= 10_000


def test_waiting_for_a_writer_that_is_killed(tmp_path: Path, store: Store) -> None:
    command = [sys.executable, "-c", DYING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        reading = threading.Thread(
            target=store.read, args=(DiskCache(tmp_path, 10_000), "a", 5_000), daemon=True
        )
        reading.start()
        process.send_signal(signal.SIGKILL)
        reading.join(20)  # less than it waits for a writer that lives
        assert not reading.is_alive()
    assert store.fetched == ["a"]


# Reads entries of random sizes, many more than there is room for.
FILLING = """
import random, sys
from pathlib import Path
from arrowdl.loader._storage.disk_cache import DiskCache
cache, draw = DiskCache(Path(sys.argv[1]), 20_000), random.Random(int(sys.argv[2]))
made = [random.Random(key).randbytes(100 + key * 40) for key in range(60)]
fetched = 0
def fetch(key):
    global fetched
    fetched += 1
    return made[key]
for _ in range(int(sys.argv[3])):
    key = draw.randrange(60)
    data = cache.read(str(key), len(made[key]), lambda: fetch(key))
    assert data == made[key]
print(fetched)
"""


def test_random_processes_fill_and_evict(tmp_path: Path) -> None:
    reads = choose_examples(600, 20_000)
    cache = DiskCache(tmp_path, 20_000)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FILLING, str(tmp_path), str(seed), str(reads)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(2)
    ]
    most = 0
    while any(process.poll() is None for process in processes):
        with cache._room.locked():
            most = max(most, measure(tmp_path))
        time.sleep(0.002)  # the others take the processors
    fetched = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert 10_000 < most <= 20_000
    assert all(0 < count < reads for count in fetched)
    assert not list(tmp_path.glob("*.part"))
