// The docstrings of DeviceStream and from_arrow_stream.
#pragma once

namespace arrowdl::python::device_stream_docs {

constexpr const char* kClass = R"(A stream of Arrow arrays of one type, on one type of device.

`from_arrow_stream` returns it. It is an iterator of `DeviceArray`, and an Arrow stream for any
consumer (``__arrow_c_stream__``, ``__arrow_c_device_stream__``). Adaptors and consumers consume the
stream: it can be read once. Each adaptor returns a new DeviceStream. Reading starts with the first
array that is requested, and releases the GIL. One thread at a time reads a stream; others wait.)";

constexpr const char* kAsyncIterate = R"(__aiter__(self, /)
--

Iterate in a coroutine: a thread reads ahead, and the event loop does not wait.

Consumes this object.

Returns
-------
AsyncDeviceStream)";

constexpr const char* kArrowCStream = R"(__arrow_c_stream__(self, /, requested_schema=None)
--

Arrow PyCapsule interface: export the stream, in memory that the host can read.

Consumes this object.

Parameters
----------
requested_schema : PyCapsule, optional
    The schema to cast to, as in ``DeviceArray.__arrow_c_array__``. Reading raises ValueError at an
    array whose values cannot be cast.

Returns
-------
PyCapsule
    Named ``arrow_array_stream``. Owns the stream until a consumer takes it.

Raises
------
ValueError
    The schema is incompatible, or the stream was consumed before.)";

constexpr const char* kArrowCDeviceStream =
    R"(__arrow_c_device_stream__(self, /, requested_schema=None, **kwargs)
--

Arrow PyCapsule interface: export the stream, on its device. Consumes this object.

Parameters
----------
requested_schema : PyCapsule, optional
    As in ``__arrow_c_stream__``.
**kwargs
    Reserved by the protocol; every value has to be None.

Returns
-------
PyCapsule
    Named ``arrow_device_array_stream``. Owns the stream until a consumer takes it.

Raises
------
ValueError
    As in ``__arrow_c_stream__``.
NotImplementedError
    A keyword has a value other than None.)";

constexpr const char* kSelect = R"(select(self, /, columns)
--

Select columns by name, in the given order, zero-copy.

Parameters
----------
columns : sequence of str

Returns
-------
DeviceStream

Raises
------
ValueError
    No column has the name, or several columns have it.
TypeError
    The arrays are not structs.)";

constexpr const char* kRebatch = R"(rebatch(self, /, batch_size, *, drop_last=False)
--

Cut the rows into arrays of `batch_size` rows; the last one may have fewer.

An array whose rows are in one source array is a slice of it. An array whose rows are in several is
a copy.

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
    During iteration: rows of several arrays are on a device that the host cannot read. Rebatch
    first, then copy with `to`.)";

constexpr const char* kSlice = R"(slice(self, /, start, length=None)
--

Take the rows `start` to ``start + length`` of the whole stream.

Parameters
----------
start : int
    The index of the first row, 0 or more.
length : int, optional
    Rows, 0 or more. None: all rows that follow.

Returns
-------
DeviceStream)";

constexpr const char* kShuffle =
    R"(shuffle(self, /, buffer_size, seed, *, first_window=0, in_place=False)
--

Permute the rows within windows of `buffer_size` consecutive rows.

The order depends only on `seed`, `buffer_size` and the index of a row, not on the machine or on how
the source divides its rows into arrays. Holds one window in memory.

Parameters
----------
buffer_size : int
    Rows, 1 to 2**32 - 1.
seed : int
    0 to 2**64 - 1.
first_window : int
    The index of the window that this stream starts with, to resume a longer stream.
in_place : bool
    Whether the rows of this stream are in memory that may be written to and has no other user. They
    are permuted in it where that is faster: columns of numbers, many of them.

Returns
-------
DeviceStream

Raises
------
BufferError
    During iteration: the host cannot read the memory.)";

constexpr const char* kShard = R"(shard(self, /, num_shards, index, *, pad=False)
--

Take one shard of every array: one of `num_shards` parts, whose lengths differ by one row at most.

Parameters
----------
num_shards : int
    At least 1.
index : int
    0 to ``num_shards - 1``.
pad : bool
    If an array has fewer rows than `num_shards`, repeat its last row for the shards without a row.
    False: those shards get an empty array.

Returns
-------
DeviceStream)";

constexpr const char* kPack =
    R"(pack(self, /, column, length, strategy="concat", *, buffer_size=256, long="split", pad_value=0, drop_last=False, aligned=None, add=("position_ids", "segment_ids", "cu_seqlens"), resume_from=(0, 0, 0))
