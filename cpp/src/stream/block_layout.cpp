// Chooses the columns of a packed stream, and makes their types and their padding.
#include "stream/block_layout.hpp"

#include <algorithm>
#include <numeric>

#include "arrowdl/error.hpp"
#include "arrowdl/owned.hpp"
#include "compute/allocate_elements.hpp"
#include "schema/make_schema.hpp"
#include "stream/select_columns.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// What a processor has in its own cache.
constexpr int64_t kArrayBytes = 1 << 20;

/// By the number of the AddedColumn.
constexpr const char* kAddedColumns[] = {"position_ids", "segment_ids", "cu_seqlens",
                                         "resume_from"};
static_assert(std::size(kAddedColumns) == static_cast<std::size_t>(AddedColumn::kResumeFrom) + 1,
              "one name per AddedColumn, in its order");

bool is_fixed_size_list(const Type& type) {
  return type.layout == Layout::kFixedSizeList && type.dtype == nullptr;
}

bool is_variable_list(const Type& type) {
  return type.layout == Layout::kLargeList || type.layout == Layout::kListView ||
         type.layout == Layout::kLargeListView || (type.layout == Layout::kList && !type.is_map);
}

/// Whether items of `type` have one size, so that padding can follow them.
bool has_fixed_width(const Type& type) {
  if (type.dictionary != nullptr) return false;
  if (type.layout == Layout::kFixedSizeList) return has_fixed_width(type.children[0]);
  return type.layout == Layout::kBoolean || type.layout == Layout::kFixedWidth;
}

void require_packable(const Type& column) {
  if (!is_fixed_size_list(column) && !is_variable_list(column)) {
    raise_type_error("column \"", column.name(), "\" is of ", to_string(column),
                     ": lists, list views and fixed-size lists can be packed");
  }
  if (!has_fixed_width(column.children[0])) {
    raise_type_error("column \"", column.name(), "\" is of ", to_string(column),
                     ": items that can be packed have a fixed width, such as numbers, bools, times "
                     "and fixed-size lists of those; decode dictionaries first");
  }
}

/// Whether `column` is packed alongside `tokens` if nothing says which columns are.
bool is_aligned(const Type& column, const Type& tokens) {
  const bool is_alike =
      is_variable_list(column) || (is_fixed_size_list(column) && is_fixed_size_list(tokens) &&
                                   column.list_size == tokens.list_size);
  return is_alike && has_fixed_width(column.children[0]);
}

/// The column `name`, which can be packed.
std::size_t find_packable(const Type& type, const std::string& name) {
  const auto column = static_cast<std::size_t>(find_column(type, name));
  require_packable(type.children[column]);
  return column;
}

/// The columns that are packed, the tokens first.
std::vector<std::size_t> choose_packed(const Type& type, const PackOptions& options) {
  require_columns(type);
  const std::size_t tokens = find_packable(type, options.column);
  std::vector<std::size_t> chosen{tokens};
  const auto choose = [&](std::size_t column) {
    const bool is_new = std::find(chosen.begin(), chosen.end(), column) == chosen.end();
    if (is_new) chosen.push_back(column);
  };
  for (const std::string& name : options.aligned) choose(find_packable(type, name));
  for (std::size_t i = 0; i < type.children.size() && !options.has_aligned; ++i) {
    if (is_aligned(type.children[i], type.children[tokens])) choose(i);
  }
  return chosen;
}

/// The dtype of the innermost items; nullptr if no tensor has them.
const Dtype* find_item_dtype(const Type& type) {
  if (type.layout == Layout::kBoolean) return find_dtype("bool");
  if (type.dtype != nullptr || type.layout != Layout::kFixedSizeList) return type.dtype;
  return find_item_dtype(type.children[0]);
}

/// `size` bytes of `element` again and again.
Buffer repeat_element(const std::array<uint8_t, 16>& element, std::size_t itemsize, int64_t count,
                      int64_t width) {
  uint8_t* target = nullptr;
  Buffer bytes = allocate_elements(count, width, &target);
  for (int64_t i = 0; i < bytes.size(); ++i) {
    target[i] = element[static_cast<std::size_t>(i) % itemsize];
  }
  return bytes;
}

/// `count` items of `type`, whose innermost items are `element`.
OwnedArray make_padding(const Type& type, std::size_t itemsize, int64_t count,
                        const std::array<uint8_t, 16>& element) {
  ArrayParts parts;
  parts.length = count;
  parts.buffers.push_back(Buffer());
  if (type.layout == Layout::kFixedSizeList) {
    int64_t items = 0;
    if (!checked_multiply(count, type.list_size, &items)) items = -1;  // no memory has this size
    parts.children.push_back(make_padding(type.children[0], itemsize, items, element));
  } else if (type.layout == Layout::kBoolean) {
    std::array<uint8_t, 16> bits{};
    bits[0] = element[0] == 0 ? 0 : 0xFF;
    parts.buffers.push_back(repeat_element(bits, 1, bitmap_size(count), 1));
  } else {
    parts.buffers.push_back(repeat_element(element, itemsize, count, type.byte_width));
  }
  return make_array(std::move(parts));
}

