"""Runs examples/train_ddp.py on some ranks, and writes down which rows they read: run as a script.

Each line of the input is a run: a list of JSON with the number of ranks, the folder of the data,
the number of epochs, a new folder for the rows, and after how many steps a rank is killed, or null.
Each rank is a process, forked from this one, which has torch imported and nothing else done. The
output has a line for each: the list of exit codes. What the ranks print is in the folder, too.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import arrowdl
import tokenizers  # noqa: F401  # imported once, not by each rank
import torch
import torch.distributed as dist

PROGRAM = Path(__file__).parents[3] / "examples/train_ddp.py"


class Recorder(arrowdl.Loader):
    """Writes the valid rows of each batch, and kills the process after `stop` batches."""

    folder: Path
    rank: int
    stop: int | None

    def __init__(self, source: Path, **options: Any) -> None:
        super().__init__(source, **options)
        self.split = source.name

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        epoch = self.epoch
        for step, batch in enumerate(super().__iter__()):
            ids = batch["id"][batch["valid"]].tolist()
            with (self.folder / f"{self.split}-{self.rank}.jsonl").open("a") as file:
                print(json.dumps([epoch, ids]), file=file)
            if self.split == "train" and step == self.stop:
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch


class Writer:
    """In the place of TensorBoard's."""

    def __init__(self, folder: str) -> None:
        self.path = Path(folder, "scalars")

    def add_scalar(self, name: str, value: float, step: int) -> None:
        with self.path.open("a") as file:
            print(name, value >= 0, step, file=file)


def run_rank(rank: int, ranks: int, data: str, epochs: int, folder: str, stop: int | None) -> None:
    Recorder.folder, Recorder.rank = Path(folder), rank
    Recorder.stop = stop if rank == ranks - 1 else None
    for descriptor, stream in enumerate(("in", "out", "err")):
        flags = os.O_CREAT | os.O_RDWR
        os.dup2(os.open(f"{folder}/{rank}.{stream}", flags), descriptor)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
    torch.set_num_threads(1)
    torch.manual_seed(0)
    join = dist.init_process_group
    dist.init_process_group = lambda: join(
        "gloo", init_method=f"file://{folder}/group", rank=rank, world_size=ranks
    )
    arrowdl.Loader = Recorder  # type: ignore[misc]
    sys.modules["torch.utils.tensorboard"] = SimpleNamespace(SummaryWriter=Writer)  # type: ignore[assignment]
    sys.argv = [str(PROGRAM), data, "--epochs", str(epochs), "--tensorboard", folder]
    runpy.run_path(str(PROGRAM), run_name="__main__")


def fork(ranks: int, *arguments: Any) -> list[int]:
    pids = []
    for rank in range(ranks):
        if pid := os.fork():
            pids.append(pid)
            continue
        run_rank(rank, ranks, *arguments)
        sys.exit()
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


if __name__ == "__main__":
    gc.freeze()  # else each rank looks through all of torch when it ends
    for line in sys.stdin:
        print(json.dumps(fork(*json.loads(line))), flush=True)
