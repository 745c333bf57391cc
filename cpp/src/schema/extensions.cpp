// The table of extension types.
#include "schema/extensions.hpp"

#include <iterator>

#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

// Sources: Arrow "Canonical Extension Types"; the types that each library exports, by running it.
constexpr ExtensionRow kExtensions[] = {
    {"arrow.fixed_shape_tensor", Reading::kTensor, {}},
    {"arrow.variable_shape_tensor", Reading::kTensor, {}},
    {"arrow.json", Reading::kStorage, {}},                   // the bytes of the text
    {"arrow.timestamp_with_offset", Reading::kStorage, {}},  // a struct: UTC, minutes
    {"arrow.uuid", Reading::kStorage, {}},                   // (n, 16) uint8
    {"arrow.opaque", Reading::kRefused,
     "only its vendor knows what its bytes mean: cast the column in the engine that it is from, in "
     "DuckDB HUGEINT as BIGINT and TIMETZ as TIME, or leave it out"},
    {"arrow.parquet.variant", Reading::kRefused,
     "each value has a type of its own: extract typed fields in the engine that it is from, such "
     "as "
     "variant_get() of Spark, or leave it out"},
    {"awkward", Reading::kStorage, {}},
    {"daft.super_extension", Reading::kNoBytes,
     "daft pickles Python objects: cast the column in daft to a type of numbers, or leave it out"},
    {"datasets.features.features.Array2DExtensionType", Reading::kShapedLists, {}},
    {"datasets.features.features.Array3DExtensionType", Reading::kShapedLists, {}},
    {"datasets.features.features.Array4DExtensionType", Reading::kShapedLists, {}},
    {"datasets.features.features.Array5DExtensionType", Reading::kShapedLists, {}},
    {"geoarrow.*", Reading::kStorage, {}},  // points are (n, 2), WKB the bytes of each shape
    {"lance.bfloat16", Reading::kDtype, "bfloat16"},
    {"pandas.interval", Reading::kStorage, {}},  // a struct: left, right
    {"pandas.period", Reading::kStorage, {}},    // int64: periods since 1970
    {"ray.data.arrow_pickled_object", Reading::kRefused,
     "Ray pickles Python objects: map the column to numbers in Ray, or leave it out"},
    {"ray.data.arrow_tensor", Reading::kShapedLists, {}},
    {"ray.data.arrow_tensor_v2", Reading::kShapedLists, {}},
    {"ray.data.arrow_variable_shaped_tensor", Reading::kStorage, {}},  // a struct: data, shape
    {"vortex.*", Reading::kStorage, {}},
};

constexpr bool is_prefix(const ExtensionRow& row) { return row.name.back() == '*'; }

constexpr bool is_named(const ExtensionRow& row, std::string_view name) {
  if (!is_prefix(row)) return row.name == name;
  const std::size_t size = row.name.size() - 1;
  return name.substr(0, size) == row.name.substr(0, size);
}

constexpr bool every_row_is_whole() {
  for (const ExtensionRow& row : kExtensions) {
    const bool needs_note = row.reading == Reading::kDtype || row.reading == Reading::kNoBytes ||
                            row.reading == Reading::kRefused;
    if (row.name.empty() || needs_note == row.note.empty()) return false;
    int found = 0;
    for (const ExtensionRow& other : kExtensions) found += is_named(other, row.name) ? 1 : 0;
    if (found != 1) return false;
  }
  return true;
}
static_assert(every_row_is_whole(), "each name is of one row, with a note where one is needed");

}  // namespace

const ExtensionRow* find_extension(std::string_view name) noexcept {
  for (const ExtensionRow& row : kExtensions) {
    if (is_named(row, name)) return &row;
  }
  return nullptr;
}

ARROWDL_END_NAMESPACE
