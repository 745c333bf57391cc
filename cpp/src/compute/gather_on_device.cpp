// Gathers rows of arrays with the kernels of a device.
#include "compute/gather_on_device.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "arrowdl/error.hpp"
#include "compute/offsets.hpp"
#include "compute/rows_on_device.hpp"
#include "compute/selection.hpp"
#include "device/device_pointer.hpp"
#include "schema/layout.hpp"
#include "schema/make_schema.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using Sources = std::vector<DeviceArray>;

/// An array in the making.
struct Node {
  ArrayParts parts;
  std::vector<std::unique_ptr<Node>> children;

  Node* add_child() { return children.emplace_back(std::make_unique<Node>()).get(); }
  OwnedArray finish() {
    for (const auto& child : children) parts.children.push_back(child->finish());
    return make_array(std::move(parts));
  }
};

/// Whether the host has to read the size or the errors of an array of `type`.
bool has_values_to_find(const Type& type) {
  const LayoutRow& row = layout_row(type.layout);
  return row.has_offsets() || type.layout == Layout::kListView ||
         type.layout == Layout::kLargeListView || type.layout == Layout::kRunEndEncoded;
}

int64_t count_slots(const Type& type) {
  int64_t count = has_values_to_find(type) ? 1 : 0;
  for (const Type& child : type.children) count += count_slots(child);
  return count;
}

[[noreturn]] void raise_malformed(const Type& type) {
  raise_value_error("malformed ", to_string(type), " array: its ",
                    type.layout == Layout::kRunEndEncoded
                        ? "run ends do not cover its rows"
                        : "offsets do not ascend within its values");
}

void require_fits(const Type& type, int64_t itemsize, int64_t count) {
  if (itemsize == kIntegerSize) return;
  require_offset_fits<int32_t>(type, count);
}

void require_run_ends_fit(const Type& type, int64_t count) {
  const int64_t bits = type.children[0].byte_width * 8;
  if (count <= std::numeric_limits<int64_t>::max() >> (64 - bits)) return;
  raise_buffer_error("the run ends of ", to_string(type), " cannot count ", count,
                     " rows: decode them first, or take fewer rows at a time");
}

class DeviceGather {
 public:
  DeviceGather(const Device& device, const Type& type)
      : work_(device, "gather rows"), columns_(work_), slots_(count_slots(type)) {}

  KernelWork& work() noexcept { return work_; }

  void use(const DeviceArray& array) { work_.use(array.storage(), array.sync_event()); }

  /// The rows `taken` of `sources`, and of their children. `finish_levels` completes it.
  void gather(const Sources& sources, const TakenRows& taken, Node* node);
  /// The values of run ends, decoded.
  void decode(const DeviceArray& array, Node* node) {
    const TakenRows all{array.length()};
    const int64_t slot = next_slot_++;
    wait_for({node,
              {array.child(1)},
              all,
              find_runs(work_, {array}, all, nullptr, error_of(slot)),
              slot,
              &array.type()});
  }
  ListParts split(const DeviceArray& array, bool empty_nulls);
  ListSizes read_sizes(const DeviceArray& array, const FoundValues& found, int64_t slot);
  /// Waits for the sizes of each level, and gathers the next one.
  void finish_levels();

  DeviceArray finish(OwnedSchema schema, Node& root) {
    finish_levels();
    return DeviceArray::import(std::move(schema), root.finish(), work_.device(), work_.record());
  }

 private:
  /// Values that can be gathered when the host knows how many they are.
  struct Pending {
    Node* values;
    Sources sources;
    TakenRows taken;  ///< the rows that have the values
    FoundValues found;
    int64_t slot;
    const Type* type;
    Node* owner = nullptr;  ///< that gets the offsets; nullptr if no node does
  };

  int64_t error_of(int64_t slot);
  void wait_for(Pending pending) { pending_.push_back(std::move(pending)); }
  void gather_contents(const Sources& sources, const TakenRows& taken, Node* node,
                       const uint8_t* valid);
  void gather_fixed_width(const Sources& sources, const TakenRows& taken, Node* node);
  void gather_fields(const Sources& sources, const TakenRows& taken, Node* node);
  void gather_lists(const Sources& sources, const TakenRows& taken, Node* node,
                    const uint8_t* valid);
  void gather_runs(const Sources& sources, const TakenRows& taken, Node* node);
  void finish_values(Pending& pending, int64_t error, int64_t total);
  void append_offsets(const Pending& pending, int64_t total);
  DeviceArray gather_values(const DeviceArray& array, const TakenRows& values);

