// The Python class Schema: an ArrowSchema to inspect and to export.
#pragma once

#include <memory>

#include "arrowdl/owned.hpp"
#include "support/module.hpp"
#include "support/values.hpp"

namespace arrowdl::python {

/// One node of a schema, which it keeps alive.
class Schema {
 public:
  Schema() = default;
  explicit Schema(OwnedSchema schema);
  const ArrowSchema& node() const noexcept { return *node_; }
  Schema child(const ArrowSchema* node) const { return Schema(root_, node); }

 private:
  Schema(std::shared_ptr<const OwnedSchema> root, const ArrowSchema* node)
      : root_(std::move(root)), node_(node) {}

  std::shared_ptr<const OwnedSchema> root_;
  const ArrowSchema* node_ = nullptr;
};

void register_schema(pybind11::module_& m);

}  // namespace arrowdl::python

ARROWDL_CAST_BY_VALUE(arrowdl::python::Schema)
