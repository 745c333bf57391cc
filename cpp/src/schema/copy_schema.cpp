// Copies schemas, and tells a lack of memory from other errors.
#include "schema/copy_schema.hpp"

#include <cerrno>
#include <new>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

OwnedSchema copy_schema(const ArrowSchema& schema) {
  OwnedSchema copy;
  const int code = ArrowSchemaDeepCopy(&schema, copy.get());
  if (code == ENOMEM) throw std::bad_alloc();
  if (code != NANOARROW_OK) raise_value_error("cannot copy an Arrow schema: error ", code);
  return copy;
}

void replace_child(OwnedSchema& schema, OwnedSchema child) {
  ArrowSchema* place = schema->children[0];
  OwnedSchema named = copy_schema(*child.get());
  const int code = ArrowSchemaSetName(named.get(), place->name == nullptr ? "" : place->name);
  if (code != NANOARROW_OK) throw std::bad_alloc();
  named->flags = place->flags;
  place->release(place);
  named.move(place);
}

ARROWDL_END_NAMESPACE