  KernelWork work_;
  ColumnGathers columns_;
  const int64_t slots_;
  int64_t numbers_ = 0;  ///< the address of an error and a total for each slot, and of two more
  int64_t next_slot_ = 0;
  std::vector<Pending> pending_;
};

int64_t DeviceGather::error_of(int64_t slot) {
  if (numbers_ == 0) {
    numbers_ = work_.upload(std::vector<int64_t>(static_cast<std::size_t>(2 * slots_ + 2)));
  }
  return numbers_ + 2 * slot * kIntegerSize;
}

void DeviceGather::gather(const Sources& sources, const TakenRows& taken, Node* node) {
  node->parts.length = taken.length;
  const uint8_t* valid = nullptr;
  if (sources.front().type().has_validity()) {
    const bool has_bitmap =
        std::any_of(sources.begin(), sources.end(),
                    [](const DeviceArray& source) { return source.known_null_count() != 0; });
    Buffer bits = has_bitmap ? columns_.add_bits(sources, taken, 0) : Buffer();
    valid = bits.data();
    node->parts.null_count = has_bitmap ? -1 : 0;
    node->parts.buffers.push_back(std::move(bits));
  }
  gather_contents(sources, taken, node, valid);
}

void DeviceGather::gather_contents(const Sources& sources, const TakenRows& taken, Node* node,
                                   const uint8_t* valid) {
  const Type& type = sources.front().type();
  switch (type.layout) {
    case Layout::kNull:
      node->parts.null_count = taken.length;
      return;
    case Layout::kBoolean:
      node->parts.buffers.push_back(columns_.add_bits(sources, taken, 1));
      return;
    case Layout::kFixedWidth:
      return gather_fixed_width(sources, taken, node);
    case Layout::kBinary:
    case Layout::kLargeBinary:
    case Layout::kList:
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
      return gather_lists(sources, taken, node, valid);
    case Layout::kFixedSizeList: {
      TakenRows values = taken;
      values.width *= type.list_size;
      values.length *= type.list_size;
      return gather(select_child(sources, 0), values, node->add_child());
    }
    case Layout::kSparseUnion:
      node->parts.buffers.push_back(columns_.add_elements(sources, taken, 0, 1));
      return gather_fields(sources, taken, node);
    case Layout::kStruct:
      return gather_fields(sources, taken, node);
    case Layout::kRunEndEncoded:
      return gather_runs(sources, taken, node);
    case Layout::kBinaryView:
    case Layout::kDenseUnion:
      raise_buffer_error("the rows of ", to_string(type), " on ", to_string(work_.device()),
                         " can only be gathered by the CPU: ",
                         type.layout == Layout::kBinaryView
                             ? "cast to a type with offsets, or copy them to the CPU first"
                             : "copy them to the CPU first");
  }
}

void DeviceGather::gather_fixed_width(const Sources& sources, const TakenRows& taken, Node* node) {
  const Type& type = sources.front().type();
  node->parts.buffers.push_back(columns_.add_elements(sources, taken, 1, type.byte_width));
  if (type.dictionary == nullptr) return;
  const auto used = std::find_if(sources.begin(), sources.end(),
                                 [](const DeviceArray& source) { return source.length() > 0; });
  const DeviceArray dictionary = (used != sources.end() ? *used : sources.front()).dictionary();
  for (const DeviceArray& source : sources) {
    if (source.length() == 0 || is_same_memory(source.dictionary(), dictionary)) continue;
    raise_buffer_error("the arrays of ", to_string(type), " on ", to_string(work_.device()),
                       " have different dictionaries, which only the CPU can unify: give them one "
                       "dictionary before they are copied to the device");
  }
  node->parts.dictionary = share_array(dictionary);
}

void DeviceGather::gather_fields(const Sources& sources, const TakenRows& taken, Node* node) {
  const auto count = static_cast<int64_t>(sources.front().type().children.size());
  for (int64_t i = 0; i < count; ++i) gather(select_child(sources, i), taken, node->add_child());
}

void DeviceGather::gather_lists(const Sources& sources, const TakenRows& taken, Node* node,
                                const uint8_t* valid) {
  const Type& type = sources.front().type();
  const bool is_list = !type.children.empty();
  const int64_t slot = next_slot_++;
  if (valid != nullptr) columns_.run();
  wait_for({is_list ? node->add_child() : node, is_list ? select_child(sources, 0) : Sources(),
            taken, find_lists(work_, sources, taken, valid, error_of(slot)), slot, &type, node});
}

