"""Arrays of tensors in Delta Lake and datasets: the table of docs/guides/engines.rst."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arrowdl
import datasets
import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

TENSORS = {
    "id": np.arange(4),
    "flag": np.array([True, False, True, True]),
    "cube": np.arange(16, dtype="int32").reshape(4, 2, 2),
}
ROWS = [{"id": i, "flag": i != 1, "cube": TENSORS["cube"][i].tolist()} for i in range(4)]


def make(**options: Any) -> arrowdl.DeviceArray:
    return arrowdl.to_arrow_device(TENSORS, **options)


def test_delta_lake_has_bools_and_lists(tmp_path: Path) -> None:
    write_deltalake(tmp_path, make(extensions=False))
    table = DeltaTable(tmp_path)
    assert table.to_pyarrow_table().to_pylist() == ROWS
    assert table.to_pyarrow_table(filters=[("flag", "=", True)])["id"].to_pylist() == [0, 2, 3]


def test_delta_lake_drops_the_names_of_extension_types(tmp_path: Path) -> None:
    write_deltalake(tmp_path, make())
    fields = {field.name: field.type for field in DeltaTable(tmp_path).schema().fields}
    assert str(fields["flag"]) == 'PrimitiveType("byte")'
    assert 'PrimitiveType("integer")' in str(fields["cube"])
    assert str(fields["cube"]).count("ArrayType") == 1, "of two dimensions"
    with pytest.raises(pa.ArrowInvalid):
        DeltaTable(tmp_path).to_pyarrow_table()


def test_datasets_have_bools_and_lists() -> None:
    dataset = datasets.Dataset(pa.table(make(extensions=False)))
    assert list(dataset) == ROWS
    assert dataset.features["flag"] == datasets.Value("bool")
    assert dataset.filter(lambda row: row["flag"])["id"][:] == [0, 2, 3]


@pytest.mark.parametrize("name", ["flag", "cube"])
def test_datasets_refuse_extension_types(name: str) -> None:
    with pytest.raises(ValueError, match="does not have a datasets dtype equivalent"):
        datasets.Dataset(pa.table({"x": pa.array(make()[name])}))
