"""`DeviceStream.map` in Ray Data 2.60 and Spark 4.1, and into Lance 14."""

from __future__ import annotations

import os
import runpy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def cluster() -> Iterator[None]:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def run_example(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](folder)
    return capsys.readouterr().out


def test_example_with_ray_and_lance(
    cluster: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = run_example("predict_ray", tmp_path, capsys)
    assert "Ray: 4000 rows, fixed_size_list<item: float>[8]" in said
    assert "Lance: 4000 rows, the same: True" in said


@pytest.mark.skipif(
    not (os.environ.get("JAVA_HOME") or shutil.which("java")),
    reason="Spark needs Java 17 or later, such as Debian's default-jre-headless",
)
def test_example_with_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of its partitions has no rows."""
    said = run_example("predict_spark", tmp_path, capsys)
    assert "Spark: 1000 rows\nscores: True\nembeddings: True\n" in said


def test_lance_keeps_no_part_of_a_failed_write(tmp_path: Path) -> None:
    import lance

    def fail(x: Any) -> Any:
        if x[0] >= 4_000:
            raise ZeroDivisionError("of the model")
        return x

    table = pa.table({"x": np.arange(10_000)})
    stream = arrowdl.from_arrow_stream(table).map(
        fail, columns="x", batch_size=1_000, framework="numpy"
    )
    reader = pa.RecordBatchReader.from_stream(stream)
    with pytest.raises(Exception, match=r"(?s)of the model.*with rows 4000 to 4999"):
        lance.write_dataset(reader, tmp_path / "made.lance")
    with pytest.raises(ValueError, match="was not found"):
        lance.dataset(tmp_path / "made.lance")
