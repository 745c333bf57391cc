// The table of dtypes.
#include "arrowdl/dtype.hpp"

#include <iterator>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

// The order matters only to find_dtype_of_format, which takes the first row without an extension.
// Sources of the NaNs: IEEE 754; dlpack.h has the names of ml_dtypes, whose README lists the
// encodings.
constexpr Dtype kDtypes[] = {
    {"int8", kDLInt, 8, "c", nullptr, 0},
    {"int16", kDLInt, 16, "s", nullptr, 0},
    {"int32", kDLInt, 32, "i", nullptr, 0},
    {"int64", kDLInt, 64, "l", nullptr, 0},
    {"uint8", kDLUInt, 8, "C", nullptr, 0},
    {"uint16", kDLUInt, 16, "S", nullptr, 0},
    {"uint32", kDLUInt, 32, "I", nullptr, 0},
    {"uint64", kDLUInt, 64, "L", nullptr, 0},
    {"float16", kDLFloat, 16, "e", nullptr, 0x7E00},
    {"float32", kDLFloat, 32, "f", nullptr, 0x7FC00000},
    {"float64", kDLFloat, 64, "g", nullptr, 0x7FF8000000000000},
    {"bool", kDLBool, 8, "c", "arrow.bool8", 0},
    {"bfloat16", kDLBfloat, 16, "w:2", "arrowdl.bfloat16", 0x7FC0},
    {"float8_e3m4", kDLFloat8_e3m4, 8, "w:1", "arrowdl.float8_e3m4", 0x78},
    {"float8_e4m3", kDLFloat8_e4m3, 8, "w:1", "arrowdl.float8_e4m3", 0x7C},
    {"float8_e4m3b11fnuz", kDLFloat8_e4m3b11fnuz, 8, "w:1", "arrowdl.float8_e4m3b11fnuz", 0x80},
    {"float8_e4m3fn", kDLFloat8_e4m3fn, 8, "w:1", "arrowdl.float8_e4m3fn", 0x7F},
    {"float8_e4m3fnuz", kDLFloat8_e4m3fnuz, 8, "w:1", "arrowdl.float8_e4m3fnuz", 0x80},
    {"float8_e5m2", kDLFloat8_e5m2, 8, "w:1", "arrowdl.float8_e5m2", 0x7E},
    {"float8_e5m2fnuz", kDLFloat8_e5m2fnuz, 8, "w:1", "arrowdl.float8_e5m2fnuz", 0x80},
    {"float8_e8m0fnu", kDLFloat8_e8m0fnu, 8, "w:1", "arrowdl.float8_e8m0fnu", 0xFF},
    {"float4_e2m1fn_x2", kDLFloat4_e2m1fn, 4, "w:1", "arrowdl.float4_e2m1fn_x2", 0, 2},
    {"float4_e2m1fn", kDLFloat4_e2m1fn, 4, "w:1", "arrowdl.float4_e2m1fn", 0, 1, 2},
    {"int2", kDLInt, 2, "w:1", "arrowdl.int2", 0, 1, 4},
    {"int4", kDLInt, 4, "w:1", "arrowdl.int4", 0, 1, 2},
    {"uint2", kDLUInt, 2, "w:1", "arrowdl.uint2", 0, 1, 4},
    {"uint4", kDLUInt, 4, "w:1", "arrowdl.uint4", 0, 1, 2},
    {"float4_e2m1fn_padded", kDLFloat4_e2m1fn, 4, "w:1", "arrowdl.float4_e2m1fn_padded", 0},
    {"float6_e2m3fn_padded", kDLFloat6_e2m3fn, 6, "w:1", "arrowdl.float6_e2m3fn_padded", 0},
    {"float6_e3m2fn_padded", kDLFloat6_e3m2fn, 6, "w:1", "arrowdl.float6_e3m2fn_padded", 0},
    {"int2_padded", kDLInt, 2, "w:1", "arrowdl.int2_padded", 0},
    {"int4_padded", kDLInt, 4, "w:1", "arrowdl.int4_padded", 0},
    {"uint2_padded", kDLUInt, 2, "w:1", "arrowdl.uint2_padded", 0},
    {"uint4_padded", kDLUInt, 4, "w:1", "arrowdl.uint4_padded", 0},
    {"complex64", kDLComplex, 64, "+w:2", "arrowdl.complex64", 0x7FC00000},
    {"complex128", kDLComplex, 128, "+w:2", "arrowdl.complex128", 0x7FF8000000000000},
};

constexpr bool every_row_is_whole_bytes() {
  for (const Dtype& row : kDtypes) {
    const int64_t size = row.itemsize();
    if (size <= 0 || size > 16 || (size & (size - 1)) != 0) return false;
    if (row.is_padded() && (row.bits > 8 || row.lanes * row.values != 1)) return false;
  }
  return true;
}
static_assert(every_row_is_whole_bytes(), "an element takes 1, 2, 4, 8 or 16 bytes");

constexpr bool every_float_has_its_nan() {
  for (const Dtype& row : kDtypes) {
    if (row.is_floating() != (row.nan != 0)) return false;
    if (row.is_floating() && row.bits > (row.code == kDLComplex ? 128 : 64)) return false;
  }
  return true;
}
static_assert(every_float_has_its_nan(), "a floating dtype has a NaN, of 64 bits at most");

constexpr const char* kCodeNames[] = {
    "int",
    "uint",
    "float",
    "opaque handle",
    "bfloat",
    "complex",
    "bool",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
};
static_assert(sizeof(kCodeNames) / sizeof(kCodeNames[0]) == kDLFloat4_e2m1fn + 1,
              "a name for every DLPack type code");

}  // namespace

const Dtype* Dtypes::begin() const noexcept { return std::begin(kDtypes); }

const Dtype* Dtypes::end() const noexcept { return std::end(kDtypes); }

const Dtype* find_dtype(DLDataType type, bool is_padded) noexcept {
  for (const Dtype& row : kDtypes) {
    const bool is_same = row.code == type.code && row.bits == type.bits && row.lanes == type.lanes;
    if (is_same && (row.bits >= 8 || row.is_padded() == is_padded)) return &row;
  }
  return nullptr;
}

const Dtype* find_dtype(std::string_view name) noexcept {
  for (const Dtype& row : kDtypes) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

const Dtype* find_dtype_of_format(std::string_view format) noexcept {
  for (const Dtype& row : kDtypes) {
    if (row.extension == nullptr && format == row.format) return &row;
  }
  return nullptr;
}

const Dtype* find_dtype_of_extension(std::string_view extension) noexcept {
  for (const Dtype& row : kDtypes) {
    if (row.extension != nullptr && extension == row.extension) return &row;
  }
  return nullptr;
}

std::string to_string(DLDataType type) {
  if (const Dtype* row = find_dtype(type); row != nullptr) return row->name;
  const char* code = type.code <= kDLFloat4_e2m1fn ? kCodeNames[type.code] : nullptr;
  std::string name = code != nullptr
                         ? concat(code, " of ", int{type.bits}, " bits")
                         : concat("type code ", int{type.code}, " of ", int{type.bits}, " bits");
  return type.lanes == 1 ? name : concat(name, " with ", type.lanes, " lanes");
}

ARROWDL_END_NAMESPACE