--

Pack sequences, such as the tokens of documents, into blocks of `length` items.

Each row of the result is a block. The packed columns become fixed-size lists of `length`, so that
a batch of n blocks is a tensor of shape (n, length). The other columns become lists with one
value for each sequence of the block, or part of a sequence that is cut. Rows without items are
left out. The columns keep their order and names; those of `add` follow.

The blocks depend only on the rows and the arguments, not on how the source divides its rows into
arrays.

Parameters
----------
column : str
    The lists of tokens: lists, large lists, list views or fixed-size lists, of items with a fixed
    width.
length : int
    Items of a block, 1 to 2**30.
strategy : {"concat", "best_fit"}
    ``"concat"``: sequences follow one another. The end of a block cuts the sequence that crosses
    it, and the rest continues in the next block. Only the last block has padding.
    ``"best_fit"``: no sequence is cut. The sequences of a window are placed together: each block
    takes the longest one that is left, then again and again the longest one that fits. Their
    order within a block is that of the source, and blocks are in the order of their first
    sequence, but the block of the window with the most padding comes last.
buffer_size : int
    For ``"best_fit"``: a window ends with the row that completes `buffer_size` blocks' worth of
    items. It is held in memory. About one block of a window is padding; larger windows have less
    of it.
long : {"split", "truncate", "drop", "raise"}
    What happens to a sequence of more than `length` items: ``"split"`` makes several sequences of
    it, ``"truncate"`` drops the items at its end, ``"drop"`` drops the row, ``"raise"`` raises
    ValueError.
pad_value : int, float, bool, or mapping of str to these
    The padding of the packed columns, or of each of them by name: zeros for columns without a
    name.
drop_last : bool
    Drop the last block of the stream unless it is full.
aligned : sequence of str, optional
    The columns with an item for each token, such as labels or loss masks, which are packed in the
    same way. None: all columns of lists whose items have a fixed width; fixed-size lists only if
    `column` has lists of that size.
add : sequence of str
    The columns that are added: ``"position_ids"``, ``"segment_ids"``, ``"cu_seqlens"`` and
    ``"resume_from"``, in any order.

    ``position_ids``, int32 of shape (n, length): the index of an item in its sequence. It starts
    at 0 for each sequence, each part of one that is cut, and the padding.
    ``segment_ids``, int32 of shape (n, length): 1, 2, ... for the items of the sequences of a
    block, and 0 for padding.
    ``cu_seqlens``, a list of int32 for each block: the offsets of its sequences, from 0 to
    `length`. Padding counts as the last sequence. `flatten_cu_seqlens` joins those of several
    blocks.
    ``resume_from``, int64 of shape (n, 3): where a stream starts that continues after this block.
resume_from : sequence of three ints
    The ``resume_from`` of the last block that was used, to get the blocks after it. This stream
    has to start at row ``resume_from[0]`` of the rows that were packed (`slice`), with the same
    arguments.

Returns
-------
DeviceStream

Raises
------
ValueError
    No column has a name, an argument is out of range, or `resume_from` is of another strategy.
    During iteration: a list or an item of it is null; a row has different numbers of items in
    packed columns; a sequence is too long for ``long="raise"``; the stream does not fit
    `resume_from`.
TypeError
    The arrays are not structs, or a column cannot be packed.
BufferError
    The host cannot read the memory: pack first, then copy with `to`.)";

constexpr const char* kFlattenCuSeqlens = R"(flatten_cu_seqlens(column, /)
--

Return the offsets of the sequences of several blocks, as flash attention takes them.

Its functions for variable lengths (``flash_attn_varlen_func``) take the tokens of a batch as one
sequence after the other, ``tokens.flatten()``. The longest sequence (``max_seqlen``) has at most
the length of a block.

Parameters
----------
column : DeviceArray or Arrow array
    The column ``cu_seqlens`` that `DeviceStream.pack` adds, of any number of blocks.

Returns
-------
DeviceArray
    int32, in new memory: 0, then the end of each sequence, also of the padding of each block.

Raises
------
TypeError
    `column` is not of lists of int32.
ValueError
    The offsets of a block do not ascend from 0.
BufferError
    The blocks have 2**31 tokens or more, or the host cannot read the memory: call it before
    `to`.)";

constexpr const char* kMap = R"(map(self, /, model, **options)
--

Call `model` with the tensors of each batch of rows, and add the tensors that it returns as columns.

