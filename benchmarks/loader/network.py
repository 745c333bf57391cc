"""Passes over Parquet files on a server with a latency and a bandwidth, beside what peers reach.

Run it with ``python -m benchmarks.loader.network [--rounds N] [NAME ...]``. The passes alternate;
each row has the median of its rounds. Peers whose packages are missing are left out: `make
bench-peers` installs Hugging Face datasets and aiohttp, which fsspec needs for HTTP.

MosaicML's streaming needs an environment of its own, see `benchmarks.loader.mosaic`. Its row is of
the first file alone, as shards of its format: all of them would take minutes.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq

from benchmarks.loader import mosaic
from benchmarks.loader.range_server import Server, start_server

DATA = Path(__file__).parents[2] / "build/benchmark-data"
LATENCY = 0.05
BANDWIDTH = 200e6
TARGET = 0.9  # of the bandwidth
FILES, GROUPS, GROUP_ROWS, WIDTH = 8, 12, 8_192, 256
BATCH_ROWS = 1_024
MOSAIC = "mosaicml-streaming"
_THREADS, _RANGE = 16, 2**23  # of the pass that decodes nothing

Pass = Callable[[], object]


def write_files(folder: Path) -> list[str]:
    """Write 800 MB of embeddings, in row groups of 8 MB; return their paths below `folder`."""
    paths = [f"network/emb-{i}.parquet" for i in range(FILES)]
    (folder / "network").mkdir(parents=True, exist_ok=True)
    for seed, path in enumerate(paths):
        if (folder / path).exists():
            continue
        random, rows = np.random.default_rng(seed), GROUPS * GROUP_ROWS
        values = pa.array(random.random(rows * WIDTH, dtype=np.float32))
        vectors = pa.FixedSizeListArray.from_arrays(values, WIDTH)
        table = pa.table({"vector": vectors, "label": random.integers(0, 10, rows)})
        options: dict[str, Any] = {"use_dictionary": False, "compression": "none"}
        pq.write_table(table, folder / path, row_group_size=GROUP_ROWS, **options)
    return paths


def make_passes(paths: list[str], server: Server, cache: str) -> Iterator[tuple[str, Pass]]:
    """Yield the name of each pass, and a call that makes it."""
    s3 = fs.S3FileSystem(
        anonymous=True, scheme="http", region="us-east-1", endpoint_override=server.address
    )
    dataset = ds.dataset(paths, filesystem=s3)
    yield "arrowdl-in-order", _make_loader(dataset)
    yield "arrowdl-shuffled", _make_loader(dataset, shuffle=True)
    endpoint = f"http://{server.address}"
    store = {"anonymous": True, "region": "us-east-1", "endpoint_override": endpoint}
    by_url = [f"s3://{path}" for path in paths]
    storage = arrowdl.Storage(options=store)
    yield "arrowdl-by-url", _make_loader(by_url, storage=storage)
    yield "arrowdl-by-url-shuffled", _make_loader(by_url, shuffle=True, storage=storage)
    cached = arrowdl.Storage(cache=cache, cache_bytes=2**30)
    kept = _make_loader(dataset, shuffle=True, storage=cached)
    kept()  # the first epoch fills it
    yield "arrowdl-cache", kept
    yield "read-at-16-threads", lambda: _read_ranges(s3, paths)
    yield "pyarrow-scanner", lambda: sum(1 for _ in dataset.to_batches())
    urls = [f"http://{server.address}/{path}" for path in paths]
    if importlib.util.find_spec("aiohttp") is not None:
        import fsspec

        http = fsspec.filesystem("http")
        over_http = ds.dataset(urls, filesystem=http)
        yield "fsspec-scanner", lambda: sum(1 for _ in over_http.to_batches())
        yield "arrowdl-fsspec", _make_loader(over_http)
        if importlib.util.find_spec("datasets") is not None:
            import datasets

            rows = datasets.load_dataset("parquet", data_files=urls, streaming=True, split="train")
            tables = rows.with_format("arrow")
            yield "hugging-face-streaming", lambda: sum(1 for _ in tables.iter(BATCH_ROWS))
    if mosaic.is_installed():
        yield MOSAIC, lambda: mosaic.read_shards(server.address, BATCH_ROWS)


def _make_loader(source: Any, **options: Any) -> Pass:
    loader = arrowdl.Loader(source, BATCH_ROWS, framework="numpy", **options)
    return lambda: sum(1 for _ in loader)


def _read_ranges(filesystem: Any, paths: list[str]) -> int:
    """Read all bytes, and decode none: what the line and this machine give."""
    files = [filesystem.open_input_file(path) for path in paths]
    ranges = [(file, begin) for file in files for begin in range(0, file.size(), _RANGE)]
    with ThreadPoolExecutor(_THREADS) as threads:
        return sum(threads.map(lambda item: len(item[0].read_at(_RANGE, item[1])), ranges))


def measure_network(
    rounds: int, names: list[str] | None = None, stragglers: float = 0.0
) -> list[dict[str, Any]]:
    """Return a row for each pass: its share of the bandwidth, and its requests."""
    paths = write_files(DATA)
    sizes = [(DATA / path).stat().st_size for path in paths]
    if mosaic.is_installed() and (not names or MOSAIC in names):
        mosaic.write_shards(DATA, DATA / paths[0])
    found: dict[str, list[tuple[float, int]]] = {}
    with (
        start_server(DATA, LATENCY, BANDWIDTH, stragglers) as server,
        tempfile.TemporaryDirectory() as cache,
    ):
        made = make_passes(paths, server, cache)
        passes = [(name, call) for name, call in made if not names or name in names]
        for _ in range(rounds):
            for name, call in passes:
                requests, _ = server.count()
                begin = time.perf_counter()
                call()
                seconds = time.perf_counter() - begin
                found.setdefault(name, []).append((seconds, server.count()[0] - requests))
    return [
        _make_row(name, sizes[0] if name == MOSAIC else sum(sizes), times)
        for name, times in found.items()
    ]


def _make_row(name: str, total: int, times: list[tuple[float, int]]) -> dict[str, Any]:
    seconds = statistics.median(seconds for seconds, _ in times)
    return {
        "name": name,
        "seconds": seconds,
        "bytes_per_second": total / seconds,
        "share": total / seconds / BANDWIDTH,
        "requests": times[-1][1],
        "rounds": len(times),
    }


def to_markdown(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a table."""
    head = "| pass over the network | seconds | MB/s | share of the bandwidth | requests |"
    lines = [head, "|---|--:|--:|--:|--:|"]
    for row in rows:
        lines.append(
            f"| `{row['name']}` | {row['seconds']:.2f} | {row['bytes_per_second'] / 1e6:.0f} | "
            f"{row['share']:.0%} | {row['requests']} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.loader.network", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--stragglers",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="of the requests, which are answered 20 times later",
    )
    given = parser.parse_args()
    rows = measure_network(given.rounds, given.names, given.stragglers)
    print("\n".join(to_markdown(rows)))


if __name__ == "__main__":
    main()
