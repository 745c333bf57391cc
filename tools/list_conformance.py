"""Writes docs/concepts/conformance.csv: what arrowdl.testing finds in each library.

    list_conformance.py [library ...]

Checks the libraries that are named, all without a name, as far as they are installed here; other
rows stay. tests/python/testing/test_conformance_table.py and tests/peers/test_conformance.py hold
the file to it.
"""

from __future__ import annotations

import csv
import importlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arrowdl import testing
from arrowdl.testing import Report

FILE = Path(__file__).resolve().parents[1] / "docs/concepts/conformance.csv"
HEADER = ["Library", "Checked", "As", "Severity", "Rule", "Seen"]

# SYCL on its own device alone: on PoCL's, where that is installed, it ends the process.
_LIBRARIES = Path(sys.prefix) / "lib"
os.environ.setdefault("OCL_ICD_FILENAMES", str(_LIBRARIES / "libintelocl.so"))
os.environ.setdefault("OCL_ICD_VENDORS", str(_LIBRARIES / "no-vendors"))

ROWS = {"a": [1, 2, None], "b": ["x", "yy", None], "c": [[1], [], [2, 3]]}


@dataclass(frozen=True)
class Subject:
    """One thing to check: a function of this file, or the name of a library's own function."""

    library: str
    name: str
    check: Callable[..., Report]
    target: Any
    options: dict[str, Any] = field(default_factory=dict)
    module: str = ""

    @property
    def kind(self) -> str:
        return self.check.__name__.removeprefix("check_").replace("_", " ")

    @property
    def key(self) -> tuple[str, str, str]:
        return self.library, self.name, self.kind


