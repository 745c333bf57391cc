"""Wall and CPU time of whole passes beside a plain decode of pyarrow, with new and kept Loaders.

``python -m benchmarks.loader.walls [--rounds N] [NAME ...]`` prints a table. The passes of a round
take turns in one process; the least of each counts, since other work on the machine only adds.
Where the wall's ratio is larger than the CPU's, something waits.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import arrowdl
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.loader.data import BATCH_ROWS, write_files
from benchmarks.loader.shapes import DATA, OFFSETS, SHAPES, write_shape
from benchmarks.machine import describe_machine

Pass = Callable[[], None]


@dataclass(frozen=True)
class Walled:
    """Files that are read whole.

    Attributes
    ----------
    paths : list of Path
    batch_rows : int
    in_order, shuffled : float
        The most that a new Loader's pass may take by the wall, as a multiple of the peer's.
    options : dict
        Arguments of the Loader.
    """

    paths: list[Path]
    batch_rows: int
    in_order: float
    shuffled: float
    options: dict[str, Any] = field(default_factory=dict)

    def make_passes(self) -> dict[str, Pass]:
        """Return a pass of the peer, and of Loaders."""
        passes: dict[str, Pass] = {"pyarrow": partial(_read_by_pyarrow, self)}
        for order in ("in order", "shuffled"):
            make = partial(self._make_loader, shuffle=order == "shuffled")
            passes[f"new, {order}"] = partial(_read_new, make)
            passes[f"kept, {order}"] = partial(_drain, make())
        return passes

    def _make_loader(self, *, shuffle: bool) -> arrowdl.Loader:
        return arrowdl.Loader(self.paths, self.batch_rows, shuffle=shuffle, **self.options)


def _drain(batches: Iterable[Any]) -> None:
    for _ in batches:
        pass


def _read_new(make: Callable[[], arrowdl.Loader]) -> None:
    _drain(make())


def _read_by_pyarrow(case: Walled) -> None:
    if len(case.paths) > 1:
        _drain(ds.dataset([str(path) for path in case.paths]).to_batches())
    else:
        _drain(pq.ParquetFile(case.paths[0], pre_buffer=True).iter_batches(case.batch_rows))


def make_cases() -> dict[str, Walled]:
    """Write the files, and return the cases by their names."""
    write_files(DATA)
    shapes = {shape.name: shape for shape in SHAPES}
    images, small = (write_shape(shapes[name], DATA) for name in ("images", "small-files"))
    tokens, embeddings = ([DATA / f"{name}.parquet"] for name in ("tok", "emb"))
    return {
        "images": Walled(images, shapes["images"].batch_rows, 1.0, 1.15, OFFSETS),
        "tokens": Walled(tokens, BATCH_ROWS["tok"], 0.9, 1.15, OFFSETS),
        "embeddings": Walled(embeddings, BATCH_ROWS["emb"], 0.8, 0.9),
        "small-files": Walled(small, shapes["small-files"].batch_rows, 1.1, 1.3),
    }


def measure_case(case: Walled, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the least wall and CPU time of each pass."""
    passes = case.make_passes()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in passes}
    for number in range(rounds + 1):
        for name in list(passes) if number % 2 else reversed(passes):
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            passes[name]()
            spent = time.perf_counter() - wall, time.process_time() - cpu
            if number:  # the first round warms up
                found[name].append(spent)
    return {
        name: (min(wall for wall, _ in times), min(cpu for _, cpu in times))
        for name, times in found.items()
    }


def measure_walls(rounds: int, names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return a row for each pass of a Loader."""
    cases = make_cases()
    rows = []
    for name in names or cases:
        case = cases[name]
        least = measure_case(case, rounds)
        peer_wall, peer_cpu = least.pop("pyarrow")
        for kind, (wall, cpu) in least.items():
            target = case.in_order if kind.endswith("in order") else case.shuffled
            row = {"name": name, "kind": kind, "wall": wall, "cpu": cpu, "target": target}
            rows.append({**row, "peer wall": peer_wall, "peer cpu": peer_cpu})
    return rows


def to_markdown(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a table."""
    lines = [
        "| whole pass | Loader | wall | of pyarrow's | at most | CPU | of pyarrow's |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        lines.append(
            f"| `{row['name']}` | {row['kind']} | {row['wall'] * 1e3:.0f} ms "
            f"| {row['wall'] / row['peer wall']:.2f} | {row['target']:g} "
            f"| {row['cpu'] * 1e3:.0f} ms | {row['cpu'] / row['peer cpu']:.2f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.loader.walls", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    print("\n".join(to_markdown(measure_walls(given.rounds, given.names))))
    print(f"\n{', '.join(f'{key} {value}' for key, value in describe_machine().items())}.")


if __name__ == "__main__":
    main()
