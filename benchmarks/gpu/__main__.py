"""The command line: `python -m benchmarks.gpu [--quick] [--largest MIB]`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from benchmarks.gpu.cases import (
    CALLS,
    DIRECTIONS,
    MEGABYTE,
    SIZES,
    Call,
    Direction,
    Names,
    has_waited,
    make_call_names,
    make_copy_names,
)
from benchmarks.gpu.loader import PASS, SIZE, TRAINING, make_pass_names, make_training_names
from benchmarks.gpu.operations import (
    COPY,
    COPY_BYTES_PER_ROW,
    OPERATION_ROWS,
    OPERATIONS,
    make_operation_names,
)
from benchmarks.gpu.report import (
    CallResult,
    CopyResult,
    OperationResult,
    to_json,
    to_markdown,
)
from benchmarks.machine import describe_machine
from benchmarks.timing import Budget, measure

RESULTS = Path(__file__).parents[1] / "results"
# A copy of a gigabyte takes a good part of a second, where the CPU's memory is new each time.
FULL = Budget(loop_seconds=0.004, total_seconds=3.0, min_rounds=11)
QUICK = Budget(loop_seconds=0.002, total_seconds=0.3, min_rounds=3)


def main() -> None:
    arguments = _parse_arguments()
    if not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} finds no CUDA device")
    budget = QUICK if arguments.quick else FULL
    calls = [_run_call(call, make_call_names(), budget) for call in CALLS]
    calls.append(_run_call(TRAINING, make_training_names(), budget))
    sizes = [size for size in SIZES if size <= arguments.largest * MEGABYTE]
    copies = [
        _run_copies(way, size, make_copy_names(size), budget)
        for way in DIRECTIONS
        for size in sizes
    ]
    copies.append(_run_copies(PASS, SIZE, make_pass_names(), budget))
    operations = _run_operations(OPERATION_ROWS >> (6 if arguments.quick else 0), budget)
    command = " ".join(["python -m benchmarks.gpu", *sys.argv[1:]])
    data = to_json(calls, copies, operations, _describe(), command)
    table = to_markdown(data)
    print(f"\n{table}")
    arguments.results.mkdir(parents=True, exist_ok=True)
    (arguments.results / "gpu.json").write_text(json.dumps(data, indent=1) + "\n")
    (arguments.results / "gpu.md").write_text(table)
    print(f"written: {arguments.results}/gpu.json, gpu.md")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, rough")
    parser.add_argument(
        "--largest", type=int, default=SIZES[-1] // MEGABYTE, help="MiB of the largest copy"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the files go")
    return parser.parse_args()


def _describe() -> dict[str, str]:
    facts = {
        "GPU": str(torch.cuda.get_device_name()),
        "CUDA of torch": str(torch.version.cuda),
    }
    return facts | describe_machine(["arrowdl", "torch", "numpy"])


def _run_call(call: Call, names: Names, budget: Budget) -> CallResult:
    ours, peer = measure([call.ours, call.peer], names, budget)
    torch.cuda.synchronize()
    waits = None if call is TRAINING else has_waited(call.ours, names)
    result = CallResult(call, ours, peer, waits)
    print(f"{call.name:20} {result.ratio:5.2f}{' waits' if waits else ''}", flush=True)
    return result


def _run_copies(direction: Direction, size: int, names: Names, budget: Budget) -> CopyResult:
    statements = [direction.pinned, *direction.others]
    pinned, *others = measure(statements, names, budget)
    torch.cuda.synchronize()
    result = CopyResult(direction, size, pinned, others)
    shares = " ".join(f"{result.share(timing):5.0%}" for timing in others)
    print(f"{direction.name}, {size // MEGABYTE:5} MiB {shares}", flush=True)
    return result


def _run_operations(rows: int, budget: Budget) -> list[OperationResult]:
    names = make_operation_names(rows)
    statements = [COPY, *(operation.statement for operation in OPERATIONS)]
    copy, *timings = measure(statements, names, budget)
    torch.cuda.synchronize()
    bandwidth = COPY_BYTES_PER_ROW * rows / copy.median
    results = [
        OperationResult(operation, rows, timing, bandwidth)
        for operation, timing in zip(OPERATIONS, timings, strict=True)
    ]
    for result in results:
        print(f"{result.operation.name:28} {result.share:5.0%}", flush=True)
    return results


if __name__ == "__main__":
    main()
