"""The command line: `python -m benchmarks.gpu [--quick] [--largest MIB] [--device cpu]`.

With `--device cpu` the statements run on the CPU, to see that they run before a GPU is at hand.
"""

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
)
from benchmarks.gpu.loader import (
    PASS,
    SIZE,
    TRAINING,
    make_copy_names,
    make_pass_names,
    make_training_names,
)
from benchmarks.gpu.operations import (
    COPY,
    COPY_BYTES_PER_ROW,
    OPERATION_ROWS,
    OPERATIONS,
    make_operation_names,
)
from benchmarks.gpu.peers import PEERS
from benchmarks.gpu.place import Place
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
ONCE = Budget(loop_seconds=0.0, total_seconds=0.0, min_rounds=2)  # on the CPU: no time counts


def main() -> None:
    arguments = _parse_arguments()
    place = Place(arguments.device)
    if place.is_gpu and not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} finds no CUDA device")
    budget = QUICK if arguments.quick else FULL
    if not place.is_gpu:
        budget = ONCE
        torch.set_num_threads(1)
    here = [call for call in CALLS if place.is_gpu or not call.needs_streams]
    calls = [_run_call(call, make_call_names(place.device), budget, place) for call in here]
    calls.append(_run_call(TRAINING, make_training_names(place), budget, place))
    missing: list[str] = []
    for peer in PEERS:
        try:
            calls.append(_run_call(peer.call, peer.make_names(place), budget, place))
        except Exception as error:  # one library must not end the run
            lines = str(error).splitlines() or [""]
            missing.append(f"{peer.call.name}: {type(error).__name__}: {lines[0]}")
            print(missing[-1], flush=True)
    sizes = [size for size in SIZES if size <= arguments.largest * MEGABYTE]
    copies = [
        _run_copies(way, size, make_copy_names(size, place), budget, place)
        for way in DIRECTIONS
        for size in sizes
    ]
    copies.append(_run_copies(PASS, SIZE, make_pass_names(place), budget, place))
    rows = OPERATION_ROWS >> (6 if arguments.quick else 0)
    operations = _run_operations(rows if place.is_gpu else rows >> 8, budget, place)
    command = " ".join(["python -m benchmarks.gpu", *sys.argv[1:]])
    data = to_json(calls, copies, operations, _describe(place), command, missing)
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
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the files go")
    return parser.parse_args()


def _describe(place: Place) -> dict[str, str]:
    facts = {"GPU": "none: a rehearsal on the CPU"}
    if place.is_gpu:
        facts = {
            "GPU": str(torch.cuda.get_device_name()),
            "CUDA of torch": str(torch.version.cuda),
        }
    return facts | describe_machine(["arrowdl", "torch", "numpy"])


def _run_call(call: Call, names: Names, budget: Budget, place: Place) -> CallResult:
    call = place.adapt_call(call)
    ours, peer = measure([call.ours, call.peer], names, budget)
    place.synchronize()
    asks = place.is_gpu and not call.may_wait
    waits = has_waited(call.ours, names) if asks else None
    result = CallResult(call, ours, peer, waits)
    print(f"{call.name:20} {result.ratio:5.2f}{' waits' if waits else ''}", flush=True)
    return result


def _run_copies(
    direction: Direction, size: int, names: Names, budget: Budget, place: Place
) -> CopyResult:
    direction = place.adapt_direction(direction)
    statements = [direction.pinned, *direction.others]
    pinned, *others = measure(statements, names, budget)
    place.synchronize()
    result = CopyResult(direction, size, pinned, others)
    shares = " ".join(f"{result.share(timing):5.0%}" for timing in others)
    print(f"{direction.name}, {size // MEGABYTE:5} MiB {shares}", flush=True)
    return result


def _run_operations(rows: int, budget: Budget, place: Place) -> list[OperationResult]:
    names = make_operation_names(rows, place.device)
    statements = [COPY, *(operation.statement for operation in OPERATIONS)]
    copy, *timings = measure(statements, names, budget)
    place.synchronize()
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
