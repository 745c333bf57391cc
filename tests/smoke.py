"""What a wheel does on a platform where no other test runs: cibuildwheel calls it.

Needs no package; with numpy and pyarrow it converts their data too.
"""

from __future__ import annotations

import gc
import importlib.util
import subprocess
import sys
from array import array

import arrowdl


def check_buffers() -> None:
    numbers = array("d", [1.0, 2.5, -3.0])
    taken = arrowdl.to_arrow_device(numbers)
    capsule = taken[1:].__dlpack__(max_version=(1, 0))
    again = arrowdl.to_arrow_device(capsule)
    del taken, capsule
    address = hex(numbers.buffer_info()[0] + numbers.itemsize)  # the same memory
    assert "float64, 2 rows, cpu:0" in repr(again), again
    assert f"at {address}" in repr(again), again


def check_errors() -> None:
    message = ""
    try:
        arrowdl.to_arrow_device(object())
    except TypeError as error:
        message = str(error)
    assert "__dlpack__" in message


def check_libraries() -> None:
    if not all(map(importlib.util.find_spec, ("numpy", "pyarrow"))):
        return
    import numpy as np
    import pyarrow as pa

    table = pa.table({"x": np.arange(1000), "y": np.linspace(0, 1, 1000)})
    assert arrowdl.to_numpy(table["x"].combine_chunks()).sum() == 499_500
    shuffled = arrowdl.from_arrow_stream(table).shuffle(100, seed=1)
    rows = pa.RecordBatchReader.from_stream(shuffled).read_all()
    assert rows.sort_by("x") == table
    assert rows != table


if __name__ == "__main__":
    check_buffers()
    check_errors()
    check_libraries()
    subprocess.run([sys.executable, "-m", "arrowdl", "doctor"], check=True, timeout=60)
    gc.collect()
    assert arrowdl.debug.live_objects() == 0, arrowdl.debug.live_objects()
    print("arrowdl", arrowdl.__version__, "works on", sys.version)
