// Writes the messages of errors.
#include "arrowdl/error.hpp"

#include <sstream>

ARROWDL_BEGIN_NAMESPACE
namespace detail {

void write_literal(std::ostream& out, const void* text) { out << static_cast<const char*>(text); }

std::string join_text(std::initializer_list<TextPart> parts) {
  std::ostringstream out;
  out.exceptions(std::ios_base::badbit);  // raises without memory, rather than cut the text
  for (const TextPart& part : parts) part.write(out, part.value);
  return out.str();
}

}  // namespace detail
ARROWDL_END_NAMESPACE
