// Derives the buffers of a type from its layout.
#include "arrowdl/schema.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE

int64_t Type::buffer_count() const noexcept {
  const LayoutRow& row = layout_row(layout);
  return row.is_variadic ? -1 : row.buffer_count;
}

bool Type::has_validity() const noexcept { return layout_row(layout).has_validity(); }

ARROWDL_END_NAMESPACE
