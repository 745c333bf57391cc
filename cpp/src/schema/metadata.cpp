// Looks up the key-value metadata of a schema.
#include "schema/metadata.hpp"

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

std::optional<std::string_view> find_metadata(const ArrowSchema& schema, std::string_view key) {
  std::optional<std::string_view> found;
  visit_pairs(schema.metadata, [&](std::string_view name, std::string_view value) {
    if (name != key) return false;
    found = value;
    return true;
  });
  return found;
}

void visit_metadata(const ArrowSchema& schema,
                    const std::function<void(std::string_view, std::string_view)>& visit) {
  visit_pairs(schema.metadata, [&](std::string_view key, std::string_view value) {
    visit(key, value);
    return false;
  });
}

ARROWDL_END_NAMESPACE
