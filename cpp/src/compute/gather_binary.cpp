// Gathers the rows of binary and strings, with offsets or as views.
#include <limits>
#include <map>

#include "arrowdl/error.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/elements.hpp"
#include "compute/gather_layouts.hpp"
#include "compute/offsets.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The bytes of `ranges` of the data buffers of `sources`. Raises ValueError for a missing one.
Buffer gather_bytes(const std::vector<DeviceArray>& sources, const std::vector<RowRange>& ranges) {
  std::vector<const uint8_t*> first;
  first.reserve(sources.size());
  for (const DeviceArray& source : sources) first.push_back(source.buffer_as<uint8_t>(2));
  for (const RowRange& range : ranges) {
    if (first[range.source] == nullptr) {
      raise_value_error("malformed ", to_string(sources[range.source].type()),
                        " array: its data is NULL where ", range.rows.length, " bytes should be");
    }
  }
  return gather_elements(first, ranges, count_rows(ranges), 1);
}

template <typename Offset>
void gather_offset_binary(const Selection& selection, ArrayParts* parts) {
  const std::vector<int64_t> limits(selection.sources.size(), kNoLimit);
  std::vector<RowRange> bytes;
  parts->buffers.push_back(gather_offsets<Offset>(selection, limits, &bytes));
  parts->buffers.push_back(gather_bytes(selection.sources, bytes));
}

}  // namespace

void gather_binary(const Selection& selection, ArrayParts* parts) {
  visit_offset(selection.type(),
               [&](auto zero) { gather_offset_binary<decltype(zero)>(selection, parts); });
}

namespace {

/// The data buffers that gathered views point into: shared with the sources, each once, and only
/// those that some row uses.
class SharedBuffers {
 public:
  explicit SharedBuffers(const Selection& selection)
      : selection_(selection), known_(selection.sources.size()) {}

  /// The index in the result of data buffer `index` of `source`.
  int32_t share(std::size_t source, int32_t index) {
    std::vector<int32_t>& known = known_[source];
    const DeviceArray& array = selection_.sources[source];
    if (known.empty()) known.resize(static_cast<std::size_t>(array.buffer_count()) - 3, -1);
    int32_t& shared = known[static_cast<std::size_t>(index)];
    if (shared < 0) shared = find_or_add(array, index);
    return shared;
  }

  void append_to(std::vector<Buffer>* buffers) const {
    int64_t* sizes = nullptr;
    Buffer size_buffer = allocate_elements(static_cast<int64_t>(buffers_.size()), &sizes);
    for (const Buffer& buffer : buffers_) {
      *sizes++ = buffer.size();
      buffers->push_back(buffer);
    }
    buffers->push_back(std::move(size_buffer));
  }

 private:
  int32_t find_or_add(const DeviceArray& array, int32_t index) {
    const int64_t size = read_data_size(array, index);
    const void* data = array.buffer(2 + index);
    const auto [at, is_new] =
        indexes_.try_emplace({data, size}, static_cast<int32_t>(buffers_.size()));
    if (!is_new) return at->second;
    if (buffers_.size() == std::numeric_limits<int32_t>::max()) {
      raise_buffer_error("the rows point into more than 2^31 - 1 data buffers: cast to ",
                         array.type().is_utf8 ? "large_string" : "large_binary", " first");
    }
    buffers_.emplace_back(array.storage(), data, size);
    return at->second;
  }

  const Selection& selection_;
  std::vector<std::vector<int32_t>> known_;  // by source and its index; -1: not shared yet
  std::map<std::pair<const void*, int64_t>, int32_t> indexes_;
  std::vector<Buffer> buffers_;
};

}  // namespace

void gather_binary_views(const Selection& selection, ArrayParts* parts) {
  ArrowBinaryViewRef* target = nullptr;
  parts->buffers.push_back(allocate_elements(selection.length, &target));
  SharedBuffers shared(selection);
  for (const RowRange& range : selection.ranges) {
    const DeviceArray& source = selection.sources[range.source];
    for (int64_t i = range.rows.start; i < range.rows.end(); ++i) {
      ArrowBinaryViewRef view = read_view(source, i);
      if (!is_inline(view)) view.buffer_index = shared.share(range.source, view.buffer_index);
      *target++ = view;
    }
  }
  shared.append_to(&parts->buffers);
}

ARROWDL_END_NAMESPACE