void DeviceGather::gather_runs(const Sources& sources, const TakenRows& taken, Node* node) {
  const Type& type = sources.front().type();
  require_run_ends_fit(type, taken.length);
  const int64_t size = taken.length * type.children[0].byte_width;
  const std::shared_ptr<DeviceMemory> ends = work_.allocate(size);
  Node* const run_ends = node->add_child();
  run_ends->parts.length = taken.length;
  run_ends->parts.buffers = {Buffer(), to_buffer(ends, size)};
  const int64_t slot = next_slot_++;
  wait_for({node->add_child(), select_child(sources, 1), taken,
            find_runs(work_, sources, taken, ends->address(), error_of(slot)), slot, &type});
}

void DeviceGather::finish_levels() {
  for (columns_.run(); !pending_.empty(); columns_.run()) {
    for (const Pending& one : pending_) {
      if (one.found.offsets == nullptr) continue;
      work_.copy(reinterpret_cast<void*>(error_of(one.slot) + kIntegerSize),
                 one.found.offsets->address() + one.taken.length * kIntegerSize, kIntegerSize);
    }
    const std::vector<int64_t> numbers =
        work_.read(reinterpret_cast<const void*>(numbers_), 2 * slots_);
    for (Pending& one : std::exchange(pending_, {})) {
      const auto at = static_cast<std::size_t>(2 * one.slot);
      finish_values(one, numbers[at], numbers[at + 1]);
    }
  }
}

void DeviceGather::finish_values(Pending& pending, int64_t error, int64_t total) {
  if (error != 0) raise_malformed(*pending.type);
  TakenRows values{pending.taken.length, to_address(pending.found.first->address())};
  if (pending.found.offsets != nullptr) {
    values.length = total;
    values.starts = to_address(pending.found.offsets->address());
    values.ranges = pending.taken.length;
    append_offsets(pending, total);
  }
  if (pending.found.is_address) {
    pending.values->parts.buffers.push_back(columns_.add_bytes(values));
  } else {
    gather(pending.sources, values, pending.values);
  }
}

void DeviceGather::append_offsets(const Pending& pending, int64_t total) {
  if (pending.owner == nullptr) return;
  const Type& type = *pending.type;
  const int64_t itemsize = element_width(type, 1);
  require_fits(type, itemsize, total);
  const int64_t rows = pending.taken.length;
  std::vector<Buffer>& buffers = pending.owner->parts.buffers;
  const bool is_view = !layout_row(type.layout).has_offsets();
  const auto& offsets = pending.found.offsets;
  buffers.push_back(write_offsets_on_device(work_, offsets, is_view ? rows : rows + 1, itemsize));
  if (is_view) buffers.push_back(write_offsets_on_device(work_, offsets, rows, itemsize, true));
}

/// An array of numbers without nulls.
DeviceArray make_numbers(const char* dtype, Buffer elements, int64_t length, const Device& device,
                         OwnedEvent event = {}) {
  return DeviceArray::make_primitive(*find_dtype(dtype), length, std::move(elements), device,
                                     std::move(event));
}

/// The first `size` bytes of the data of a binary array, or the values of a list.
DeviceArray share_values(const DeviceArray& array, int64_t size) {
  if (!array.type().children.empty()) return array.child(0);
  Buffer bytes(array.storage(), array.buffer(2), size);
  return make_numbers("uint8", std::move(bytes), size, array.device());
}

DeviceArray DeviceGather::gather_values(const DeviceArray& array, const TakenRows& values) {
  if (array.type().children.empty()) {
    Buffer bytes = columns_.add_bytes(values);
    columns_.run();
    return make_numbers("uint8", std::move(bytes), values.length, work_.device(), work_.record());
  }
  const DeviceArray items = array.child(0);
  Node root;
  gather({items}, values, &root);
  return finish(copy_schema(*items.type().schema), root);
}

