"""The benchmarks of a GPU: their statements run here on the CPU, and their shares are right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_operations_run_and_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.gpu import operations, report
    from benchmarks.timing import Timing

    names = operations.make_operation_names(1024, device="cpu")
    for statement in operations.COPY, *(one.statement for one in operations.OPERATIONS):
        exec(statement, names)
    operation = operations.OPERATIONS[0]
    timing = Timing(operation.statement, 1, [0.5] * 3)
    result = report.OperationResult(operation, 1000, timing, copy_bandwidth=4500.0)
    assert result.share == pytest.approx(0.5)  # 1125 bytes in half a second
    table = report.to_markdown(report.to_json([], [], [result], {}, "benchmark"))
    assert "| 50% | 80% |" in table
    for name in [one for one in sys.modules if one.startswith("benchmarks")]:
        monkeypatch.delitem(sys.modules, name)
