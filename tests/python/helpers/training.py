"""Trainings of some ranks, for `test_training.py`: run as a script.

Each line of the input is a training: a list of JSON with the arguments of `main` and the number of
ranks. Each rank is a process, forked from this one, which has torch imported and nothing else done.
The output has a line for each: the list of exit codes.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import arrowdl
import torch
import torch.distributed as dist

from helpers.options import group

GLOBAL_BATCH = 32
BAD = {17, 200, 203, 466}


def fail(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    if BAD & set(batch["id"].tolist()):
        raise ValueError("a bad row")
    return batch


def open_loader(data: str, kind: str) -> Any:
    """Shuffled rows of files, of which some may fail, or blocks of a mixture of documents."""
    options: dict[str, Any] = {"splits": 4, "shuffle": True, "seed": 5, "buffer_size": 64}
    if kind == "failing rows":
        options |= {"on_error": "skip", "transform": fail}
    if kind != "blocks":
        return arrowdl.Loader(
            data, columns=["id", "x", "y"], **group(global_batch_size=GLOBAL_BATCH, **options)
        )
    sources = {"a": f"{data}/0.parquet", "b": [f"{data}/{i}.parquet" for i in (1, 2)]}
    pack = arrowdl.Pack("tokens", 8, "best_fit", buffer_size=4)
    options |= {"columns": ["tokens"], "stop": "all", "weights": {"a": 1, "b": 3}}
    return arrowdl.Loader.mix(
        sources, **group(global_batch_size=GLOBAL_BATCH, pack=pack, **options)
    )


def read_batch(batch: dict[str, torch.Tensor], valid: int) -> tuple[Any, Any, Any]:
    """What says which rows a batch has, and the inputs and targets of the model."""
    if "id" in batch:
        return batch["id"][:valid].tolist(), batch["x"][:valid], batch["y"][:valid]
    tokens = batch["tokens"][:valid]
    return tokens.tolist(), tokens.flatten() / 1000, batch["segment_ids"][:valid].flatten()


def dump_rows(batch: dict[str, torch.Tensor], valid: int) -> dict[str, str]:
    """The bytes of the first rows of each column, as hexadecimal digits."""
    return {
        name: b"".join(row.numpy().tobytes() for row in list(column.unbind())[:valid]).hex()
        for name, column in batch.items()
    }


def main(folder: Path, data: str, kind: str, meeting: str, stop: int, end: str) -> None:
    """Train from the state in `folder`, if there is one, and write each step into it.

    After `stop` steps of this run, rank 1 (or the only rank) is killed, or all ranks end.
    """
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=world_size
    )
    loader = open_loader(data, kind)
    weights = torch.zeros(2, dtype=torch.float64)
    step = 0
    saved = folder / "state.json"
    if saved.exists():
        state = json.loads(saved.read_text())
        loader.load_state_dict(state["loader"])
        weights = torch.tensor(state["weights"], dtype=torch.float64)
        step = state["step"]
    begun = step
    for batch in loader:
        ids, x, y = read_batch(batch, loader.valid_rows)
        loss = train(weights, x.double(), y.double())
        told = {"ids": ids, "loss": loss.hex(), "rows": dump_rows(batch, loader.valid_rows)}
        (folder / f"{step}-{rank}.json").write_text(json.dumps(told))
        dist.barrier()  # all ranks have read the step that the state counts
        step += 1
        if rank == 0:
            save(saved, {"loader": loader.state_dict(), "weights": weights.tolist(), "step": step})
        dist.barrier()
        if step - begun == stop:
            if end == "kill" and rank == world_size - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if end == "stop":
                break
    dist.destroy_process_group()


def train(weights: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> float:
    """Do a step of gradient descent on the whole global batch; return its loss.

    Each rank has the rows of all, one rank after the other: sums have one order.
    """
    x, y = gather(x), gather(y)
    error = weights[0] * x + weights[1] - y
    weights -= 0.1 * torch.stack([(error * x).sum(), error.sum()]) / len(x)
    return float(error.square().sum() / len(x))


def gather(own: torch.Tensor) -> torch.Tensor:
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, own.clone())
    return torch.cat(parts)


def save(path: Path, state: Any) -> None:
    path.with_suffix(".new").write_text(json.dumps(state))
    path.with_suffix(".new").replace(path)


def fork(arguments: list[Any], ranks: int) -> list[int]:
    pids = []
    for rank in range(ranks):
        if pid := os.fork():
            pids.append(pid)
            continue
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks)}
        folder, data, kind, meeting, stop, end = arguments
        if end == "kill":  # what the others say of it
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        main(Path(folder), data, kind, meeting, stop, end)
        sys.exit()
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


if __name__ == "__main__":
    gc.freeze()  # else each rank looks through all of torch when it ends
    for line in sys.stdin:
        print(json.dumps(fork(*json.loads(line))), flush=True)
