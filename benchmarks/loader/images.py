"""JPEGs in Parquet as batches of tensors: ours, the bare decoder, and other loaders.

Run it with ``python -m benchmarks.loader.images``. It needs arrowdl, Pillow, pyarrow and torch.
Peers that are not installed (Hugging Face datasets, LitData, SPDL, MosaicML streaming) are left
out. The passes alternate, and each round begins with another one. A number is the median of the
rounds, a ratio the median of the rounds' ratios. CPU time is of all processes.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from torch.nn.functional import interpolate

SIZE = (224, 224)
BATCH_ROWS = 64
DISTINCT = 500  # images, which repeat in random order
WIDTH, QUALITY = 500, 93  # with a height of three quarters: 110 kB
Pass = Callable[[], int]  # returns the number of images


def draw(rng: np.random.Generator, width: int) -> bytes:
    """A JPEG of smooth noise."""
    height = width * 3 // 4
    noise = rng.integers(0, 256, (height // 4, width // 4, 3), np.uint8)
    image = Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


def write(path: Path, rows: int, width: int = WIDTH) -> int:
    """Write a Parquet file with Hugging Face's structs; return the mean bytes of an image."""
    rng = np.random.default_rng(7)
    images = [draw(rng, width) for _ in range(min(DISTINCT * WIDTH // width, rows))]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema([("image", kind), ("label", pa.int64())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, 500):
            chosen = rng.integers(0, len(images), min(500, rows - start)).tolist()
            column = pa.array([{"bytes": images[i], "path": None} for i in chosen], kind)
            writer.write_table(pa.table([column, pa.array(chosen)], schema=schema))
    return sum(map(len, images)) // len(images)


def decode(data: bytes) -> torch.Tensor:
    """The decoder of all passes that let one choose: Pillow, and torch's scaling."""
    image = Image.open(io.BytesIO(data))
    image.load()
    pixels = arrowdl.to_torch(image).reshape(1, image.height, image.width, 4)
    return interpolate(pixels.permute(0, 3, 1, 2), SIZE, mode="bilinear", antialias=True)[0, :3]


def decode_with_pillow(data: bytes) -> torch.Tensor:
    """The same of Pillow alone, as most programs do it."""
    image = (
        Image.open(io.BytesIO(data))
        .convert("RGB")
        .resize((SIZE[1], SIZE[0]), Image.Resampling.BILINEAR)
    )
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


def list_bytes(path: Path) -> list[bytes]:
    return [row["bytes"] for row in pq.read_table(path, columns=["image"])["image"].to_pylist()]


def run_decoder(images: list[bytes], threads: int) -> int:
    """The bare decoder: no reading, no batches."""

    def work(part: list[bytes]) -> None:
        for data in part:
            decode(data)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [images[i::threads] for i in range(threads)]))
    return len(images)


def run_into_batches(images: list[bytes], threads: int) -> int:
    """The bare decoder, whose pixels are copied into batches: no reading, no order."""

    def work(part: list[bytes]) -> None:
        for start in range(0, len(part), BATCH_ROWS):
            rows = part[start : start + BATCH_ROWS]
            batch = torch.empty((len(rows), 3, *SIZE), dtype=torch.uint8)
            for row, data in zip(batch, rows, strict=True):
                row.copy_(decode(data))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [images[i::threads] for i in range(threads)]))
    return len(images)


def run_by_hand(path: Path, threads: int, function: Callable[[bytes], torch.Tensor]) -> int:
    """A loop as one writes it: read a batch, decode it in threads, stack."""
    count = 0
    with ThreadPoolExecutor(threads) as pool:
        for batch in pq.ParquetFile(path).iter_batches(BATCH_ROWS):
            images = [row["bytes"] for row in batch["image"].to_pylist()]
            count += len(torch.stack(list(pool.map(function, images))))
    return count


def run_ours(path: Path, **options: Any) -> int:
    image = arrowdl.Image(SIZE, **options.pop("image", {}))
    loader = arrowdl.Loader(path, BATCH_ROWS, transform_arrow={"image": image}, **options)
    count = 0
    for batch in loader:
        count += len(batch["image"])
    return count


