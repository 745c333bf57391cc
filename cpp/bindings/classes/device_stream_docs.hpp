// The docstrings of DeviceStream and from_arrow_stream.
#pragma once

namespace arrowdl::python::device_stream_docs {

constexpr const char* kClass = R"(A stream of Arrow arrays of one type, on one type of device.

Made by `from_arrow_stream`. An iterator of `DeviceArray`, and itself an Arrow stream for any
consumer (``__arrow_c_stream__``, ``__arrow_c_device_stream__``). Each adaptor returns a new
DeviceStream and consumes this one, as a consumer does. Nothing is read before an array is asked
for, and the interpreter lock is released while streams work. One thread at a time reads a stream;
others wait.)";

constexpr const char* kArrowCStream = R"(__arrow_c_stream__(self, /, requested_schema=None)
--

Arrow PyCapsule interface: export the stream, of memory that the host can read.

Consumes this object.

Parameters
----------
requested_schema : PyCapsule, optional
    The stream is cast to this schema where its type allows a cheap cast, and exported as it is
    otherwise. An array whose values cannot be cast is a ValueError of the reading.

Returns
-------
PyCapsule
    Named ``arrow_array_stream``.

Raises
------
ValueError
    An incompatible schema, or a stream that was consumed before.)";

constexpr const char* kArrowCDeviceStream =
    R"(__arrow_c_device_stream__(self, /, requested_schema=None, **kwargs)
--

Arrow PyCapsule interface: export the stream, on its device. Consumes this object.

Parameters
----------
requested_schema : PyCapsule, optional
    As in ``__arrow_c_stream__``.
**kwargs
    None, by the protocol: other values raise NotImplementedError.

Returns
-------
PyCapsule
    Named ``arrow_device_array_stream``.)";

constexpr const char* kDataFrame =
    R"(__dataframe__(self, /, nan_as_null=False, allow_copy=True)
--

Dataframe interchange protocol: read a stream of structs to its end, each array a chunk.

Consumes this object.)";

constexpr const char* kSelect = R"(select(self, /, columns)
--

Select columns by name, in the given order, without a copy.

Parameters
----------
columns : sequence of str

Returns
-------
DeviceStream

Raises
------
ValueError
    A name that no column has, or several have.
TypeError
    A stream of anything but structs.)";

constexpr const char* kRebatch = R"(rebatch(self, /, batch_size, *, drop_last=False)
--

Cut the rows into arrays of `batch_size` rows; the last one may have fewer.

An array is a slice of its source where one source array holds all of its rows, and one copy of
each buffer where several do.

Parameters
----------
batch_size : int
    Rows, at least 1.
drop_last : bool
    Drop an incomplete last array.

Returns
-------
DeviceStream

Raises
------
BufferError
    From the iteration: rows of several arrays on a device that the host cannot read. Rebatch
    first, then copy with `to`.)";

constexpr const char* kSlice = R"(slice(self, /, start, length=None)
--

Take the rows `start` to ``start + length`` of the whole stream.

Parameters
----------
start : int
    The index of the first row, 0 or more.
length : int, optional
    Rows, 0 or more; None for all that follow.

Returns
-------
DeviceStream)";

constexpr const char* kShuffle = R"(shuffle(self, /, buffer_size, seed, *, first_window=0)
--

Permute the rows within windows of `buffer_size` consecutive rows.

The order depends on `seed`, `buffer_size` and the index of a row alone: not on the machine, and
not on how the source cuts its arrays. One window is held in memory.

Parameters
----------
buffer_size : int
    Rows, 1 to 2**32 - 1.
seed : int
    0 to 2**64 - 1.
first_window : int
    The index of the window that this stream starts with, to resume a longer stream.

Returns
-------
DeviceStream

Raises
------
BufferError
    From the iteration: memory that the host cannot read.)";

constexpr const char* kShard = R"(shard(self, /, num_shards, index, *, pad=False)
--

Take one shard of every array, which is cut into `num_shards` parts of equal length, or nearly so.

Parameters
----------
num_shards : int
    At least 1.
index : int
    0 to ``num_shards - 1``.
pad : bool
    Where an array has fewer rows than there are shards, repeat its last row in the shards
    without one. Otherwise they get an array of no rows.

Returns
-------
DeviceStream)";

constexpr const char* kTo = R"(to(self, /, device, *, pin_memory=True)
--

Copy the arrays to `device`, as `DeviceArray.to` does.

A stream of arrowdl's own runs the copies, with one event for each array; the host does not wait.

Parameters
----------
device : Device, str, tuple, torch.device or jax.Device
pin_memory : bool
    Copy pageable memory to CUDA and ROCm devices through pinned memory of arrowdl's, which is
    used again: see `config.staging_limit`.

Returns
-------
DeviceStream)";

constexpr const char* kPrefetch = R"(prefetch(self, /, depth=2)
--

Read up to `depth` arrays ahead in a native thread.

An error of the source is raised in its order, after the arrays before it. The thread starts with
the first array that is asked for, and ends with the stream.

Parameters
----------
depth : int
    Arrays, at least 1.

Returns
-------
DeviceStream

Raises
------
RuntimeError
    From the iteration, in a forked child, which has not the thread.)";

constexpr const char* kFromArrowStream = R"(from_arrow_stream(obj, /)
--

Read an Arrow stream of any library, array by array.

Parameters
----------
obj : DeviceStream, Arrow producer, capsule, or iterable
    Anything with ``__arrow_c_device_stream__`` or ``__arrow_c_stream__`` (tried in that order), a
    stream capsule, whatever else `from_arrow` takes (a stream of one array), or an iterable of
    such arrays, which must have one type and one device type.

Returns
-------
DeviceStream
    `obj` itself if it is one.

Raises
------
TypeError
    None of these.
ValueError
    An empty iterable.
RuntimeError
    The producer failed; its message is in the error.)";

}  // namespace arrowdl::python::device_stream_docs
