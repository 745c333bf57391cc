// Writes tensors into one block of memory, and reads them from it.
#include "functions/tensor_block.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <string>
#include <vector>

#include "arrowdl/error.hpp"
#include "arrowdl/event.hpp"
#include "classes/classes.hpp"
#include "copy/staging_pool.hpp"
#include "import/tensor.hpp"
#include "support/constructor.hpp"
#include "support/device_array_object.hpp"
#include "support/values.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

constexpr int64_t kAlignment = 64;
constexpr int64_t kNoTensor = -1;  // an entry's number of dimensions

/// Whether the error says that the object is not a readable tensor, rather than that reading
/// failed.
bool is_refusal(const Error& error) {
  return error.kind() == ErrorKind::kBuffer || error.kind() == ErrorKind::kType ||
         error.kind() == ErrorKind::kValue;
}

bool is_refusal(const py::error_already_set& error) {
  return error.matches(PyExc_BufferError) || error.matches(PyExc_TypeError) ||
         error.matches(PyExc_ValueError);
}

/// The tensor of `object`, after a wait for its memory; empty if it cannot be read.
OwnedTensor find_tensor(PyObject* object) {
  TakenTensor taken;
  try {
    taken = take_tensor_of(object, Copy::kIfNeeded);
    view_tensor(taken.tensor);
  } catch (const Error& error) {
    if (!is_refusal(error)) throw;
    return {};
  } catch (const py::error_already_set& error) {
    if (!is_refusal(error)) throw;
    return {};
  }
  const Device device = from_dl_device(taken.tensor->device);
  if (!is_host_readable(device)) {
    raise_buffer_error(
        "a worker process sends host memory, and the transform returned a tensor on ",
        to_string(device), ": leave it on the host, and pass device= to the Loader");
  }
  synchronize_event(device, taken.event.handle());
  return std::move(taken.tensor);
}

/// The contiguous memory of an object with the buffer protocol.
class WritableMemory {
 public:
  explicit WritableMemory(PyObject* object) {
    if (PyObject_GetBuffer(object, &buffer_, PyBUF_WRITABLE) != 0) throw py::error_already_set();
  }
  ~WritableMemory() { PyBuffer_Release(&buffer_); }
  WritableMemory(const WritableMemory&) = delete;
  WritableMemory& operator=(const WritableMemory&) = delete;

  uint8_t* address() const noexcept { return static_cast<uint8_t*>(buffer_.buf); }
  int64_t size() const noexcept { return buffer_.len; }

 private:
  Py_buffer buffer_{};
};

/// Tensors that are to be written into a block.
class TensorBlock {
 public:
  TensorBlock() = default;  ///< holds nothing yet
  TensorBlock(TensorBlock&&) noexcept = default;
  TensorBlock& operator=(TensorBlock&&) noexcept = default;
  TensorBlock(const py::sequence& leaves, const py::sequence& frameworks) {
    if (leaves.size() != frameworks.size()) {
      raise_value_error(leaves.size(), " leaves of ", frameworks.size(),
                        " frameworks: one belongs to each");
    }
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      add(frameworks[i].is_none() ? OwnedTensor() : find_tensor(py::object(leaves[i]).ptr()));
    }
  }

  int64_t nbytes() const { return size_; }

  py::bytes table() const {
    return {reinterpret_cast<const char*>(table_.data()), table_.size() * sizeof(int64_t)};
  }

  std::vector<std::size_t> left_out() const {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i]) indices.push_back(i);
    }
    return indices;
  }

  void write(const py::object& target) const {
    const WritableMemory memory(target.ptr());
    if (memory.size() < size_) {
      raise_value_error("a block of ", size_, " bytes does not fit into ", memory.size());
    }
    const py::gil_scoped_release release;
    write_to(memory.address());
  }

  py::object make_array(const py::object& target) const {
    const Device device = read_device(target.ptr());
    uint8_t* memory = nullptr;
    Device at;
    Buffer bytes;
    {
      const py::gil_scoped_release release;
      bytes = allocate_for(device, &at, &memory);
      write_to(memory);
    }
    return wrap(DeviceArray::make_primitive(*find_dtype("uint8"), size_, std::move(bytes), at));
  }

 private:
  /// Memory of the host, `*at` pinned where copies to `device` are faster so.
  Buffer allocate_for(const Device& device, Device* at, uint8_t** memory) const {
    const auto block = StagingPool::get().find_for(device, size_, false, at);
    if (block == nullptr) {
      *at = {};
      return Buffer::allocate(size_, memory);
    }
    *memory = block.get();
    return Buffer(block, block.get(), size_);
  }

  void write_to(uint8_t* at) const {
    for (const OwnedTensor& tensor : tensors_) {
      if (!tensor) continue;
      const TensorView view = view_tensor(tensor);
      copy_contiguous(view, at);
      at += padded(view);
    }
  }

  static int64_t padded(const TensorView& view) {
    return (view.nbytes() + kAlignment - 1) / kAlignment * kAlignment;
  }

  void add(OwnedTensor tensor) {
    if (tensor) {
      const TensorView view = view_tensor(tensor);
      table_.insert(table_.end(), {view.ndim, view.dtype - Dtypes().begin(), size_});
      table_.insert(table_.end(), view.shape, view.shape + view.ndim);
      size_ += padded(view);
    } else {
      table_.push_back(kNoTensor);
    }
    tensors_.push_back(std::move(tensor));
  }

  std::vector<OwnedTensor> tensors_;
  std::vector<int64_t> table_;
  int64_t size_ = 0;
};

}  // namespace
}  // namespace arrowdl::python