/// What the host has not measured, kernels do.
ListSizes DeviceGather::read_sizes(const DeviceArray& array, const FoundValues& found,
                                   int64_t slot) {
  const int64_t rows = array.length();
  const auto keep = [&](int64_t number, const void* source, int64_t size) {
    work_.copy(reinterpret_cast<void*>(numbers_ + number * kIntegerSize), source, size);
  };
  keep(2 * slot + 1, found.offsets->address() + rows * kIntegerSize, kIntegerSize);
  const int64_t own = 2 * slots_;  // of the two numbers of this array
  if (layout_row(array.type().layout).has_offsets() && rows > 0) {
    const int64_t itemsize = element_width(array.type(), 1);
    const uint8_t* const first =
        offset_pointer(work_.device(), array.buffer(1), array.offset() * itemsize);
    keep(own, first, itemsize);  // integers are little-endian
    keep(own + 1, offset_pointer(work_.device(), first, rows * itemsize), itemsize);
  }
  const std::vector<int64_t> numbers = work_.read(reinterpret_cast<const void*>(numbers_), own + 2);
  const auto at = [&](int64_t i) { return numbers[static_cast<std::size_t>(i)]; };
  if (at(2 * slot) != 0) raise_malformed(array.type());
  return {at(own), at(own + 1), at(2 * slot + 1), -1};
}

ListParts DeviceGather::split(const DeviceArray& array, bool empty_nulls) {
  const Type& type = array.type();
  const bool has_offsets = layout_row(type.layout).has_offsets();
  const int64_t rows = array.length();
  const int64_t itemsize = element_width(type, 1);
  const std::optional<ListSizes> known = measure_lists(array, empty_nulls);
  const TakenRows all{rows};
  const int64_t slot = next_slot_++;
  FoundValues found;
  if (!known || known->end - known->start != known->total) {
    Buffer valid;  // offsets and sizes of null views are undefined
    if ((empty_nulls || !has_offsets) && array.known_null_count() != 0) {
      valid = columns_.add_bits({array}, all, 0);
      columns_.run();
    }
    found = find_lists(work_, {array}, all, valid.data(), error_of(slot));
  }
  const auto [start, end, total, longest] = known ? *known : read_sizes(array, found, slot);
  require_fits(type, itemsize, total);
  const bool is_one_range = has_offsets && end - start == total;
  DeviceArray values = is_one_range || total == 0
                           ? share_values(array, end).slice(start, total)
                           : gather_values(array, {total, to_address(found.first->address()),
                                                   to_address(found.offsets->address()), rows});
  Buffer offsets = is_one_range && rows > 0
                       ? rebase_offsets_on_device(work_, array, start)
                       : write_offsets_on_device(work_, found.offsets, rows + 1, itemsize);
  const bool is_shared = offsets.owner() == array.storage();
  return {std::move(values),
          make_numbers(itemsize == kIntegerSize ? "int64" : "int32", std::move(offsets), rows + 1,
                       array.device(), is_shared ? OwnedEvent() : work_.record()),
          longest};
}

DeviceArray gather_all(OwnedSchema schema, const Sources& sources, const TakenRows& taken,
                       const DeviceArray* rows) {
  DeviceGather gather(sources.front().device(), sources.front().type());
  for (const DeviceArray& source : sources) gather.use(source);
  if (rows != nullptr) gather.use(*rows);
  Node root;
  gather.gather(sources, taken, &root);
  return gather.finish(std::move(schema), root);
}

}  // namespace

DeviceArray concatenate_on_device(OwnedSchema schema, const Sources& sources) {
  TakenRows all;
  for (const DeviceArray& source : sources) all.length = add_rows(all.length, source.length());
  return gather_all(std::move(schema), sources, all, nullptr);
}

DeviceArray take_on_device(OwnedSchema schema, const Sources& sources, const DeviceArray& rows) {
  const int64_t itemsize = rows.type().byte_width;
  const uint8_t* first = offset_pointer(rows.device(), rows.buffer(1), rows.offset() * itemsize);
  TakenRows taken{rows.length(), to_address(first)};
  taken.itemsize = itemsize;
  return gather_all(std::move(schema), sources, taken, &rows);
}

DeviceArray decode_run_ends_on_device(OwnedSchema schema, const DeviceArray& array) {
  DeviceGather gather(array.device(), array.type());
  gather.use(array);
  Node root;
  gather.decode(array, &root);
  return gather.finish(std::move(schema), root);
}

ListParts split_list_on_device(const DeviceArray& array, bool empty_nulls) {
  DeviceGather gather(array.device(), array.type());
  gather.use(array);
  return gather.split(array, empty_nulls);
}

ARROWDL_END_NAMESPACE
