// Writes a DeviceArray as text and as HTML.
#include <utility>
#include <vector>

#include "arrowdl/error.hpp"
#include "classes/device_array_methods.hpp"

namespace arrowdl::python {
namespace {

std::string describe_nulls(const DeviceArray& array) {
  try {
    const bool waits = !is_host_readable(array.device());
    const int64_t count = waits ? array.known_null_count() : array.null_count();
    if (count < 0) return "nulls not counted";
    return count == 0 ? "no nulls" : concat(count, count == 1 ? " null" : " nulls");
  } catch (const Error&) {
    return "nulls not counted";  // the bitmap cannot be waited for
  }
}

/// The address of the first element, for comparison with a tensor's data_ptr().
const void* find_address(const DeviceArray& array) {
  const Type& type = array.type();
  if (type.layout == Layout::kFixedSizeList) return find_address(array.child(0));
  if (type.layout == Layout::kFixedWidth && array.buffer(1) != nullptr) {
    return array.buffer_as<uint8_t>(1) + array.offset() * type.byte_width;
  }
  return array.buffer_count() > 1 ? array.buffer(1) : nullptr;
}

std::string escape_html(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::vector<std::pair<const char*, std::string>> list_facts(const DeviceArray& array) {
  std::vector<std::pair<const char*, std::string>> facts = {
      {"type", to_string(array.type())},
      {"rows", concat(array.length(), array.length() == 1 ? " row" : " rows")},
      {"device", to_string(array.device())},
      {"nulls", describe_nulls(array)},
  };
  if (const void* address = find_address(array); address != nullptr) {
    facts.emplace_back("address", concat("at ", address));
  }
  if (array.sync_event()) facts.emplace_back("pending", "work may be pending");
  return facts;
}

}  // namespace

std::string describe(const DeviceArray& array) {
  std::string text = "<arrowdl.DeviceArray";
  const char* separator = " ";
  for (const auto& [name, fact] : list_facts(array)) {
    text += concat(separator, fact);
    separator = ", ";
  }
  return text + ">";
}

std::string describe_html(const DeviceArray& array) {
  std::string text = "<table><caption>arrowdl.DeviceArray</caption>";
  for (const auto& [name, fact] : list_facts(array)) {
    text += concat("<tr><th>", name, "</th><td>", escape_html(fact), "</td></tr>");
  }
  return text + "</table>";
}

}  // namespace arrowdl::python
