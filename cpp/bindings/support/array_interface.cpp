// Translates between dtypes and the typestr of the array interfaces.
#include "support/array_interface.hpp"

#include <charconv>

#include "arrowdl/error.hpp"

namespace arrowdl::python {
namespace {

struct ElementKind {
  char letter;
  DLDataTypeCode code;
};

constexpr ElementKind kElementKinds[] = {
    {'b', kDLBool}, {'i', kDLInt}, {'u', kDLUInt}, {'f', kDLFloat}, {'c', kDLComplex}};

}  // namespace

const Dtype* find_dtype_of_typestr(std::string_view text) {
  if (text.size() < 3 || std::string_view("<|=").find(text[0]) == std::string_view::npos) {
    return nullptr;
  }
  int size = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data() + 2, end, size);
  if (error != std::errc() || parsed != end || size < 1 || size > 16) return nullptr;
  for (const ElementKind& kind : kElementKinds) {
    if (kind.letter == text[1]) {
      return find_dtype(
          DLDataType{static_cast<uint8_t>(kind.code), static_cast<uint8_t>(size * 8), 1});
    }
  }
  return nullptr;
}

std::string to_typestr(const Dtype& dtype) {
  for (const ElementKind& kind : kElementKinds) {
    if (kind.code != dtype.code || dtype.bits < 8) continue;
    return concat(dtype.itemsize() == 1 ? '|' : '<', kind.letter, dtype.itemsize());
  }
  raise_buffer_error("an array interface has no typestr for ", dtype.name, ": ", kSupportedTypes,
                     "; use __dlpack__, which has this type");
}

}  // namespace arrowdl::python
