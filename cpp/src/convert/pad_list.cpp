// Pads lists to a dense tensor.
#include <algorithm>
#include <cstring>

#include "array/host_access.hpp"
#include "array/row_access.hpp"
#include "arrowdl/copy_policy.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/list_tensors.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/to_dlpack.hpp"
#include "backends/kernel_blocks.hpp"
#include "compute/make_lists.hpp"
#include "convert/copy_elements_on_device.hpp"
#include "convert/host_tensor.hpp"
#include "device/device_pointer.hpp"
#include "sync/stream_work.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The number of values that are kept of a row of `length` values.
int64_t cut(int64_t length, const Padding& padding) {
  return padding.max_length < 0 ? length : std::min(length, padding.max_length);
}

int64_t round_up(int64_t width, int64_t multiple) {
  if (multiple <= 1 || width % multiple == 0) return width;
  int64_t rounded = 0;
  if (!checked_add(width, multiple - width % multiple, &rounded)) {
    raise_value_error("a width of ", width, " has no multiple of ", multiple, " within int64");
  }
  return rounded;
}

int64_t choose_width(int64_t longest, const Padding& padding) {
  const int64_t width = padding.width;
  if (width >= 0 && longest > width) {
    raise_value_error("the longest row has ", longest, " values and the width is ", width,
                      ": give at least ", longest, ", or none to fit the longest row");
  }
  return round_up(width >= 0 ? width : longest, padding.multiple);
}

template <typename Offset>
int64_t find_width(const DeviceArray& offsets, const Padding& padding) {
  const ElementReader<Offset> elements(offsets, 1);
  int64_t longest = 0;
  for (int64_t i = 0; i + 1 < offsets.length(); ++i) {
    longest = std::max<int64_t>(longest, elements[i + 1] - elements[i]);
  }
  return choose_width(cut(longest, padding), padding);
}

/// A view of shape (rows, width, ...inner), with the strides of `values` inside a value, so that a
/// permutation is kept.
TensorView describe_padded(const TensorView& values, int64_t rows, int64_t width) {
  TensorView padded;
  padded.dtype = values.dtype;
  padded.push_dim(rows);
  padded.push_dim(width);
  for (int32_t d = 1; d < values.ndim; ++d) padded.push_dim(values.shape[d]);
  padded.set_contiguous_strides();
  std::copy(values.strides + 1, values.strides + values.ndim, padded.strides + 2);
  return padded;
}

/// The bytes of one value and of the whole padded tensor.
struct PaddedSize {
  int64_t value;
  int64_t total;
};

PaddedSize measure(const TensorView& padded) {
  int64_t value = padded.dtype->itemsize();
  for (int32_t d = 2; d < padded.ndim; ++d) value *= padded.shape[d];  // fits: values exist
  int64_t total = 0;
  if (!checked_multiply(padded.shape[0], padded.shape[1], &total) ||
      !checked_multiply(total, value, &total)) {
    raise_buffer_error(padded.shape[0], " rows padded to ", padded.shape[1],
                       " values are more than 2^63 - 1 bytes: cut the longest rows");
  }
  return {value, total};
}

/// Writes an element again and again over memory whose size is a multiple of the element's.
class ElementFiller {
 public:
  ElementFiller(const Padding& padding, int64_t itemsize)
      : element_(padding.element), itemsize_(static_cast<std::size_t>(itemsize)) {
    is_one_byte_ = std::all_of(element_.begin(), element_.begin() + itemsize,
                               [this](uint8_t byte) { return byte == element_[0]; });
  }

  void fill(uint8_t* target, std::size_t size) const {
    if (is_one_byte_) {
      std::memset(target, element_[0], size);
      return;
    }
    std::size_t done = std::min(size, itemsize_);
    std::memcpy(target, element_.data(), done);
    while (done < size) {  // doubles what is written
      const std::size_t more = std::min(done, size - done);
      std::memcpy(target + done, target, more);
      done += more;
    }
  }

 private:
  std::array<uint8_t, 16> element_;
  std::size_t itemsize_;
  bool is_one_byte_;
};

