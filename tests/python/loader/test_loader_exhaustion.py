"""What the Loader says when the system has no more of something."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from arrowdl.loader._workers.no_room import NoRoomError
from arrowdl.loader._workers.shared_memory import SlotPool
from helpers.worker_memory import HAS_PROC, count_mapped, count_open, list_names

# Its own /dev/shm: 24 MiB, in a mount namespace that ends with the process.
SMALL = ["unshare", "--mount", "sh", "-c"]
MOUNT = 'mount -t tmpfs -o size=24m tmpfs /dev/shm && exec "$@"'
MIB = 2**20


def run(code: str, tmp_path: Path, command: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(PREAMBLE + code)
    return subprocess.run(
        [*command, sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


def run_in_small_memory(code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Where memfd_create is missing, so that the batches are in /dev/shm."""
    return run(f"del os.memfd_create\n{code}", tmp_path, [*SMALL, MOUNT, "sh"])


def can_mount() -> bool:
    try:
        done = subprocess.run([*SMALL, MOUNT, "sh", "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0


PREAMBLE = """
import itertools, os
import arrowdl, numpy as np, pyarrow as pa

MIB = 2**20
table = pa.table({"id": range(60)})

def enlarge(size, batch):
    return {"id": batch["id"], "large": np.full(size, batch["id"][0], np.uint8)}

def grow(batch):
    return enlarge(int(batch["id"][0]) * MIB // 4, batch)

class Enlarge:
    def __init__(self, size):
        self.size = size

    def __call__(self, batch):
        return enlarge(self.size, batch)

def load(transform, **options):
    options = {"num_workers": 2, "framework": "numpy", "transform": transform, **options}
    return arrowdl.Loader(table, 2, **options)
"""
needs_mount = pytest.mark.skipif(not can_mount(), reason="needs to mount a small /dev/shm")


@needs_mount
def test_a_small_file_system_is_no_obstacle(tmp_path: Path) -> None:
    """The memory is in none: batches larger than all of /dev/shm, and more than fit are kept."""
    done = run(
        """
if __name__ == "__main__":
    kept = list(itertools.islice(load(Enlarge(30 * MIB), num_workers=1), 2))
    kept += load(Enlarge(MIB), num_workers=1)
    for batch in kept:
        assert (batch["large"] == batch["id"][0]).all()
    print(len(kept), os.listdir("/dev/shm"))
""",
        tmp_path,
        [*SMALL, MOUNT, "sh"],
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "32 []\n"), done.stderr


@needs_mount
def test_batches_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    """Its text has the place, the bytes, and what to do; nothing is killed."""
    done = run_in_small_memory(
        """
if __name__ == "__main__":
    loader = load(Enlarge(30 * MIB))
    for _ in range(2):
        try:
            list(loader)
        except OSError as error:
            print(error.errno, error, error.__notes__, sep="|")
    assert os.listdir("/dev/shm") == [], os.listdir("/dev/shm")
""",
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith(f"{errno.ENOSPC}|")
        for words in (
            "no shared memory for a batch of 31457",
            "/dev/shm has ",
            f"bytes free, of {24 * MIB} ",
            "--shm-size",
            "num_workers=0",
            "In worker ",
        ):
            assert words in line, words


@needs_mount
def test_workers_wait_for_room_that_will_come(tmp_path: Path) -> None:
    """Ahead by as many batches as fit; larger and larger ones go into what smaller ones leave."""
    done = run_in_small_memory(
        """
if __name__ == "__main__":
    for batch in load(Enlarge(5 * MIB), prefetch=8, num_workers=1):
        assert (batch["large"] == batch["id"][0]).all()
    count = 0
    for batch in load(grow, num_workers=1, prefetch=4):
        assert (batch["large"] == batch["id"][0]).all()
        assert len(batch["large"]) == int(batch["id"][0]) * MIB // 4
        count += 1
        if len(batch["large"]) > 6 * MIB:
            break
        del batch
    print(count)
""",
        tmp_path,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "14\n"), done.stderr


@needs_mount
def test_kept_batches_fill_it(tmp_path: Path) -> None:
    """No deadlock: who keeps all batches is told, and has those that came."""
    done = run_in_small_memory(
        """
if __name__ == "__main__":
    kept = []
    try:
        for batch in load(Enlarge(3 * MIB)):
            kept.append(batch)
    except OSError as error:
        print(error)
    assert 3 <= len(kept) <= 7, len(kept)
    for batch in kept:
        assert (batch["large"] == batch["id"][0]).all()
""",
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "--shm-size" in done.stdout


LIMIT_HERE = """
import resource
from functools import partial

def limit(name, value):
    _, hard = resource.getrlimit(name)
    resource.setrlimit(name, (value, hard))

def forbid_files():
    limit(resource.RLIMIT_NOFILE, 1 + max(map(int, os.listdir("/proc/self/fd"))))
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        return taken

def forbid_files_here(batch):
    if batch["id"][0] == 4:
        batch["large"] = np.full(MIB, 4, np.uint8)  # needs another slot
        global taken
        taken = forbid_files()
    return batch

def forbid_large_files_here(batch):
    limit(resource.RLIMIT_FSIZE, MIB)
    return enlarge(int(batch["id"][0]) * MIB // 4, batch)

def read(loader):
    kept = []
    try:
        for batch in loader:
            kept.append(batch)
    except OSError as error:
        print(error.errno, error.strerror, *getattr(error, "__notes__", []), sep="|")
    print([batch["id"][0].item() for batch in kept])
"""
needs_proc = pytest.mark.skipif(not HAS_PROC, reason="reads /proc")


@needs_proc
@pytest.mark.parametrize(
    ("transform", "code", "words", "ids"),
    [
        (
            "forbid_files_here",
            errno.EMFILE,
            ["no file descriptor for the shared memory of a batch of ", "files open (ulimit -n"],
            [0, 2],
        ),
        (
            "forbid_large_files_here",
            errno.EFBIG,
            ["no shared memory for a batch of 1048640 bytes", f"files of {MIB} bytes (ulimit -f;"],
            [0, 2],
        ),
    ],
)
def test_limits_of_a_worker(
    transform: str, code: int, words: list[str], ids: list[int], tmp_path: Path
) -> None:
    """It says which, after the batches that it could send."""
    done = run(
        f"""{LIMIT_HERE}
if __name__ == "__main__":
    read(load({transform}, num_workers=1))
""",
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.startswith(f"{code}|"), done.stdout
    assert done.stdout.endswith(f"{ids}\n"), done.stdout
    for word in (*words, "num_workers=0", "In worker 0 of the Loader"):
        assert word in done.stdout, word


@needs_proc
def test_a_training_without_a_descriptor_is_told(tmp_path: Path) -> None:
    done = run(
        LIMIT_HERE
        + """
if __name__ == "__main__":
    loader = load(Enlarge(1), num_workers=1)
    batches = iter(loader)
    kept = [next(batches)]
    allowed = resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    taken = forbid_files()
    read(batches)  # kept batches need slots of their own
    for file in taken:
        os.close(file)
    limit(*allowed)
    assert kept[0]["large"].tolist() == [0]
    read(loader)
""",
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    error, first, *others = done.stdout.splitlines()
    assert error.startswith(f"{errno.EMFILE}|no file descriptor for the shared memory of a batch")
    for word in ("files open (ulimit -n", "num_workers=0"):
        assert word in error, word
    assert "In worker" not in error
    assert first == "[]"
    assert others == [str(list(range(0, 60, 2)))]


FAR_AHEAD = """
import multiprocessing, time

SOFT = 100

def limit_user(batch):
    if os.getuid() == 0:  # root may have more of them on their way
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    limit(resource.RLIMIT_NOFILE, SOFT)
    return batch

def count_mapped(process):
    with open(f"/proc/{process}/maps") as file:
        return sum("arrowdl-batch" in line for line in file)

if __name__ == "__main__":
    table = pa.table({"id": range(150)})
    loader = arrowdl.Loader(
        table, 1, num_workers=2, prefetch=70, framework="numpy", transform=limit_user
    )
    batches = iter(loader)
    ids = [next(batches)["id"].item()]
    workers = [process.pid for process in multiprocessing.active_children()]
    until = time.monotonic() + 30
    while min(map(count_mapped, workers)) < 70 and time.monotonic() < until:
        time.sleep(0.01)
    print(sum(map(count_mapped, workers)) > SOFT)
    ids += [batch["id"].item() for batch in batches]
    print(sorted(ids) == list(range(150)))
"""


@needs_proc
def test_more_descriptors_on_their_way_than_a_process_may_have_open(tmp_path: Path) -> None:
    done = run(LIMIT_HERE + FAR_AHEAD, tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "True\nTrue\n"), done.stderr


def refuse_memfd(monkeypatch: pytest.MonkeyPatch, code: int | None) -> None:
    """Make memfd_create fail, or, without a code, be missing."""

    def refuse(*_: Any) -> int:
        assert code is not None
        raise OSError(code, os.strerror(code))

    if code is None:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    else:
        monkeypatch.setattr(os, "memfd_create", refuse, raising=False)


@needs_proc
@pytest.mark.parametrize("refusal", [None, errno.ENOSYS, errno.EPERM, errno.EACCES])
def test_without_memfd_the_memory_has_no_name_either(
    refusal: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_memfd(monkeypatch, refusal)
    names = list_names()
    number, slot, dropped = SlotPool().take(1000)
    assert (number, len(slot.memory) >= 1000, dropped) == (0, True, [])
    assert slot.descriptor is not None
    assert os.readlink(f"/proc/self/fd/{slot.descriptor}").startswith("/dev/shm/arrowdl-")
    assert list_names() <= names
    slot.close()


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_lack_is_no_refusal(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_memfd(monkeypatch, code)
    with pytest.raises(NoRoomError, match="batch of 1000 bytes") as error:
        SlotPool().take(1000)
    assert error.value.errno == code


@needs_proc
@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.ENOMEM, errno.EFBIG])
def test_a_reservation_that_fails_leaves_nothing(
    code: int, is_named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    before = count_open(), count_mapped(), list_names()
    if is_named:
        refuse_memfd(monkeypatch, errno.EPERM)
    monkeypatch.setattr(os, "posix_fallocate", fail)
    pool = SlotPool()
    for _ in range(2):
        with pytest.raises(NoRoomError, match=r"batch of 1000 bytes") as error:
            pool.take(1000)
        assert error.value.errno == code
        assert ("--shm-size" in str(error.value)) == (is_named and code != errno.EFBIG)
    assert (count_open(), count_mapped()) == before[:2]
    assert list_names() <= before[2]
    monkeypatch.undo()
    number, slot, dropped = pool.take(1000)
    assert (number, len(slot.memory) >= 1000, dropped) == (0, True, [])
    slot.close()
    assert (count_open(), count_mapped()) == before[:2]


@needs_proc
def test_a_worker_killed_while_it_makes_memory_leaves_nothing(tmp_path: Path) -> None:
    """Without memfd_create there is a name for a moment, but not while memory is reserved."""
    names = list_names()
    done = run(
        """
import signal

del os.memfd_create

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

os.posix_fallocate = die

if __name__ == "__main__":
    try:
        list(load(dict, num_workers=1))
    except RuntimeError as error:
        print(error)
""",
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "killed by SIGKILL" in done.stdout
    assert list_names() <= names
