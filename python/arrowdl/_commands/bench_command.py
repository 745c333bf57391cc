"""``python -m arrowdl bench``."""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from arrowdl._commands.contender import CONTENDERS, Result, Task
from arrowdl._commands.sources import add_source, choose_framework
from arrowdl._commands.text import align
from arrowdl.loader._look.explain import show_bytes

_OPTIONS = (
    *("batch_size", "columns", "shuffle", "seed", "framework", "device", "nulls", "ragged"),
    *("dtype", "num_workers", "num_threads", "prefetch"),
)


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code: 1 if the source cannot be read, 2 for wrong usage."""
    parser = _make_parser()
    parsed = parser.parse_args(arguments)
    if parsed.plot and importlib.util.find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install matplotlib")
    if not parsed.only and importlib.util.find_spec("torch") is None:
        parsed.only = [name for name in CONTENDERS if name != "torch DataLoader"]
    options = {name: getattr(parsed, name) for name in _OPTIONS}
    options = {name: value for name, value in options.items() if value is not None}
    options["framework"] = choose_framework(parsed.framework)
    results = [
        _run(Task(who, parsed.source, parsed.as_, options, parsed.seconds))
        for who in parsed.only or CONTENDERS
    ]
    if parsed.plot:
        _plot(results, parsed.plot)
    if parsed.json:
        rows = list(map(asdict, results))
        report = {"source": parsed.source, "options": options, "results": rows}
        print(json.dumps(report, indent=2))
    else:
        print(_show(results))
    return int(any(result.problem for result in results if result.name == "Loader"))


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m arrowdl bench",
        description="Measure a Loader beside a bare scan of pyarrow, which makes no tensors and no "
        "batches of one size, and a torch DataLoader whose workers scan files in order. Each reads "
        "the source twice in a process of its own; the second pass counts.",
    )
    add_source(parser)
    parser.add_argument("--batch-size", type=int, default=1024, help="default: 1024")
    parser.add_argument("--columns", type=lambda text: text.split(","), metavar="a,b,c")
    parser.add_argument("--shuffle", action="store_const", const=True)
    parser.add_argument("--framework", choices=["torch", "jax", "numpy"], help="default: torch")
    for name in ("device", "nulls", "ragged", "dtype"):
        parser.add_argument(f"--{name}", help="as for a Loader")
    for name in ("seed", "num-workers", "num-threads", "prefetch"):
        parser.add_argument(f"--{name}", type=int, help="as for a Loader")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a pass (default: 10)")
    parser.add_argument("--only", action="append", choices=list(CONTENDERS), help="one of these")
    parser.add_argument("--plot", metavar="FILE.png", help="draw the rows of a second")
    return parser


def _run(task: Task) -> Result:
    """Run a contender in a process of its own."""
    command = [sys.executable, "-m", "arrowdl._commands.contender", json.dumps(asdict(task))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        error = done.stderr.strip().splitlines() or ["no output"]
        return Result(task.who, problem=f"it ended with {done.returncode}: {error[-1]}")
    values: dict[str, Any] = json.loads(lines[-1])
    return Result(**values)


def _show(results: Sequence[Result]) -> str:
    header = ("", "batches/s", "rows/s", "MB/s", "first batch", "memory", "beside the Loader")
    ours = next((one.rates["rows"] for one in results if one.name == "Loader" and one.rates), 0.0)
    rows = [_show_row(result, ours) for result in results if not result.problem]
    notes = [f"{one.name}: {one.problem or one.note}" for one in results]
    notes = [note for note in notes if not note.endswith(": ")]
    return "\n".join([align([header, *rows], numbers=range(1, 7)), *["", *notes]])


def _show_row(result: Result, ours: float) -> tuple[str, ...]:
    rates, first, peak = result.rates, result.first_batch_seconds, result.peak_bytes
    return (
        result.name,
        f"{rates['batches']:,.0f}",
        f"{rates['rows']:,.0f}",
        f"{rates['bytes'] / 1e6:,.0f}",
        "none" if first is None else f"{first:.3f} s",
        "?" if peak is None else show_bytes(peak),
        f"{rates['rows'] / ours:.2f}" if ours else "",
    )


def _plot(results: Sequence[Result], path: str) -> None:
    """Draw a bar for each contender."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [result for result in results if result.rates]
    figure, axes = pyplot.subplots(figsize=(7, 0.6 * len(shown) + 1.2), layout="constrained")
    bars = axes.barh([one.name for one in shown], [one.rates["rows"] for one in shown])
    axes.bar_label(bars, fmt="{:,.0f}", padding=3)
    axes.margins(x=0.15)
    axes.invert_yaxis()
    axes.set_xlabel("rows a second")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
