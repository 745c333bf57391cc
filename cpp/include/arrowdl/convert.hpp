// The bridge itself: tensors to Arrow, Arrow to tensors.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

namespace arrowdl {

/// DLPack's and the array API's `copy` keyword.
enum class Copy {
  kIfNeeded,  ///< copy=None
  kNever,     ///< copy=False: BufferError where a copy would be needed
  kAlways,    ///< copy=True
};

// ---------------------------------------------------------------- tensor to Arrow

/// How tensors of two and more dimensions are written.
enum class TensorLayout {
  kAuto,              ///< fixed_shape_tensor
  kFixedShapeTensor,  ///< arrow.fixed_shape_tensor, permuted dense rows zero-copy
  kList,              ///< nested FixedSizeList, C order only
};

enum class BoolAs { kBool8, kBits };

struct ToArrowOptions {
  Copy copy = Copy::kIfNeeded;
  TensorLayout layout = TensorLayout::kAuto;
  BoolAs bool_as = BoolAs::kBool8;
};

/// The tensor as an Arrow array that owns it: dimension 0 becomes the rows, a 0-D tensor one row.
/// On error the tensor is released. Raises BufferError for what Arrow can't carry (see the type
/// map) or what `options.copy` forbids. The tensor's memory is there once `event`, which the array
/// carries on, has happened; where the host has to read it, it waits.
DeviceArray to_arrow(OwnedTensor tensor, const ToArrowOptions& options = {}, OwnedEvent event = {});

/// `array`, null also where the 1-D bool tensor `mask`, whose memory is there, is not `valid`.
/// Raises ValueError when lengths or devices differ.
DeviceArray apply_mask(const DeviceArray& array, const OwnedTensor& mask, bool valid = true);

/// `array` of floating point numbers, null also where an element is NaN. Raises BufferError for
/// other types and for memory that the host can't read.
DeviceArray nan_to_null(const DeviceArray& array);

/// `array` of a fixed width, null also where the bytes of an element are those of `item`. Raises
/// ValueError for an item of another size, BufferError for memory that the host can't read.
DeviceArray values_to_null(const DeviceArray& array, std::string_view item);

/// A struct array of `fields` named `names`. Raises ValueError, naming the field, when lengths or
/// devices differ.
DeviceArray make_struct(const std::vector<std::string>& names,
                        const std::vector<DeviceArray>& fields);

/// A list array of `values` cut at the 1-D int32 or int64 tensor `offsets` (List or LargeList).
/// Raises ValueError for offsets that decrease or leave the values.
DeviceArray make_list(const DeviceArray& values, const DeviceArray& offsets);

// ---------------------------------------------------------------- Arrow to tensor

/// What to do about nulls.
enum class Nulls {
  kRaise,  ///< BufferError when there is one, at any level
  kFill,   ///< zero (False) in their place: a copy where there may be any
  kNan,    ///< NaN in their place for floating types, BufferError for others
  kKeep,   ///< the bytes that lie there; for callers that hand out the mask as well
};

/// How a consumer is ordered after an array's event.
struct Order {
  enum Kind {
    kHost,           ///< it has no stream: the host waits
    kDefaultStream,  ///< it names none: as kHost, and `stream`, its default one, uses the memory
    kStream,         ///< its `stream` waits, and counts among those that use the memory
    kNone,           ///< it waits by itself (DLPack's stream -1)
  };
  Kind kind = kHost;
  StreamHandle stream = nullptr;
  std::shared_ptr<const void> owner = {};  ///< keeps the handle of `stream` good, if known
};

/// Makes a consumer of `array` safe, as `order` says. Raises BufferError when nobody can wait for
/// the array's event.
void order_consumer(const DeviceArray& array, const Order& order);

struct ToDlpackOptions {
  Copy copy = Copy::kIfNeeded;
  Nulls nulls = Nulls::kRaise;
  bool as_cpu = false;  ///< label host-readable memory of another device (pinned, managed) CPU
  Order order = {};
};

/// Whether `array` has a single-tensor reading at all, and a message that says why not and what
/// to do. nullptr-free: an empty string means it has.
std::string why_not_tensor(const Type& type);

/// The tensor that `type` describes for `length` rows: dtype, shape and strides, data nullptr.
/// Raises BufferError when there is none.
TensorView describe_tensor(const Type& type, int64_t length);

/// The array as a tensor that keeps it alive: read-only and zero-copy where the layout allows,
/// else new memory of its device (IS_COPIED set). What reads it is ordered after the array's event
/// as `options.order` says; new memory that the host cannot read is written by the stream of that
/// order, and where it names none the host waits. Raises BufferError as the type map says, for an
/// event that nobody can wait for, and on devices without kernels of arrowdl's (all but CUDA's) for
/// bits and nulls.
OwnedTensor to_dlpack(const DeviceArray& array, const ToDlpackOptions& options = {});
/// The same as a struct of before DLPack 1.0, which has no flags.
OwnedTensor to_legacy_dlpack(const DeviceArray& array, const ToDlpackOptions& options = {});

/// `tensor`, which is versioned, as a struct of before DLPack 1.0 that owns it. Its flags are lost.
OwnedTensor to_legacy(OwnedTensor tensor);

/// True where every level of the element is valid: a bool tensor of the shape of
/// `to_dlpack(array)`, in new memory that is made and ordered as there.
OwnedTensor to_mask(const DeviceArray& array, const Order& order = {});

/// True where a row of `array` itself is valid: a bool tensor of shape (length,). Any type. In new
/// memory as `to_mask`'s; the CPU's for arrays without a bitmap.
OwnedTensor to_row_mask(const DeviceArray& array, const Order& order = {});

/// Bits of an array as they lie, one for `repeat` elements that follow each other.
struct BitParts {
  TensorView bytes;  ///< 1-D uint8
  int64_t offset;    ///< of the first bit in them
  int64_t length;    ///< in bits
  int64_t repeat;
};

/// An array taken apart into what its tensor is made of, all of it zero-copy: for consumers that
/// unpack bits and replace nulls by operations of their own, on a device where nobody else does.
struct TensorParts {
  std::optional<TensorView> values;  ///< the elements in physical order, 1-D; none of booleans
  std::optional<BitParts> bits;      ///< the elements of booleans
  std::vector<BitParts> validity;    ///< of the levels that may have nulls; all of them count
  std::vector<int64_t> shape;        ///< of the tensor, in physical order
  std::vector<int64_t> axes;         ///< where in that order each of its dimensions lies
};

/// Takes `array`, which has to stay as long as the parts, apart. Raises BufferError for nulls that
/// `nulls` refuses, as `to_dlpack` does, and for types with no single-tensor reading. `above` are
/// the structs that it is a `child` of, whose nulls count as well.
TensorParts split_tensor(const DeviceArray& array, Nulls nulls,
                         const std::vector<DeviceArray>& above = {});

/// Fields of a struct side by side: (length, total columns), one dtype, C order, new memory.
/// A field with inner dimensions contributes that many columns. Raises BufferError, naming the
/// field, when dtypes differ.
OwnedTensor stack_fields(const DeviceArray& array, Nulls nulls);

// ---------------------------------------------------------------- lists

/// A List or LargeList, binary or string array taken apart.
struct ListParts {
  DeviceArray values;   ///< only the rows that the window refers to; uint8 for binary and string
  DeviceArray offsets;  ///< length + 1 of int32 or int64, the first one 0
};

/// Takes `array` apart: lists, maps, list views, binary, string and their views. Zero-copy for
/// offset layouts whose window starts at 0, else the offsets are written anew; views are gathered.
/// Offsets are checked to ascend within the values (ValueError). With `empty_nulls` a null row has
/// no values, whatever lies under it; without, the caller has dealt with nulls.
ListParts split_list(const DeviceArray& array, bool empty_nulls = false);

/// Rows of `parts` padded at the end with `nulls`' zero to the longest (or `width`, >= 0):
/// shape (rows, width, …inner). Raises ValueError when a row is longer than `width`.
OwnedTensor pad_list(const ListParts& parts, Nulls nulls, int64_t width = -1);

/// Lengths of the rows: int64, shape (rows,).
OwnedTensor list_lengths(const ListParts& parts);

/// Checks the shapes of a variable_shape_tensor, an int32 tensor (rows, ndim) in C order on the
/// host, against its data: each row has as many elements as its shape, and what uniform_shape says.
/// Raises ValueError, naming the row.
void check_variable_shapes(const ListParts& parts, const OwnedTensor& shapes,
                           const TensorMetadata& tensor);

// ---------------------------------------------------------------- buffers

/// What makes one array out of buffers that are arrays of their own.
struct BufferParts {
  int64_t length = 0;
  int64_t offset = 0;
  /// In Arrow's order for the layout; each a fixed-width array without nulls, whose bytes count and
  /// whose type does not. An empty one is a buffer that is absent.
  std::vector<DeviceArray> buffers;
  DeviceArray dictionary = {};  ///< the values, for `schema`'s indices; or empty
};

/// An array of `schema`, which has no children and no dictionary, that shares the memory of `parts`
/// on whatever device it lies, and comes after all of its events. Raises ValueError for buffers
/// that are too short, lie on several devices, or whose offsets leave the bytes (read where the
/// host can).
DeviceArray array_from_buffers(OwnedSchema schema, BufferParts parts, bool is_ordered = false);

/// Buffer `i` of a boolean, fixed-width, binary or string array as an array of its own: bytes for
/// bits and for the values of binary and string. It starts where the node's buffers start, with
/// the window's offset before its rows. Zero-copy, but for bool8 whose bytes are not 0 and 1 (where
/// the host can see them): BufferError under Copy::kNever. How many bytes strings take is read from
/// their last offset, off whatever device. An empty array for a buffer that is absent.
DeviceArray buffer_of_array(const DeviceArray& array, int64_t i, Copy copy);

// ---------------------------------------------------------------- whole arrays

/// One array of the rows of all `arrays`, each buffer gathered once. They must agree in type and
/// device; dictionaries that differ are unified by value. One array comes back as it is.
DeviceArray concatenate(const std::vector<DeviceArray>& arrays);

/// The rows of `array`, a struct without nulls in host memory, for consumers that write to them:
/// the elements of its fields that lie in the bytes from `from` on lie at the same place of
/// `block`, an array of these bytes elsewhere (a private mapping of the same file, say), which the
/// result keeps. Only what tensors share is taken from there; fields that have such elements
/// anywhere else are copied. Raises TypeError for other arrays.
DeviceArray relocate(const DeviceArray& array, const void* from, const DeviceArray& block);

/// The plain array that a run-end encoded one stands for.
DeviceArray decode_run_ends(const DeviceArray& array);

/// `array` as an array of `requested`, another form of the same data, where its own buffers serve
/// or a cheap conversion in host memory does; else `array` itself. Never loses anything. On a
/// device no memory is read or made.
///
/// Given are, at every level: other names, metadata and extension types over one storage; fields of
/// a struct in another order, by name where all names are there and else by position; fields that
/// are not nullable where no value is null; dictionaries and run ends decoded, dictionaries made,
/// wider indices and run ends; binary and strings of any offsets, views included; lists of any
/// kind, of a fixed size where all have it; bool8 and bits; wider integers and floats, exactly;
/// times, durations and dates in other units, exactly; rows of the null type. Whether the root of
/// a struct may be null is left as it is: pyarrow's schemas say of theirs that it may not.
///
/// Raises ValueError for what is not the same data: another number of fields, numbers for strings,
/// a struct for a list, nulls where there may be none. Source: Arrow "PyCapsule Interface", Schema
/// Requests.
DeviceArray cast_to_schema(const DeviceArray& array,
                           const std::shared_ptr<const ParsedSchema>& requested,
                           CastTarget target = CastTarget::kDevice);

/// Field `i` of a struct for the converters: `array.field(i)`, but run ends, which have no bitmap
/// to take the nulls of the struct, are decoded first.
DeviceArray read_field(const DeviceArray& array, int64_t i);

/// A versioned tensor that reads as `view` says and holds `owner` until its deleter runs. `flags`
/// are DLPACK_FLAG_BITMASK_*: IS_COPIED for memory made for this tensor alone.
OwnedTensor make_tensor(const TensorView& view, std::shared_ptr<const void> owner, uint64_t flags);
/// The same around another tensor, with its flags.
OwnedTensor make_tensor(const TensorView& view, OwnedTensor owner);

/// `tensor`, or where its memory is the CPU's and does not begin at a multiple of `alignment` bytes
/// (64 at most), a contiguous copy that does.
OwnedTensor align_tensor(OwnedTensor tensor, std::size_t alignment);

}  // namespace arrowdl