def _array(module: str, make: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: make(importlib.import_module(module))


# ---------------------------------------------------------------------------
# How results are read, by name: the checks of consumers run in other processes


def read_arrow(result: Any) -> list[Any]:
    import pyarrow as pa

    return pa.array(result).to_pylist()


def read_table(result: Any) -> list[Any]:
    import pyarrow as pa

    return pa.table(result).to_pylist()


def read_reader(result: Any) -> list[Any]:
    return result.read_all().to_pylist()


def read_arrays(result: Any) -> list[Any]:
    return [row for array in result for row in read_arrow(array)]


def read_pandas(result: Any) -> list[Any]:
    """pandas has NaN for null, and NumPy arrays for lists."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items()}
        if hasattr(value, "tolist"):
            return [plain(part) for part in value.tolist()]
        return None if value is None or value != value else value

    return [{"column": plain(value)} for value in result["column"].tolist()]


def read_numpy(result: Any) -> Any:
    return result.numpy().tolist()


def query_duckdb(data: Any) -> Any:
    import duckdb

    return duckdb.connect().from_arrow(data)


def read_duckdb(result: Any) -> list[Any]:
    return [{"column": row[0]} for row in result.fetchall()]


def read_only_numpy() -> Any:
    import numpy as np

    values = np.arange(6.0)
    values.flags.writeable = False
    return values


def _table() -> Any:
    return importlib.import_module("pyarrow").table(ROWS)


# ---------------------------------------------------------------------------

_HERE = "list_conformance"
_TENSOR, _TABLES = testing.check_dlpack_producer, {"tables": True, "protocol": "stream"}
_FROM_TENSOR, _EXCHANGE = testing.check_dlpack_consumer, testing.check_exchange_api
_ARROW, _FROM_ARROW = testing.check_arrow_producer, testing.check_arrow_consumer


def _six(module: str, make: str) -> Callable[[], Any]:
    """An array of the values 0 to 5, made by the expression `make` of `x`, the module."""
    return lambda: eval(make, {"x": importlib.import_module(module)})


SUBJECTS = (
    Subject("numpy", "ndarray", _TENSOR, _six("numpy", "x.arange(6.0)"), {"read_only": False}),
    Subject("numpy", "ndarray, read-only", _TENSOR, read_only_numpy, {"read_only": True}),
    Subject("numpy", "from_dlpack", _FROM_TENSOR, "numpy:from_dlpack"),
    Subject("torch", "Tensor", _TENSOR, _six("torch", "x.arange(6.0)")),
    Subject(
        "torch",
        "Tensor",
        _EXCHANGE,
        _six("torch", "x.arange(6.0)"),
        {"refused": _six("torch", "x.ones(2, requires_grad=True)")},
    ),
    Subject("torch", "from_dlpack", _FROM_TENSOR, "torch:from_dlpack"),
    Subject("jax", "Array", _TENSOR, _six("jax.numpy", "x.arange(6.0)")),
    Subject("jax", "from_dlpack", _FROM_TENSOR, "jax.numpy:from_dlpack"),
    Subject("tensorflow", "Tensor", _TENSOR, _six("tensorflow", "x.range(6.0)")),
    Subject(
        "tensorflow",
        "from_dlpack",
        _FROM_TENSOR,
        "tensorflow.experimental.dlpack:from_dlpack",
        {"raw_capsules": True, "read": f"{_HERE}:read_numpy"},
    ),
    Subject("paddle", "Tensor", _TENSOR, _six("paddle", "x.arange(6.0)")),
    Subject("paddle", "Tensor", _EXCHANGE, _six("paddle", "x.arange(6.0)")),
    Subject("paddle", "from_dlpack", _FROM_TENSOR, "paddle:from_dlpack"),
    Subject("mlx", "array", _TENSOR, _six("mlx.core", "x.arange(6.0)")),
    Subject("mlx", "array()", _FROM_TENSOR, "mlx.core:array"),
    Subject("dpnp", "ndarray", _TENSOR, _six("dpnp", "x.arange(6.0)")),
    Subject("dpnp", "tensor.usm_ndarray", _TENSOR, _six("dpnp.tensor", "x.arange(6.0)")),
    Subject("dpnp", "from_dlpack", _FROM_TENSOR, "dpnp:from_dlpack"),
    Subject(
        "apache-tvm-ffi",
        "Tensor",
        _TENSOR,
        _six("tvm_ffi", "x.from_dlpack(__import__('numpy').arange(6.0))"),
    ),
    Subject("apache-tvm-ffi", "from_dlpack", _FROM_TENSOR, "tvm_ffi:from_dlpack"),
    Subject("pyarrow", "Array", _TENSOR, _six("pyarrow", "x.array([1.0, 2.0])")),
    Subject("pyarrow", "Tensor.from_dlpack", _FROM_TENSOR, "pyarrow:Tensor.from_dlpack"),
    Subject("pyarrow", "Array", _ARROW, _six("pyarrow", "x.array([1, None])")),
    Subject("pyarrow", "RecordBatch", _ARROW, lambda: _table().to_batches()[0]),
    Subject("pyarrow", "Table", _ARROW, _table),
    Subject("pyarrow", "RecordBatchReader", _ARROW, lambda: _table().to_reader()),
    Subject("pyarrow", "array()", _FROM_ARROW, "pyarrow:array"),
    Subject("pyarrow", "table()", _FROM_ARROW, "pyarrow:table", _TABLES),
    Subject("polars", "Series", _ARROW, _six("polars", "x.Series([1, None])")),
    Subject(
        "polars", "DataFrame", _ARROW, lambda: importlib.import_module("polars").DataFrame(ROWS)
    ),
    Subject("polars", "Series()", _FROM_ARROW, "polars:Series"),
    Subject("polars", "DataFrame()", _FROM_ARROW, "polars:DataFrame", _TABLES),
    Subject("pandas", "DataFrame", _ARROW, _six("pandas", "x.DataFrame({'a': [1, 2]})")),
    Subject(
        "pandas",
        "DataFrame.from_arrow",
        _FROM_ARROW,
        "pandas:DataFrame.from_arrow",
        {**_TABLES, "read": f"{_HERE}:read_pandas"},
    ),
    Subject("duckdb", "relation", _ARROW, _six("duckdb", "x.sql(\"SELECT 1 AS a, 'x' AS b\")")),
    Subject(
        "duckdb",
        "from_arrow",
        _FROM_ARROW,
        f"{_HERE}:query_duckdb",
        {**_TABLES, "read": f"{_HERE}:read_duckdb"},
    ),
    Subject("nanoarrow", "Array", _ARROW, _six("nanoarrow", "x.Array([1, None], x.int32())")),
    Subject(
        "nanoarrow",
        "ArrayStream",
        _ARROW,
        lambda: importlib.import_module("nanoarrow").ArrayStream(_table()),
    ),
    Subject("nanoarrow", "Array()", _FROM_ARROW, "nanoarrow:Array"),
    Subject(
        "nanoarrow",
        "ArrayStream()",
        _FROM_ARROW,
        "nanoarrow:ArrayStream",
        {"protocol": "stream", "read": f"{_HERE}:read_reader"},
    ),
    Subject(
        "arro3-core",
        "Table",
        _ARROW,
        lambda: importlib.import_module("arro3.core").Table(_table()),
        module="arro3.core",
    ),
    Subject("arro3-core", "Array()", _FROM_ARROW, "arro3.core:Array", module="arro3.core"),
    Subject(
        "arro3-core",
        "Table()",
        _FROM_ARROW,
        "arro3.core:Table",
        {**_TABLES, "read": f"{_HERE}:read_table"},
        module="arro3.core",
    ),
    Subject(
        "arrowdl",
        "DeviceArray",
        _TENSOR,
        _six("arrowdl", "x.to_arrow_device(__import__('array').array('d', range(6)))"),
    ),
    Subject(
        "arrowdl",
        "DeviceArray",
        _EXCHANGE,
        _six("arrowdl", "x.to_arrow_device(__import__('array').array('d', range(6)))"),
    ),
    Subject("arrowdl", "to_arrow_device", _FROM_TENSOR, "arrowdl:to_arrow_device"),
    Subject(
        "arrowdl",
        "DeviceArray",
        _ARROW,
        lambda: importlib.import_module("arrowdl").from_arrow(_table()),
    ),
    Subject(
        "arrowdl",
        "DeviceStream",
        _ARROW,
        lambda: importlib.import_module("arrowdl").from_arrow_stream(_table()),
    ),
    Subject(
        "arrowdl",
        "from_arrow",
        _FROM_ARROW,
        "arrowdl:from_arrow",
        {"protocol": "device_array", "read": f"{_HERE}:read_arrow"},
    ),
    Subject(
        "arrowdl",
        "from_arrow_stream",
        _FROM_ARROW,
        "arrowdl:from_arrow_stream",
        {"protocol": "device_stream", "read": f"{_HERE}:read_arrays"},
    ),
)
_DISTRIBUTIONS = {"tensorflow": "tensorflow-cpu", "paddle": "paddlepaddle"}
_MODULES = {"apache-tvm-ffi": "tvm_ffi", "mlx": "mlx.core"}


def check(subject: Subject) -> Report:
    """Check `subject`; consumers in a process of their own, since some crash."""
    if not isinstance(subject.target, str):
        made = {key: value() for key, value in subject.options.items() if key == "refused"}
        return subject.check(subject.target, **{**subject.options, **made})
    if str(Path(__file__).parent) not in sys.path:
        sys.path.append(str(Path(__file__).parent))  # the process imports this file
    return subject.check(subject.target, isolate=True, **subject.options)


def find_rows(
    libraries: Sequence[str] = (), names: Sequence[str] = ()
) -> dict[tuple[str, str, str], list[list[str]]]:
    """Return the rows of the installed libraries, by subject; one for each rule and severity."""
    rows = {}
    for subject in SUBJECTS:
        library = subject.library
        if (libraries and library not in libraries) or (names and subject.name not in names):
            continue
        try:
            importlib.import_module(subject.module or _MODULES.get(library, library))
        except ImportError:
            continue
        version = importlib.metadata.version(_DISTRIBUTIONS.get(library, library))
        head = [library if library == "arrowdl" else f"{library} {version}"]
        head += [f"``{subject.name}``", subject.kind]
        rows[subject.key] = [[*head, *cells] for cells in _cells(check(subject))]
    return rows


def _cells(report: Report) -> list[list[str]]:
    cells: dict[tuple[str, str], str] = {}
    for finding in (*report.errors, *report.warnings):
        cells.setdefault((finding.severity, finding.rule.id), _plain(finding.seen))
    if not cells:
        return [["none", "", f"{len(report.passed)} rules checked"]]
    return [[*key, seen] for key, seen in cells.items()]


def _plain(seen: str) -> str:
    """Without what differs from run to run: addresses, and how memory that is corrupt ends."""
    if "was killed by" in seen:
        return "the process crashes"
    text = re.sub(r"0x[0-9a-f]+|\d{6,}", "...", seen)
    text = re.sub(r"RawProducer\(.*|ArrowObject.*", "...", text).replace("`", "'")
    return f"``{text[:100].strip()}``"


def read_rows() -> dict[tuple[str, str, str], list[list[str]]]:
    """Return the rows of the file, by subject."""
    rows: dict[tuple[str, str, str], list[list[str]]] = {}
    if FILE.exists():
        with FILE.open(newline="") as file:
            for row in list(csv.reader(file))[1:]:
                key = (row[0].split()[0], row[1].strip("`"), row[2])
                rows.setdefault(key, []).append(row)
    return rows


def main() -> None:
    rows = read_rows() | find_rows(sys.argv[1:])
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for subject in SUBJECTS:
            writer.writerows(rows.get(subject.key, []))


if __name__ == "__main__":
    main()
