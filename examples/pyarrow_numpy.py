"""pyarrow strings and timestamps to NumPy, and masked values back."""

import arrowdl
import numpy as np
import pyarrow as pa

# Strings are their bytes and offsets.
characters, offsets = arrowdl.to_numpy(pa.array(["JFK", "LGA", "O'Hare"]))
print("lengths:", np.diff(offsets).tolist(), "of", characters.tobytes())

# Timestamps are their integers; datetime64 is a view of the same memory.
when = pa.array([0, 86_400_000_000], pa.timestamp("us"))
days = arrowdl.to_numpy(when).view("datetime64[us]")
shared = days.ctypes.data == when.buffers()[1].address
print("days:", days.astype("datetime64[D]").tolist(), "zero-copy:", shared)

# Arrow data is immutable, and NumPy honours that.
print("writeable:", arrowdl.to_numpy(pa.array([1, 2])).flags.writeable)

# A mask, True where a value is valid, becomes Arrow's nulls.
values, valid = np.array([1.0, np.inf, 3.0]), np.array([True, False, True])
print("masked:", pa.array(arrowdl.to_arrow_device(values, mask=valid)).to_pylist())
