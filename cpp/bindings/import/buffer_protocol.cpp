// Imports tensors by Python's buffer protocol.
#include <limits>
#include <memory>
#include <string_view>

#include "arrowdl/error.hpp"
#include "arrowdl/make_tensor.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "import/foreign_tensors.hpp"
#include "support/gil.hpp"
#include "util/overflow.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

/// A format of one value, and its size in bytes on this machine and by the standard: ctypes names
/// its own sizes by the characters of the standard.
struct FormatRow {
  std::string_view format;
  DLDataTypeCode code;
  int8_t native;
  int8_t standard;
};

/// Sources: Python's struct module, format characters; PEP 3118 for Z.
constexpr FormatRow kFormats[] = {
    {"?", kDLBool, 1, 1},
    {"b", kDLInt, 1, 1},
    {"B", kDLUInt, 1, 1},
    {"h", kDLInt, sizeof(short), 2},
    {"H", kDLUInt, sizeof(short), 2},
    {"i", kDLInt, sizeof(int), 4},
    {"I", kDLUInt, sizeof(int), 4},
    {"l", kDLInt, sizeof(long), 4},
    {"L", kDLUInt, sizeof(long), 4},
    {"q", kDLInt, sizeof(long long), 8},
    {"Q", kDLUInt, sizeof(long long), 8},
    {"n", kDLInt, sizeof(Py_ssize_t), sizeof(Py_ssize_t)},
    {"N", kDLUInt, sizeof(Py_ssize_t), sizeof(Py_ssize_t)},
    {"e", kDLFloat, 2, 2},
    {"f", kDLFloat, 4, 4},
    {"d", kDLFloat, 8, 8},
    {"F", kDLComplex, 8, 8},
    {"D", kDLComplex, 16, 16},
    {"Zf", kDLComplex, 8, 8},
    {"Zd", kDLComplex, 16, 16},
};

/// What a buffer of another format is told.
struct OtherFormat {
  std::string_view starts;  ///< any of these characters after the byte order
  const char* what;
  const char* advice;
};

constexpr OtherFormat kOtherFormats[] = {
    {"c", "characters", "take their bytes, as numpy.frombuffer(buffer, \"uint8\")"},
    {"T", "structs", "pass its fields in a dict, as {\"x\": numpy.asarray(buffer)[\"x\"].copy()}"},
    {"uw", "text", "pass pyarrow.array() of its strings"},
    {"gG", "long doubles", "cast it, as numpy.asarray(buffer).astype(\"float64\")"},
    {"P&O", "pointers", "pass what they point to"},
};

constexpr const char* kOtherAdvice =
    "cast it to native integers, floating point numbers or bools, as "
    "numpy.asarray(buffer).astype(\"int64\")";

std::string_view read_format(const Py_buffer& buffer) {
  return buffer.format == nullptr ? "B" : buffer.format;  // NULL: bytes
}

[[noreturn]] void raise_other_format(std::string_view given, std::string_view values) {
  for (const OtherFormat& row : kOtherFormats) {
    const bool is_long_complex = values.size() == 2 && values[0] == 'Z' && row.starts == "gG";
    if (values.empty() ||
        (row.starts.find(values[0]) == std::string_view::npos && !is_long_complex)) {
      continue;
    }
    raise_buffer_error("a buffer of ", row.what, " (format \"", given,
                       "\") has no tensor type: ", row.advice);
  }
  raise_buffer_error("a buffer of format \"", given, "\" has no tensor type: ", kOtherAdvice);
}

