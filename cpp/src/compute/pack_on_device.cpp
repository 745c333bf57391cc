// Packs the elements of arrays into bits, with the kernels of a device.
#include "compute/pack_on_device.hpp"

#include <utility>

#include "array/replace_validity.hpp"
#include "device/device_pointer.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE

void pack_on_device(KernelOps& kernels, const Device& device, uint8_t* bits,
                    const uint8_t* elements, int64_t count, int64_t itemsize, const BitRule& rule,
                    StreamHandle stream) {
  BitRule given = rule;
  constexpr int64_t kBits = 32;  // that a thread packs, as in elements.cu
  int64_t size = (count + kBits - 1) / kBits;
  int64_t source = to_address(elements);
  void* arguments[] = {&bits,       &size,       &count,       &source,      &itemsize,
                       &given.flip, &given.mask, &given.limit, &given.invert};
  if (size > 0) kernels.launch(device, Kernel::kPackBits, size, arguments, stream);
}

Buffer pack_on_device(KernelWork& work, const uint8_t* elements, int64_t count, int64_t itemsize,
                      const BitRule& rule) {
  const int64_t size = bitmap_size(count);
  const std::shared_ptr<DeviceMemory> bits = work.allocate(size);
  pack_on_device(work.kernels(), work.device(), bits->address(), elements, count, itemsize, rule,
                 work.stream());
  return to_buffer(bits, size);
}

DeviceArray null_unless(const DeviceArray& rows, const DeviceArray& elements, const BitRule& rule) {
  require_validity(rows.type());
  if (rows.length() == 0) return rows;
  const Device device = rows.device();
  const int64_t width = elements.type().byte_width;
  KernelWork work(device, "make nulls");
  work.use(elements.storage(), elements.sync_event());
  const uint8_t* first = offset_pointer(device, elements.buffer(1), elements.offset() * width);
  ArrayParts parts;
  parts.length = rows.length();
  parts.null_count = -1;
  parts.buffers.push_back(pack_on_device(work, first, parts.length, width, rule));
  parts.buffers.push_back(parts.buffers.front());
  return rows.with_nulls_of(DeviceArray::import(
      make_nested_schema("b", {}, ""), make_array(std::move(parts)), device, work.record()));
}

ARROWDL_END_NAMESPACE
