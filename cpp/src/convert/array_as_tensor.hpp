// How an Arrow array reads as one tensor: the walk from its rows down to its elements.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"

namespace arrowdl {

/// The nodes between the rows of an array and its elements, outermost first: the array itself,
/// which is borrowed, then the child of each fixed-size list under its window. Each level's rows
/// are an exact multiple of those above.
class Levels {
 public:
  explicit Levels(const DeviceArray& array) : array_(&array) {}

  void push_back(DeviceArray child) { inner_.push_back(std::move(child)); }
  std::size_t size() const { return 1 + inner_.size(); }
  const DeviceArray& operator[](std::size_t i) const { return i == 0 ? *array_ : inner_[i - 1]; }
  const DeviceArray& front() const { return *array_; }
  const DeviceArray& back() const { return inner_.empty() ? *array_ : inner_.back(); }

  struct Iterator {
    const Levels* levels;
    std::size_t i;
    const DeviceArray& operator*() const { return (*levels)[i]; }
    Iterator& operator++() { return ++i, *this; }
    bool operator!=(const Iterator& other) const { return i != other.i; }
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  const DeviceArray* array_;
  std::vector<DeviceArray> inner_;  // empty, so without an allocation, for a plain array
};

/// The nodes between the rows of an array and the elements of its tensor, and the tensor. Holds
/// for every layout with a single-tensor reading (see the type map): primitives, bits,
/// FixedSizeBinary, nested FixedSizeLists, the dtype and fixed-shape tensor extensions.
struct ArrayAsTensor {
  explicit ArrayAsTensor(const DeviceArray& array) : levels(array) {}

  /// Shape, strides (a permutation applied) and dtype. `data` is the first element of the window,
  /// or nullptr for `is_bits`.
  TensorView view;
  /// The last one holds the elements.
  Levels levels;
  /// The elements are bits: they have to be unpacked, in the order of the levels' rows.
  bool is_bits = false;

  const DeviceArray& leaf() const { return levels.back(); }
};

/// Reads `array`, which must outlive the result. Raises BufferError, with the way out, for what has
/// no single-tensor reading.
ArrayAsTensor view_as_tensor(const DeviceArray& array);
ArrayAsTensor view_as_tensor(DeviceArray&& array) = delete;

/// Whether any level has a null in its window. Raises BufferError where nobody has counted them and
/// the host cannot.
bool has_nulls(const ArrayAsTensor& reading);

/// The same, but true where that cannot be told.
bool may_have_nulls(const ArrayAsTensor& reading);

/// Whether nulls have to be replaced, or may have to be. Raises BufferError for those that `nulls`
/// refuses; only kRaise has to know whether there are any.
bool replaces_nulls(const ArrayAsTensor& reading, Nulls nulls);

/// One byte per element (1 valid, 0 null) into `target`, in the physical order of the leaf: every
/// level's bitmap spread over the elements below it. Host memory only.
void unpack_validity(const ArrayAsTensor& reading, uint8_t* target);

/// A tensor in new host memory with the elements of `reading` in the same physical order (so a
/// permutation stays a matter of strides), bits unpacked to bool, nulls as `nulls` says (kRaise:
/// the caller has made sure there are none). Raises BufferError when the host can't read the
/// memory, or for kNan on a type without NaN that has nulls.
OwnedTensor copy_elements(const ArrayAsTensor& reading, Nulls nulls);

}  // namespace arrowdl