The result has the columns that are kept and those of the model, in the order of the rows. The model
is called when the stream is read: for the first batch as soon as the stream, its schema or an
adaptor of it is used. It runs on a native thread of the stream, always the same one, under
``torch.no_grad()`` if torch is loaded. Meanwhile other threads read, convert and copy the next
batches, and copy the results back.

Parameters
----------
model : callable
    Takes a batch as a `Loader` makes it: a dict of tensors by column. Returns a tensor, a dict of
    them by the name of a new column, or a tuple of them (see `names`). The first dimension of a
    tensor is the rows of the batch. A torch jagged tensor, or a pair (values, offsets), becomes a
    column of lists. A list has a value for each row: a text, a number, a tensor of any length.
    Arrow arrays are columns. Gradients are dropped.
columns : str or sequence of str, optional
    The columns that the model gets, all by default. It gets the tensor of one column for a str, and
    a dict for a sequence.
keep : sequence of str, optional
    The columns of the source that the result has too, all by default. They are not copied.
batch_size : int, optional
    Rows of a batch, as of `rebatch`; the last one may have fewer. None: the arrays as they are.
device : device, optional
    Copies the batches there, as in `Loader`. None: where the arrays are.
output_device : device, optional
    Where the arrays of the result are. None: where those of the source are.
framework : {'torch', 'jax', 'numpy'}
    Whose tensors the model gets. It may return those of any library.
names : str or sequence of str
    The name of the column if the model returns one tensor; the names of those of a tuple.
schema : Arrow schema, optional
    The columns that the model makes. With it the model is not called before an array is read, and
    columns are cast to these types as by ``__arrow_c_stream__``, such as rows of a matrix to lists.
    Without it, the first batch decides; of a stream without rows, the model is called with a batch
    without rows.
prefetch : int
    Batches that are ready ahead of the model, and results ahead of the consumer. 0 uses no thread:
    the model runs in the thread that reads the stream.
writable : bool
    Whether the model may write to its batch, and again to the memory of what it returned. For that,
    rows of shared memory are copied, and so are results. With False, neither is, and neither may
    be written to.
nulls, ragged, dtype, stack
    How columns become tensors, as in `Loader`.
layout, bool_as, extensions
    How tensors become columns, as in `to_arrow_device`; but bools become Arrow's booleans. Columns
    that are kept have the types of the source.

Returns
-------
DeviceStream

Raises
------
TypeError
    The arrays are not structs, or an option has a wrong type. While reading: the model returned
    something else.
ValueError
    A column is missing, or an option has a wrong value. While reading: the model returned another
    number of rows, other columns or types than for the first batch, or a column that is kept.
Exception
    While reading: what the model or a conversion raises, with the rows as a note. Consumers of the
    exported stream get its type, text and notes as the message.)";

constexpr const char* kTo = R"(to(self, /, device, *, pin_memory=True, allocator=None)
--

Copy the arrays to `device`, as `DeviceArray.to` does.

arrowdl's own stream runs the copies, with one event for each array. The host does not wait.

Parameters
----------
device : Device, str, tuple, torch.device or jax.Device
pin_memory : bool
    Copy pageable memory to CUDA and ROCm devices through arrowdl's pinned memory, which is reused:
    see `config.staging_limit`.
allocator : str, class, memory resource or callable, optional
    What allocates the memory on a cuda or rocm device; None: `config.allocator`, which lists them.

Returns
-------
DeviceStream)";

constexpr const char* kPrefetch = R"(prefetch(self, /, depth=2)
--

Read up to `depth` arrays ahead in a native thread.

An error of the source is raised after the arrays that precede it. The thread starts when the first
array is requested, and ends with the stream.

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
    During iteration in a forked child, which does not have the thread.)";

constexpr const char* kFromArrowStream = R"(from_arrow_stream(obj, /)
--

Read an Arrow stream of any library, array by array.

Parameters
----------
obj : DeviceStream, Arrow producer, capsule, dataset, lazy frame, or iterable
    An object with ``__arrow_c_device_stream__`` or ``__arrow_c_stream__`` (tried in that order), a
    stream capsule, an array that `from_arrow` takes (a stream of one array), a dataset or scanner
    of pyarrow or Lance, a dataset of Hugging Face, a LazyFrame of polars, or an iterable of such
    arrays, which must have one type and one device type.

Returns
-------
DeviceStream
    `obj` itself if it is one.

Raises
------
TypeError
    `obj` is not one of these; the error says what to pass instead.
ValueError
    `obj` is an empty iterable.
RuntimeError
    The producer failed; its message is in the error.)";

}  // namespace arrowdl::python::device_stream_docs