ARROWDL_CAST_BY_VALUE(arrowdl::python::TensorBlock)

namespace arrowdl::python {

int64_t TableReader::read_number() {
  int64_t number;
  if (table_.size() < sizeof(number)) raise_value_error("the table of tensors is too short");
  std::memcpy(&number, table_.data(), sizeof(number));
  table_.remove_prefix(sizeof(number));
  return number;
}

bool TableReader::next(TensorView* view) {
  const int64_t ndim = read_number();
  if (ndim == kNoTensor) return false;
  const int64_t dtype = read_number();
  const int64_t position = read_number();
  view->ndim = 0;
  const bool has_dtype = dtype >= 0 && dtype < Dtypes().end() - Dtypes().begin();
  view->dtype = has_dtype ? Dtypes().begin() + dtype : nullptr;
  bool is_good = has_dtype && ndim >= 0 && ndim <= kMaxDims;
  for (int64_t d = 0; is_good && d < ndim; ++d) {
    view->push_dim(read_number());
    is_good = view->shape[d] >= 0;
  }
  is_good = is_good && position % kAlignment == 0;
  if (!is_good || !view->is_countable() || position < 0 || position > size_ - view->nbytes()) {
    raise_value_error("the table of tensors does not fit a block of ", size_, " bytes");
  }
  view->set_contiguous_strides();
  view->data = block_ + position;
  return true;
}

void register_tensor_block(py::module_& m) {
  py::class_<TensorBlock> type(m, "TensorBlock", py::is_final(),
                               "TensorBlock(leaves, frameworks)\n--\n\n"
                               "Host tensors that `write` copies into one block of memory.\n\n"
                               "`frameworks` has None where a leaf is not a tensor.");
  define_constructor(
      type,
      [](const py::object&, const py::sequence& leaves, const py::sequence& frameworks) {
        return TensorBlock(leaves, frameworks);
      },
      py::arg("leaves"), py::arg("frameworks"));
  type.def_property_readonly("nbytes", &TensorBlock::nbytes, "The size of the block in bytes.")
      .def_property_readonly(
          "table", &TensorBlock::table,
          "Offset, dtype and shape of each tensor in the block, for `read_tensors`.")
      .def_property_readonly("left_out", &TensorBlock::left_out,
                             "The indices of the leaves that are not in the block: those that are "
                             "no tensors, or that the host cannot read.")
      .def("write", &TensorBlock::write, py::arg("target"),
           "Copy the tensors into a writable, contiguous buffer of `nbytes`.")
      .def("make_array", &TensorBlock::make_array, py::arg("device"),
           "Copy the tensors into new memory, pinned where that is faster to copy to `device`.");
}

}  // namespace arrowdl::python
