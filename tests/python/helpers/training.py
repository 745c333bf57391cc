"""A training of one rank, for `test_training.py`: run as a script."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import arrowdl
import torch
import torch.distributed as dist

GLOBAL_BATCH = 32


def main(folder: Path, data: str, meeting: str, stop: int, end: str) -> None:
    """Train from the state in `folder`, if there is one, and write each step into it.

    After `stop` steps of this run, rank 1 (or the only rank) is killed, or all ranks end.
    """
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=world_size
    )
    loader = arrowdl.Loader(
        data, global_batch_size=GLOBAL_BATCH, splits=4, shuffle=True, seed=5, buffer_size=64
    )
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
        loss = train(weights, batch, loader.valid_rows)
        ids = batch["id"][: loader.valid_rows].tolist()
        (folder / f"{step}-{rank}.json").write_text(json.dumps({"ids": ids, "loss": loss}))
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


def train(weights: torch.Tensor, batch: dict[str, torch.Tensor], valid: int) -> float:
    """Do a step of gradient descent on the whole global batch; return its loss."""
    x, y = batch["x"][:valid].double(), batch["y"][:valid].double()
    error = weights[0] * x + weights[1] - y
    sums = torch.stack(
        [error.square().sum(), (error * x).sum(), error.sum(), error.new_tensor(valid)]
    )
    dist.all_reduce(sums)
    weights -= 0.1 * sums[1:3] / sums[3]
    return float(sums[0] / sums[3])


def save(path: Path, state: Any) -> None:
    path.with_suffix(".new").write_text(json.dumps(state))
    path.with_suffix(".new").replace(path)


if __name__ == "__main__":
    folder, data, meeting, stop, end = sys.argv[1:]
    main(Path(folder), data, meeting, int(stop), end)