template <typename Offset>
void fill_rows(const DeviceArray& offsets, const TensorView& values, int64_t width,
               int64_t value_size, const Padding& padding, uint8_t* target) {
  const ElementReader<Offset> elements(offsets, 1);
  const ElementFiller filler(padding, values.dtype->itemsize());
  for (int64_t i = 0; i + 1 < offsets.length(); ++i) {
    const int64_t used = cut(elements[i + 1] - elements[i], padding) * value_size;
    const int64_t row_size = width * value_size;
    if (used > 0) {
      std::memcpy(target, values.data + elements[i] * value_size, static_cast<std::size_t>(used));
    }
    filler.fill(target + used, static_cast<std::size_t>(row_size - used));
    target += row_size;
  }
}

/// The address of the first offset.
int64_t first_offset(const DeviceArray& offsets) {
  const int64_t itemsize = offsets.type().byte_width;
  return to_address(
      offset_pointer(offsets.device(), offsets.buffer(1), offsets.offset() * itemsize));
}

/// Waits for the length of the longest row.
int64_t find_width_on_device(KernelWork& work, const DeviceArray& offsets, const Padding& padding) {
  const int64_t most = padding.max_length < 0 ? INT64_MAX : padding.max_length;
  const int64_t longest = work.make_results();
  const int64_t rows = offsets.length() - 1;
  work.launch(Kernel::kMeasureLists, static_cast<int64_t*>(nullptr), count_threads(rows), rows,
              first_offset(offsets), offsets.type().byte_width, most, longest);
  const std::vector<int64_t> found = work.read_results(longest);
  return choose_width(*std::max_element(found.begin(), found.end()), padding);
}

OwnedTensor pad_on_device(const ListParts& parts, const Nulls& nulls, const Padding& padding,
                          const Order& order) {
  const DeviceArray& offsets = parts.offsets;
  const int64_t rows = offsets.length() - 1;
  KernelWork work(offsets.device(), "pad lists");
  work.use(offsets.storage(), offsets.sync_event());
  const auto tensor = std::make_shared<OwnedTensor>(read_elements(work, parts.values, nulls));
  work.use(tensor, EventHandle());
  const TensorView values = view_tensor(*tensor);
  const int64_t columns = parts.longest >= 0 ? choose_width(cut(parts.longest, padding), padding)
                                             : find_width_on_device(work, offsets, padding);
  const TensorView padded = describe_padded(values, rows, columns);
  const PaddedSize size = measure(padded);
  const std::shared_ptr<DeviceMemory> memory = work.allocate(size.total);
  if (size.total > 0) {
    const int64_t data = to_address(values.data);
    const int64_t unit = find_unit({data, size.value});
    const int64_t most = padding.max_length < 0 ? INT64_MAX : padding.max_length;
    const Pattern pattern(padding.element.data(), padded.dtype->itemsize());
    work.launch(Kernel::kPadRows, memory->address(), count_blocks(size.total), size.total, columns,
                size.value / unit, unit, data, first_offset(offsets), offsets.type().byte_width,
                most, pattern.low, pattern.high);
  }
  return make_device_tensor(work, padded, memory, order);
}

}  // namespace

OwnedTensor pad_list(const ListParts& parts, const Nulls& nulls, const Padding& padding,
                     const Order& order) {
  if (is_read_by_kernels(parts.values.device(), "pad lists")) {
    return pad_on_device(parts, nulls, padding, order);
  }
  check_list_offsets(parts.offsets, parts.values.length());
  parts.values.synchronize();
  const OwnedTensor tensor = to_dlpack(parts.values, {Copy::kIfNeeded, nulls});
  const TensorView values = view_tensor(tensor);
  return visit_list_offsets(parts.offsets, [&](auto zero) {
    using Offset = decltype(zero);
    const int64_t columns = find_width<Offset>(parts.offsets, padding);
    const TensorView padded = describe_padded(values, parts.offsets.length() - 1, columns);
    const PaddedSize size = measure(padded);
    return make_host_tensor(padded, size.total, [&](uint8_t* target) {
      fill_rows<Offset>(parts.offsets, values, columns, size.value, padding, target);
    });
  });
}

ARROWDL_END_NAMESPACE