def transform_rows(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Hugging Face's transform of rows whose images are Pillow's."""
    from PIL.Image import Resampling

    resized = [image.resize((SIZE[1], SIZE[0]), Resampling.BILINEAR) for image in rows["image"]]
    pixels = [torch.from_numpy(np.array(image)).permute(2, 0, 1) for image in resized]
    return {"image": pixels, "label": rows["label"]}


def make_huggingface(path: Path, workers: int, folder: Path) -> Pass:
    import datasets

    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    rows = datasets.Dataset.from_parquet(str(path), features=features, cache_dir=str(folder))
    rows = rows.with_transform(transform_rows)
    return lambda: sum(
        len(batch["image"])
        for batch in torch.utils.data.DataLoader(rows, BATCH_ROWS, num_workers=workers)
    )


def make_litdata(path: Path, workers: int, folder: Path) -> Pass:
    import litdata

    target = folder / "litdata"
    # The writer takes items in the order of calls, in this process.
    writer = litdata.streaming.writer.BinaryWriter(str(target), chunk_bytes="64MB")
    for i, data in enumerate(list_bytes(path)):
        writer.add_item(i, {"image": data, "label": i})
    writer.done()
    writer.merge()
    rows = litdata.StreamingDataset(str(target), transform=transform_item)
    return lambda: sum(
        len(batch["image"])
        for batch in litdata.StreamingDataLoader(rows, batch_size=BATCH_ROWS, num_workers=workers)
    )


def transform_item(item: dict[str, Any]) -> dict[str, Any]:
    return {"image": decode(item["image"]), "label": item["label"]}


def make_spdl(path: Path, workers: int, folder: Path) -> Pass:
    """SPDL's pipeline of threads with the same decoder; its own one needs FFmpeg's libraries."""
    from spdl.pipeline import PipelineBuilder

    def read() -> Iterator[bytes]:
        for batch in pq.ParquetFile(path).iter_batches(BATCH_ROWS):
            yield from (row["bytes"] for row in batch["image"].to_pylist())

    def run() -> int:
        builder = PipelineBuilder().add_source(read()).pipe(decode, concurrency=workers)
        builder = builder.aggregate(BATCH_ROWS).pipe(torch.stack).add_sink(4)
        pipeline = builder.build(num_threads=workers)
        with pipeline.auto_stop():
            return sum(len(batch) for batch in pipeline)

    return run


def make_streaming(path: Path, workers: int, folder: Path) -> Pass:
    """MosaicML's streaming, of shards as its users write them."""
    import streaming

    target = str(folder / "mds")
    columns = {"image": "bytes", "label": "int"}
    with streaming.MDSWriter(out=target, columns=columns) as writer:
        for i, data in enumerate(list_bytes(path)):
            writer.write({"image": data, "label": i})

    rows = streaming.StreamingDataset(local=target, shuffle=False, batch_size=BATCH_ROWS)
    batches = torch.utils.data.DataLoader(
        rows, BATCH_ROWS, num_workers=workers, collate_fn=decode_items
    )
    return lambda: sum(len(images) for images in batches)


def decode_items(items: list[dict[str, Any]]) -> torch.Tensor:
    return torch.stack([decode(item["image"]) for item in items])


PEERS = {
    "datasets": make_huggingface,
    "litdata": make_litdata,
    "spdl": make_spdl,
    "streaming": make_streaming,
}


def make_passes(path: Path, threads: int, folder: Path) -> dict[str, Pass]:
    images = list_bytes(path)
    passes: dict[str, Pass] = {
        "arrowdl": partial(run_ours, path, image={"threads": threads}),
        "bare decoder": partial(run_decoder, images, threads),
        "into batches": partial(run_into_batches, images, threads),
        "by hand": partial(run_by_hand, path, threads, decode),
        "by hand, Pillow": partial(run_by_hand, path, threads, decode_with_pillow),
    }
    for name, make in PEERS.items():
        if importlib.util.find_spec(name) is not None:
            passes[name] = make(path, threads, folder)
    return passes


def count_cpu() -> float:
    """Seconds of this process and of those that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(passes: dict[str, Pass], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return seconds and CPU seconds of each image, for each pass and round."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in passes}
    names = list(passes)
    for number in range(rounds + 1):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            begin, cpu = time.perf_counter(), count_cpu()
            images = passes[name]()
            taken = (time.perf_counter() - begin) / images, (count_cpu() - cpu) / images
            if number:  # the first round warms up
                found[name].append(taken)
    return found


def print_rates(
    found: dict[str, list[tuple[float, float]]],  # of `measure`, with a pass "arrowdl"
    item: str,
    unit: float,  # in which CPU time is shown: 1e3 are milliseconds
) -> None:
    name = {1e3: "ms", 1e6: "us"}[unit]
    print(f"{'':18} {item}s/s  of arrowdl's rate   CPU {name} of one  of arrowdl's")
    for name, rounds in found.items():
        wall = statistics.median(seconds for seconds, _ in rounds)
        cpu = statistics.median(seconds for _, seconds in rounds)
        both = list(zip(found["arrowdl"], rounds, strict=True))
        rates = statistics.median(ours[0] / other[0] for ours, other in both)
        costs = statistics.median(other[1] / ours[1] for ours, other in both)
        print(f"{name:18} {1 / wall:8.0f} {rates:18.2f} {cpu * unit:17.2f} {costs:14.2f}")


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.loader.images", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--width", type=int, default=WIDTH, help="of the images; photos: 2000")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    torch.set_num_threads(1)  # each thread scales images of its own
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.parquet"
        nbytes = write(path, given.rows, given.width)
        found = measure(make_passes(path, given.threads, Path(folder)), given.rounds)
    print(f"{given.rows} JPEGs of {nbytes // 1000} kB, {given.threads} threads or workers")
    print_rates(found, "image", 1e3)


if __name__ == "__main__":
    main()
