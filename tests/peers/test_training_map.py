"""`DeviceStream.map` in Spark 4.1, and into Lance 14; in Ray Data: `test_training.py`."""

from __future__ import annotations

import os
import runpy
import shutil
from pathlib import Path
from typing import Any

import arrowdl
import numpy as np
import pyarrow as pa
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run_example(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](folder)
    return capsys.readouterr().out


@pytest.mark.skipif(
    not (os.environ.get("JAVA_HOME") or shutil.which("java")),
    reason="Spark needs Java 17 or later, such as Debian's default-jre-headless",
)
def test_example_with_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of its partitions has no rows."""
    said = run_example("predict_spark", tmp_path, capsys)
    assert "Spark: 1000 rows\nscores: True\nembeddings: True\n" in said


def test_lance_stores_each_kind_of_result(tmp_path: Path) -> None:
    """Lance 14 refuses the extension type of bfloat16 within lists: a schema makes it float32."""
    import lance
    import torch

    def model(x: Any) -> Any:
        pair = torch.stack([x, -x], 1)
        lists = [pair[i, : i % 3] for i in range(len(x))]
        return {
            "one": x,
            "pair": pair,
            "struct": {"a": x},
            "lists": lists,
            "brain": pair.bfloat16(),
        }

    table = pa.table({"x": np.arange(10, dtype="float32")})
    brains = pa.list_(pa.float32(), 2)
    structs = pa.struct({"a": pa.float32()})
    schema = pa.schema(
        {
            **{"one": pa.float32(), "pair": brains, "struct": structs},
            **{"lists": pa.list_(pa.float32()), "brain": brains},
        }
    )
    options: dict[str, Any] = {"columns": "x", "keep": (), "batch_size": 4}
    made = arrowdl.from_arrow_stream(table).map(model, schema=schema, **options)
    reader = pa.RecordBatchReader.from_stream(made)
    stored = lance.write_dataset(reader, tmp_path / "made.lance").to_table()
    assert stored.schema.equals(schema)
    pairs = [[float(i), -float(i)] for i in range(10)]
    assert stored["one"].to_pylist() == [i for i, _ in pairs]
    assert stored["pair"].to_pylist() == stored["brain"].to_pylist() == pairs
    assert stored["struct"].to_pylist() == [{"a": i} for i, _ in pairs]
    assert stored["lists"].to_pylist() == [own[: i % 4 % 3] for i, own in enumerate(pairs)]
    made = arrowdl.from_arrow_stream(table).map(model, **options)
    with pytest.raises(OSError, match=r"extension arrowdl\.bfloat16"):
        lance.write_dataset(pa.RecordBatchReader.from_stream(made), tmp_path / "refused.lance")


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
