// Writes the type of a schema, and finds its facts.
#include "arrowdl/error.hpp"
#include "arrowdl/schema.hpp"
#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

const char* time_unit(char code) {
  switch (code) {
    case 's':
      return "s";
    case 'm':
      return "ms";
    case 'u':
      return "us";
    default:
      return "ns";
  }
}

/// Temporal formats: "tsu:UTC" is timestamp[us, UTC].
std::string describe_temporal(const std::string_view format) {
  if (format == "tdD") return "date32";
  if (format == "tdm") return "date64";
  if (format == "tiM") return "month_interval";
  if (format == "tiD") return "day_time_interval";
  if (format == "tin") return "month_day_nano_interval";
  const char* unit = time_unit(format[2]);
  if (format[1] == 't') {
    return concat(format[2] == 's' || format[2] == 'm' ? "time32[" : "time64[", unit, "]");
  }
  if (format[1] == 'D') return concat("duration[", unit, "]");
  const std::string_view zone = format.substr(4);
  return zone.empty() ? concat("timestamp[", unit, "]")
                      : concat("timestamp[", unit, ", ", zone, "]");
}

/// "d:10,2", "d:10,2,128": precision, scale and, where the producer states them, bits.
std::string describe_decimal(const Type& type) {
  const std::string_view format = type.schema->format;
  const std::size_t end = format.find(',', format.find(',') + 1);
  return concat("decimal", type.byte_width * 8, "(", format.substr(2, end - 2), ")");
}

std::string describe_fixed_width(const Type& type) {
  const std::string_view format = type.schema->format;
  if (format[0] == 't') return describe_temporal(format);
  if (format[0] == 'd') return describe_decimal(type);
  if (type.is_fixed_size_binary) return concat("fixed_size_binary[", type.byte_width, "]");
  return find_dtype_of_format(format)->name;
}

std::string describe_children(const char* name, const Type& type) {
  std::string text = concat(name, "<");
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    const Type& child = type.children[i];
    text += concat(i == 0 ? "" : ", ", child.name(), ": ", to_string(child));
  }
  return text + ">";
}

/// "large_string" for the layout "large_binary" of UTF-8.
std::string describe_binary(const Type& type) {
  std::string name = layout_row(type.layout).name;
  if (type.is_utf8) name.replace(name.find("binary"), 6, "string");
  return name;
}

std::string describe_storage(const Type& type) {
  const char* name = layout_row(type.layout).name;
  switch (type.layout) {
    case Layout::kNull:
    case Layout::kBoolean:
      return name;
    case Layout::kFixedWidth:
      return describe_fixed_width(type);
    case Layout::kBinary:
    case Layout::kLargeBinary:
    case Layout::kBinaryView:
      return describe_binary(type);
    case Layout::kList:
      if (type.is_map) return describe_children("map", type.children[0]);
      [[fallthrough]];
    case Layout::kLargeList:
    case Layout::kListView:
    case Layout::kLargeListView:
      return concat(name, "<", to_string(type.children[0]), ">");
    case Layout::kFixedSizeList:
      return concat(name, "<", to_string(type.children[0]), ">[", type.list_size, "]");
    case Layout::kStruct:
    case Layout::kSparseUnion:
    case Layout::kDenseUnion:
      return describe_children(name, type);
    case Layout::kRunEndEncoded:
      return concat(name, "<", to_string(type.children[0]), ", ", to_string(type.children[1]), ">");
  }
  return name;
}

template <typename Extents>
std::string describe_shape(const Extents& extents) {
  std::string text = "(";
  for (std::size_t i = 0; i < extents.size(); ++i) {
    text += concat(i == 0 ? "" : ", ", extents[i]);
  }
  return text + ")";
}

}  // namespace

int64_t Type::buffer_count() const noexcept {
  const LayoutRow& row = layout_row(layout);
  return row.is_variadic ? -1 : row.buffer_count;
}

bool Type::has_validity() const noexcept { return layout_row(layout).has_validity(); }

std::string to_string(const Type& type) {
  if (type.dictionary != nullptr) {
    return concat("dictionary<", describe_storage(type), ", ", to_string(*type.dictionary), ">");
  }
  switch (type.extension) {
    case Extension::kDtype:
      return std::string(find_metadata(*type.schema, kExtensionNameKey).value_or(""));
    case Extension::kFixedShapeTensor: {
      std::string text = concat("fixed_shape_tensor<", to_string(type.children[0]), ">",
                                describe_shape(type.tensor->shape));
      if (!type.tensor->permutation.empty()) {
        text += concat(", permutation ", describe_shape(type.tensor->permutation));
      }
      return text;
    }
    case Extension::kVariableShapeTensor:
      return concat("variable_shape_tensor<", to_string(type.children[0].children[0]), ", ",
                    type.children[1].list_size, " dims>");
    case Extension::kNone:
    case Extension::kShapedLists:
    case Extension::kRefused:
      break;
  }
  const std::optional<std::string_view> name = find_metadata(*type.schema, kExtensionNameKey);
  return name ? concat(*name, "<", describe_storage(type), ">") : describe_storage(type);
}

ARROWDL_END_NAMESPACE
