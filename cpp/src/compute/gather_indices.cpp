// Gathers the indices of dictionary arrays and unifies their dictionaries.
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "arrowdl/error.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/elements.hpp"
#include "compute/encoded_rows.hpp"
#include "compute/gather_layouts.hpp"
#include "compute/same_memory.hpp"
#include "util/visit_integer.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The dictionaries that the selection uses, without duplicates of the same memory.
struct Dictionaries {
  std::vector<DeviceArray> distinct;
  std::vector<std::size_t> of_source;  ///< index into `distinct`; meaningless where unused
};

Dictionaries find_dictionaries(const Selection& selection) {
  Dictionaries found;
  found.of_source.resize(selection.sources.size());
  std::vector<bool> seen(selection.sources.size());
  for (const RowRange& range : selection.ranges) {
    if (seen[range.source]) continue;
    seen[range.source] = true;
    DeviceArray dictionary = selection.sources[range.source].dictionary();
    std::size_t i = 0;
    while (i < found.distinct.size() && !is_same_memory(found.distinct[i], dictionary)) ++i;
    found.of_source[range.source] = i;
    if (i == found.distinct.size()) found.distinct.push_back(std::move(dictionary));
  }
  if (found.distinct.empty()) found.distinct.push_back(selection.sources.front().dictionary());
  return found;
}

bool are_equal(const std::vector<EncodedRows>& dictionaries) {
  for (const EncodedRows& dictionary : dictionaries) {
    if (!(dictionary == dictionaries.front())) return false;
  }
  return true;
}

/// One dictionary of the distinct values of several, in the order of their first appearance.
struct UnifiedDictionary {
  std::vector<RowRange> values;
  int64_t length = 0;
  std::vector<std::vector<int64_t>> new_index;  ///< by old dictionary and old index
};

UnifiedDictionary unify(const std::vector<EncodedRows>& dictionaries) {
  UnifiedDictionary unified;
  std::unordered_map<std::string_view, int64_t> index_of;
  for (std::size_t d = 0; d < dictionaries.size(); ++d) {
    std::vector<int64_t>& new_index = unified.new_index.emplace_back();
    for (int64_t i = 0; i < dictionaries[d].length(); ++i) {
      const auto [at, is_new] = index_of.try_emplace(dictionaries[d][i], unified.length);
      if (is_new) {
        append_range(&unified.values, d, Range{i, 1});
        ++unified.length;
      }
      new_index.push_back(at->second);
    }
  }
  return unified;
}

template <typename Index>
Buffer renumber(const Selection& selection, const Dictionaries& dictionaries,
                const UnifiedDictionary& unified) {
  if (unified.length > 0 && static_cast<uint64_t>(unified.length - 1) >
                                static_cast<uint64_t>(std::numeric_limits<Index>::max())) {
    raise_buffer_error("the dictionaries have ", unified.length, " distinct values together, ",
                       "more than the indices of ", to_string(selection.type()),
                       " can count: cast to wider indices or decode them first");
  }
  Index* target = nullptr;
  Buffer indices = allocate_elements(selection.length, &target);
  for (const RowRange& range : selection.ranges) {
    const DeviceArray& source = selection.sources[range.source];
    const std::vector<int64_t>& new_index = unified.new_index[dictionaries.of_source[range.source]];
    const auto length = static_cast<int64_t>(new_index.size());
    const RowValidity is_valid(source);
    for (int64_t i = range.rows.start; i < range.rows.end(); ++i) {
      *target++ = !is_valid[i]
                      ? Index{0}
                      : static_cast<Index>(
                            new_index[static_cast<std::size_t>(read_index(source, i, length))]);
    }
  }
  return indices;
}

void gather_shared(const Selection& selection, const DeviceArray& dictionary, ArrayParts* parts) {
  parts->buffers.push_back(gather_elements(selection, 1, selection.type().byte_width));
  parts->dictionary = share_array(dictionary);
}

}  // namespace

std::optional<ChildRows> gather_indices(const Selection& selection, ArrayParts* parts) {
  Dictionaries dictionaries = find_dictionaries(selection);
  std::vector<DeviceArray>& distinct = dictionaries.distinct;
  if (distinct.size() == 1) {
    gather_shared(selection, distinct.front(), parts);
    return std::nullopt;
  }
  const std::vector<EncodedRows> encoded(distinct.begin(), distinct.end());
  if (are_equal(encoded)) {
    gather_shared(selection, distinct.front(), parts);
    return std::nullopt;
  }
  const Type& type = selection.type();
  if ((type.schema->flags & ARROW_FLAG_DICTIONARY_ORDERED) != 0) {
    raise_buffer_error("the arrays have different dictionaries and ", to_string(type),
                       " says that their order matters: make it unordered or decode it first");
  }
  UnifiedDictionary unified = unify(encoded);
  parts->buffers.push_back(visit_integer(type.schema->format, [&](auto zero) {
    return renumber<decltype(zero)>(selection, dictionaries, unified);
  }));
  return ChildRows{std::move(distinct), std::move(unified.values)};
}

ARROWDL_END_NAMESPACE
