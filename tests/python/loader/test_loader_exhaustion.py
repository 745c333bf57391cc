"""What the Loader says when the system has no more of something."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from arrowdl.loader._workers import shared_memory

# Its own /dev/shm: 24 MiB, in a mount namespace that ends with the process.
SMALL = ["unshare", "--mount", "sh", "-c"]
MOUNT = 'mount -t tmpfs -o size=24m tmpfs /dev/shm && exec "$@"'
MIB = 2**20


def run_in_small_memory(code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(PREAMBLE + code)
    return subprocess.run(
        [*SMALL, MOUNT, "sh", sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


def can_mount() -> bool:
    try:
        done = subprocess.run([*SMALL, MOUNT, "sh", "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return done.returncode == 0


PREAMBLE = """
import os
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


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.ENOMEM])
def test_a_reservation_that_fails_leaves_nothing(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    pool = shared_memory.SlotPool("arrowdl-test-of-room")
    for _ in range(2):
        with pytest.raises(
            shared_memory.NoRoomError, match=r"batch of 1000 bytes.*--shm-size"
        ) as error:
            pool.take(1000)
        assert error.value.errno == code
    assert not list(Path("/dev/shm").glob("arrowdl-test-of-room*"))
    monkeypatch.undo()
    number, slot, dropped = pool.take(1000)
    assert (number, slot.size >= 1000, dropped) == (0, True, [])
    slot.unlink()
    slot.close()