const Dtype& read_dtype(const Py_buffer& buffer) {
  const std::string_view given = read_format(buffer);
  const bool has_order = given.size() > 1 && std::string_view("@=<>!").find(given[0]) < 5;
  const std::string_view values = given.substr(has_order ? 1 : 0);
  for (const FormatRow& row : kFormats) {
    if (row.format != values) continue;
    if (buffer.itemsize != row.native && buffer.itemsize != row.standard) {
      raise_value_error("malformed buffer: its format \"", given, "\" has ", int{row.native},
                        " bytes, its itemsize is ", buffer.itemsize,
                        " (as of a union of ctypes): take its bytes, as numpy.frombuffer(buffer, "
                        "\"uint8\")");
    }
    if (row.native > 1 && (given[0] == '>' || given[0] == '!')) {
      raise_buffer_error("a buffer of big-endian values (format \"", given,
                         "\") has no tensor type: change their byte order, as "
                         "numpy.asarray(buffer).astype(dtype.newbyteorder(\"=\"))");
    }
    const auto bits = static_cast<uint8_t>(buffer.itemsize * 8);
    return *find_dtype(DLDataType{static_cast<uint8_t>(row.code), bits, 1});
  }
  raise_other_format(given, values);
}

void check_dimensions(const Py_buffer& buffer) {
  if (buffer.ndim < 0 || buffer.ndim > kMaxDims) {
    raise_value_error("malformed buffer: it has ", buffer.ndim, " dimensions, at most ", kMaxDims,
                      " are supported");
  }
  if (buffer.ndim > 1 && buffer.shape == nullptr) {
    raise_value_error("malformed buffer: its shape is NULL with ", buffer.ndim, " dimensions");
  }
  for (int i = 0; buffer.suboffsets != nullptr && i < buffer.ndim; ++i) {
    if (buffer.suboffsets[i] < 0) continue;
    raise_buffer_error("a buffer with suboffsets, whose dimension ", i,
                       " consists of pointers, has no strides: copy it first");
  }
}

/// The bytes of the elements have to be those of the whole buffer: exporters that leave the strides
/// out have nothing else that says where it ends.
void check_length(const Py_buffer& buffer, const int64_t* shape) {
  int64_t bytes = buffer.itemsize;
  bool fits = true;
  for (int i = 0; i < buffer.ndim; ++i) {
    if (shape[i] < 0) return;  // `view_tensor` says so
    fits = fits && checked_multiply(bytes, shape[i], &bytes);
  }
  if (fits && bytes == buffer.len) return;
  raise_value_error("malformed buffer: its shape and its itemsize of ", buffer.itemsize,
                    " bytes take ", fits ? concat(bytes) : std::string("more than 2^63"),
                    " bytes, its length is ", buffer.len);
}

/// Believes no field that another one contradicts. Strides that are NULL mean C order: ctypes gives
/// none, although they are asked for.
TensorView view_buffer(const Py_buffer& buffer) {
  check_dimensions(buffer);
  const Dtype& dtype = read_dtype(buffer);
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];
  for (int i = 0; i < buffer.ndim; ++i) {
    shape[i] = buffer.shape == nullptr ? buffer.len / buffer.itemsize : buffer.shape[i];
  }
  check_length(buffer, shape);
  for (int i = 0; buffer.strides != nullptr && i < buffer.ndim; ++i) {
    strides[i] = buffer.strides[i] / buffer.itemsize;
    if (shape[i] > 1 && buffer.strides[i] % buffer.itemsize != 0) {
      raise_buffer_error("a buffer with a stride of ", buffer.strides[i],
                         " bytes between elements of ", buffer.itemsize, ": copy it first");
    }
  }
  DLTensor tensor{};
  tensor.data = buffer.buf;
  tensor.device = DLDevice{kDLCPU, 0};
  tensor.ndim = buffer.ndim;
  tensor.dtype = dtype.dl();
  tensor.shape = shape;
  tensor.strides = buffer.strides == nullptr ? nullptr : strides;
  return view_tensor(tensor);
}

/// Returns the buffer to its exporter, a Python object. Takes the GIL, on any thread.
void release_buffer(Py_buffer* buffer) noexcept {
  with_gil([buffer] {
    PyBuffer_Release(buffer);
    delete buffer;
  });
}

}  // namespace

OwnedTensor take_buffer(PyObject* object) {
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object, buffer.get(), PyBUF_RECORDS_RO) != 0) {
    throw py::error_already_set();
  }
  const std::shared_ptr<Py_buffer> owner(buffer.release(), release_buffer);
  return make_tensor(view_buffer(*owner), owner, DLPACK_FLAG_BITMASK_READ_ONLY);
}

}  // namespace arrowdl::python
