"""The plots of README and of the documentation's first page: `python -m benchmarks.overview`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parent / "results"
QUICKER = "#2a78b8"
SLOWER = "#d1495b"
INK = "#333333"


class Bar(NamedTuple):
    """One comparison: a row of the results, and what the plot calls it."""

    row: str
    label: str


CALLS = [
    Bar("to-torch-pyarrow", "pyarrow array to torch\nbeside torch.from_dlpack"),
    Bar("record-batch", "record batch of 10 columns to torch\nbeside torch.from_dlpack of each"),
    Bar("fixed-size-list", "1,000 x 768 embeddings to torch\nbeside to_tensor() and from_dlpack"),
    Bar("polars-array", "the same in polars, to torch\nbeside series.to_torch()"),
    Bar("stack", "10 columns of a million rows to a matrix\nbeside batch.to_tensor()"),
    Bar("to-arrow", "torch tensor to Arrow\nbeside pyarrow.Array.from_dlpack"),
]
EPOCHS = [
    Bar("hf-emb-parquet", "Hugging Face datasets, DataLoader"),
    Bar("litdata-emb", "LitData, StreamingDataset"),
    Bar("ray-emb", "Ray Data, iter_torch_batches"),
    Bar("collate-emb", "to_pandas() and a collate by hand"),
    Bar("grain-emb", "Grain, ParquetIterDataset, NumPy"),
    Bar("lancedb-emb", "LanceDB, Permutation of its format"),
    Bar("parquet-emb", "pyarrow's iter_batches, no tensors"),
    Bar("table-emb-shuffled", "a table, shuffled: index_select"),
    Bar("table-emb", "a table: slices of tensors, cloned"),
]


def main() -> None:
    rows: dict[str, dict[str, Any]] = {}
    for name in ("cpu", "loader", "loader-peers"):
        data = json.loads((RESULTS / f"{name}.json").read_text())
        rows |= {row["name"]: row for row in data["rows"]}
    plot(rows, CALLS, "The time of one call, as a multiple of arrowdl's", RESULTS / "calls.svg")
    plot(
        rows,
        EPOCHS,
        "The time of an epoch of embeddings, as a multiple of arrowdl's",
        RESULTS / "epochs.svg",
    )


def plot(rows: dict[str, dict[str, Any]], bars: list[Bar], title: str, path: Path) -> None:
    """A bar per peer: how many times as long as arrowdl it takes, on a logarithmic axis."""
    plt.rcParams["svg.fonttype"] = "none"  # text stays text
    plt.rcParams["svg.hashsalt"] = "arrowdl"  # the same data gives the same file
    figure, axes = plt.subplots(figsize=(5.4, 0.42 * len(bars) + 1.1), layout="constrained")
    times = [1 / rows[bar.row]["ratio"] for bar in bars][::-1]
    colors = [QUICKER if value >= 1 else SLOWER for value in times]
    axes.barh(range(len(bars)), [value - 1 for value in times], 0.5, left=1, color=colors)
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, *times) * 0.9, max(times) * 2)
    for y, value in enumerate(times):
        axes.annotate(
            f"{value:.2g}x" if value < 10 else f"{value:.0f}x",
            (max(value, 1), y),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color=INK,
        )
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars][::-1], fontsize=9, color=INK)
    figure.suptitle(title, x=0.01, horizontalalignment="left", fontsize=11, color=INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    low, high = axes.get_xlim()
    ticks = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks], fontsize=9, color=INK)
    axes.minorticks_off()
    figure.supxlabel("time of the other : time of arrowdl (x, logarithmic)", fontsize=9, color=INK)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


if __name__ == "__main__":
    main()
