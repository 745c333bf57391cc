// Views Arrow arrays as tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/nulls.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The nodes from the rows of an array to its elements, outermost first: the array itself, which is
/// borrowed, then the child of each fixed-size list. The length of each level is a multiple of the
/// length of the level before.
class NestingLevels {
 public:
  explicit NestingLevels(const DeviceArray& array) : array_(&array) {}

  void push_back(DeviceArray child) { inner_.push_back(std::move(child)); }
  std::size_t size() const { return 1 + inner_.size(); }
  const DeviceArray& operator[](std::size_t i) const { return i == 0 ? *array_ : inner_[i - 1]; }
  const DeviceArray& front() const { return *array_; }
  const DeviceArray& back() const { return inner_.empty() ? *array_ : inner_.back(); }

  struct Iterator {
    const NestingLevels* levels;
    std::size_t i;
    const DeviceArray& operator*() const { return (*levels)[i]; }
    Iterator& operator++() { return ++i, *this; }
    bool operator!=(const Iterator& other) const { return i != other.i; }
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  const DeviceArray* array_;
  std::vector<DeviceArray> inner_;  // empty, without an allocation, for a primitive array
};

/// An array viewed as a tensor: primitives, bits, FixedSizeBinary, nested FixedSizeLists, the dtype
/// and fixed-shape tensor extensions (see the type map).
struct ArrayAsTensor {
  explicit ArrayAsTensor(const DeviceArray& array) : levels(array) {}

  /// Dtype, shape and strides, which have the permutation applied. `data` is the first element of
  /// the window, nullptr for bits.
  TensorView view;
  /// The last level holds the elements.
  NestingLevels levels;
  /// Whether the elements are bits, which have to be unpacked.
  bool is_bits = false;

  const DeviceArray& leaf() const { return levels.back(); }
};

/// Views `array`, which must outlive the result, as a tensor. Raises BufferError for types that are
/// not one tensor.
ArrayAsTensor view_as_tensor(const DeviceArray& array);
ArrayAsTensor view_as_tensor(DeviceArray&& array) = delete;

/// Whether any level has a null in its window. Raises BufferError if they are not counted and the
/// host cannot read the bitmap.
bool has_nulls(const ArrayAsTensor& reading);

/// The same, but true if that is not known.
bool may_have_nulls(const ArrayAsTensor& reading);

/// Whether there may be nulls to replace. Raises BufferError for nulls that `nulls` refuses, and
/// for kRaise if it is not known whether there are nulls.
bool replaces_nulls(const ArrayAsTensor& reading, const Nulls& nulls);

/// Writes one byte per element into `target`, 1 for valid and 0 for null, in physical order: the
/// bits of each level are repeated for its elements. Host memory only.
void unpack_validity(const ArrayAsTensor& reading, uint8_t* target);

/// A tensor in new host memory with the elements of `reading` in the same physical order, so that a
/// permutation is kept in the strides. Bits are unpacked to bool; nulls are replaced as `nulls`
/// says; for kRaise the caller has checked that there are none. Raises BufferError for memory that
/// the host cannot read, and for kNan if a type without NaN has nulls.
OwnedTensor copy_elements(const ArrayAsTensor& reading, const Nulls& nulls);

ARROWDL_END_NAMESPACE
