"""A recommender that trains on clicks and ratings: `Loader.mix`, weights that change, a resume.

Clicks are many and noisy, ratings are few and exact. Training begins with clicks, and ratings come
in later: every step has its share of both, on any number of ranks.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor, nn

USERS, ITEMS, SIZE = 100, 150, 8
BATCH = 256
SOURCES = ["clicks", "ratings"]  # a row's "source" is an index of these


def write_files(folder: Path) -> dict[str, Path]:
    """Likes of users that have tastes, with noise for the clicks."""
    random = np.random.default_rng(7)
    users, items = random.standard_normal((USERS, 4)), random.standard_normal((ITEMS, 4))
    paths = {}
    for name, rows, noise in (("clicks", 20_000, 2.0), ("ratings", 4_000, 0.1)):
        user, item = random.integers(0, USERS, rows), random.integers(0, ITEMS, rows)
        score = (users[user] * items[item]).sum(1) + noise * random.standard_normal(rows)
        columns = {"user": user, "item": item, "liked": (score > 0).astype(np.float32)}
        paths[name] = folder / f"{name}.parquet"
        pq.write_table(pa.table(columns), paths[name], row_group_size=5_000)
    return paths


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(USERS, SIZE)
        self.items = nn.Embedding(ITEMS, SIZE)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        return (self.users(user) * self.items(item)).sum(1)


def make_loader(
    paths: dict[str, Path], rank: int | None = None, world_size: int | None = None
) -> arrowdl.Loader:
    return arrowdl.Loader.mix(
        paths,
        {0: {"clicks": 1, "ratings": 0}, 100: {"clicks": 1, "ratings": 1}},
        ranks=arrowdl.Ranks(rank, world_size, global_batch_size=BATCH),
        stop="repeat",
        shuffle=True,
        origin="source",
    )


def train(model: Recommender, loader: arrowdl.Loader, steps: int) -> list[Tensor]:
    """Train for some steps; return the rows of each source in each step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.04, weight_decay=1e-4)
    shares = []
    for step, batch in enumerate(loader, 1):
        optimizer.zero_grad()
        liked = model(batch["user"], batch["item"])
        nn.functional.binary_cross_entropy_with_logits(liked, batch["liked"]).backward()
        optimizer.step()
        shares.append(torch.bincount(batch["source"], minlength=len(SOURCES)))
        if step == steps:
            break
    return shares


def main(folder: Path) -> None:
    torch.manual_seed(0)
    paths = write_files(folder)
    model, loader = Recommender(), make_loader(paths)
    shares = train(model, loader, 120)
    before, later = (dict(zip(SOURCES, shares[i].tolist(), strict=True)) for i in (0, -1))
    print(before, "then", later)

    # Two ranks go on with the rows of the same steps; each has its half of a batch.
    ranks = [make_loader(paths, rank, 2) for rank in range(2)]
    for rank in ranks:
        rank.load_state_dict(loader.state_dict())
    halves = [next(iter(rank)) for rank in ranks]
    shares = train(model, loader_at(paths, loader), 100)
    same = torch.cat([half["source"] for half in halves]).bincount().equal(shares[0])
    print("a step of two ranks is that of one:", same)

    ratings = pq.read_table(paths["ratings"])
    user, item, liked = arrowdl.to_torch(ratings).values()
    right = ((model(user, item) > 0) == (liked > 0.5)).double().mean().item()
    print(f"{right:.0%} of the ratings; learned: {right > 0.8}")


def loader_at(paths: dict[str, Path], loader: arrowdl.Loader) -> arrowdl.Loader:
    """Return a new loader where `loader` is, as after a restart."""
    made = make_loader(paths)
    made.load_state_dict(loader.state_dict())
    return made


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
