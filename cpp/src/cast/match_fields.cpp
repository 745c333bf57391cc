// Matches the fields of two structs.
#include "cast/match_fields.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

ARROWDL_BEGIN_NAMESPACE

std::vector<std::size_t> match_fields(const Type& from, const Type& to) {
  const std::size_t count = to.children.size();
  std::vector<std::size_t> by_position(count);
  std::unordered_map<std::string_view, std::size_t> positions;
  for (std::size_t i = 0; i < count; ++i) {
    by_position[i] = i;
    positions.try_emplace(from.children[i].name(), i);
  }
  std::vector<std::size_t> by_name(count, count);
  bool are_elsewhere = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = to.children[i].name();
    if (name == from.children[i].name()) {
      by_name[i] = i;
    } else if (const auto position = positions.find(name); position != positions.end()) {
      by_name[i] = position->second;
      are_elsewhere = true;
    }
  }
  if (!are_elsewhere) return by_position;
  std::vector<std::size_t> sorted = by_name;
  std::sort(sorted.begin(), sorted.end());
  return sorted == by_position ? by_name : std::vector<std::size_t>();
}

ARROWDL_END_NAMESPACE