DeviceArray make_padding(const Type& items, const PackOptions& options, std::size_t column) {
  std::array<uint8_t, 16> element{};
  for (const PackPadding& padding : options.padding) {
    if (padding.column == column) element = padding.element;
  }
  const Dtype* dtype = find_item_dtype(items);
  const auto itemsize = static_cast<std::size_t>(dtype == nullptr ? 1 : dtype->itemsize());
  return DeviceArray::import(copy_schema(*items.schema),
                             make_padding(items, itemsize, options.length, element));
}

AddedColumn find_added(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kAddedColumns); ++i) {
    if (name == kAddedColumns[i]) return static_cast<AddedColumn>(i);
  }
  raise_value_error("add= has \"", name, "\": packing adds \"", kAddedColumns[0], "\", \"",
                    kAddedColumns[1], "\", \"", kAddedColumns[2], "\" and \"", kAddedColumns[3],
                    "\"");
}

OwnedSchema make_list_schema(const std::string& format, OwnedSchema item, const char* name) {
  std::vector<OwnedSchema> items;
  items.push_back(rename_schema(std::move(item), "item"));
  return make_nested_schema(format.c_str(), std::move(items), name);
}

OwnedSchema make_added_schema(AddedColumn column, const std::string& block_format) {
  const char* name = kAddedColumns[static_cast<std::size_t>(column)];
  const bool is_position = column == AddedColumn::kResumeFrom;
  const std::string format = is_position                         ? "+w:3"
                             : column == AddedColumn::kCuSeqlens ? "+l"
                                                                 : block_format;
  return make_list_schema(format, make_schema(*find_dtype(is_position ? "int64" : "int32")), name);
}

std::vector<AddedColumn> choose_added(const Type& type, const PackOptions& options) {
  std::vector<AddedColumn> added;
  for (const std::string& name : options.added) {
    const AddedColumn column = find_added(name);
    if (std::find(added.begin(), added.end(), column) != added.end()) {
      raise_value_error("add= has \"", name, "\" twice");
    }
    for (const Type& child : type.children) {
      if (child.name() == name) {
        raise_value_error("the stream has a column \"", name,
                          "\" already: leave it out with select(), or ours with add=");
      }
    }
    added.push_back(column);
  }
  return added;
}

std::shared_ptr<const ParsedSchema> make_stream_schema(const Type& type,
                                                       const BlockLayout& layout) {
  const std::string block_format = concat("+w:", layout.length);
  std::vector<OwnedSchema> columns;
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    const Type& column = type.children[i];
    const bool is_packed = layout.is_packed(i);
    columns.push_back(make_list_schema(
        is_packed ? block_format : "+l",
        copy_schema(is_packed ? *column.children[0].schema : *column.schema), column.name()));
  }
  for (const AddedColumn column : layout.added) {
    columns.push_back(make_added_schema(column, block_format));
  }
  return share_schema(make_nested_schema("+s", std::move(columns), type.name()));
}

}  // namespace

std::vector<PackedColumn> find_packed_columns(const Type& type, const PackOptions& options) {
  std::vector<PackedColumn> columns;
  for (const std::size_t i : choose_packed(type, options)) {
    columns.push_back({i, find_item_dtype(type.children[i].children[0])});
  }
  return columns;
}

BlockLayout make_block_layout(const Type& type, const PackOptions& options) {
  BlockLayout layout;
  layout.length = options.length;
  layout.packed = choose_packed(type, options);
  layout.added = choose_added(type, options);
  for (const AddedColumn added : layout.added) {
    if (added != AddedColumn::kPositionIds) continue;
    layout.indices.resize(static_cast<std::size_t>(options.length));
    std::iota(layout.indices.begin(), layout.indices.end(), 0);
  }
  layout.padding.resize(type.children.size());
  // Added columns have 4 bytes for each item.
  int64_t block_bytes = options.length * 4 * static_cast<int64_t>(layout.added.size());
  for (const std::size_t i : layout.packed) {
    layout.padding[i] = make_padding(type.children[i].children[0], options, i);
    block_bytes += layout.padding[i].nbytes();
  }
  layout.array_length = std::max<int64_t>(1, kArrayBytes / std::max<int64_t>(1, block_bytes));
  layout.schema = make_stream_schema(type, layout);
  return layout;
}

ARROWDL_END_NAMESPACE
