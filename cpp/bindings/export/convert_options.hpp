// What to_torch, to_jax and to_numpy are asked for, for all columns or for each.
#pragma once

#include <pybind11/cast.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/device.hpp"
#include "arrowdl/list_tensors.hpp"
#include "arrowdl/tensor_view.hpp"
#include "cast/cast_dtype.hpp"

namespace arrowdl::python {

enum class NullPolicy { kRaise, kFill, kNan, kMask };
enum class Ragged { kJagged, kPadded, kOffsets };

/// Whose memory the tensors are in.
enum class Access {
  kShared,   ///< copy=None: the array's, read-only, or new memory
  kInPlace,  ///< copy=False: the array's, or BufferError
  kCopied,   ///< copy=True: new memory of the caller's own
  kOwn,      ///< the array's, which is the caller's own, or new memory
};

/// Options that were given as a mapping from column name to value: dicts of Python, borrowed for
/// the call; nullptr for the others.
struct ByColumn {
  PyObject* nulls = nullptr;
  PyObject* ragged = nullptr;
  PyObject* dtype = nullptr;
  PyObject* pad_value = nullptr;
  PyObject* max_length = nullptr;

  bool is_empty() const {
    return nulls == nullptr && ragged == nullptr && dtype == nullptr && pad_value == nullptr &&
           max_length == nullptr;
  }
};

struct ConvertOptions {
  NullPolicy nulls = NullPolicy::kRaise;
  Ragged ragged = Ragged::kJagged;
  bool stack = false;
  Access access = Access::kShared;
  std::optional<Device> device = {};
  const Dtype* dtype = nullptr;                ///< that numbers are cast to; nullptr: their own
  CastWhich cast_which = CastWhich::kNumbers;  ///< which values `dtype` is for
  PyObject* pad_value = nullptr;               ///< borrowed; nullptr: zeros
  int64_t max_length = -1;                     ///< of padded rows; -1: any
  int64_t pad_multiple = 1;                    ///< of which padded widths are multiples
  const ByColumn* by_column = nullptr;         ///< borrowed; nullptr: none
  bool is_new = false;                         ///< the array is in memory made for these tensors
  bool is_copy = false;                        ///< copy=True was passed, whatever `access` becomes

  bool has_by_column() const { return by_column != nullptr; }
  /// The options of the column named `name`.
  ConvertOptions for_column(PyObject* name) const;
};

/// The arguments beside the object; nullptr for those that were not given. `own` is of arrowdl's
/// own Python: the memory is nobody else's.
struct ConvertArguments {
  PyObject* nulls;
  PyObject* ragged;
  PyObject* stack;
  PyObject* device;
  PyObject* copy;
  PyObject* dtype;
  PyObject* pad_value;
  PyObject* max_length;
  PyObject* pad_to_multiple;
  PyObject* own;
};

/// The dtype that a user means: its name, or a dtype of torch, NumPy or JAX. Raises ValueError if
/// numbers are not cast to it.
const Dtype* read_dtype(PyObject* value);

/// Reads all but `stack`, `device`, `copy` and `own`, which are the caller's. Mappings, which must
/// be dicts, are noted in `by_column`, and the options point to it. Raises ValueError or TypeError,
/// naming the argument.
void read_options(const ConvertArguments& arguments, ConvertOptions* options, ByColumn* by_column);

/// Raises ValueError if a mapping has a name that none of `columns` has.
void check_columns(const ByColumn& by_column, const std::vector<Type>& columns);

/// The padding of rows of `dtype`. Raises ValueError if pad_value is no value of it.
Padding read_padding(const ConvertOptions& options, const Dtype& dtype);

}  // namespace arrowdl::python
