// How columns become tensors: nulls, lists, dtypes and matrices, for all columns or for each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrowdl/list_tensors.hpp"
#include "arrowdl/nulls.hpp"
#include "arrowdl/schema.hpp"
#include "cast/cast_dtype.hpp"

namespace arrowdl::python {

enum class Ragged { kJagged, kPadded, kOffsets };

constexpr std::pair<const char*, Nulls::Kind> kNullPolicies[] = {
    {"raise", Nulls::kRaise}, {"fill", Nulls::kFill}, {"nan", Nulls::kNan}, {"mask", Nulls::kKeep}};
constexpr std::pair<const char*, Ragged> kRaggedForms[] = {
    {"jagged", Ragged::kJagged}, {"padded", Ragged::kPadded}, {"offsets", Ragged::kOffsets}};

/// What padded rows end with.
struct PadValue {
  Number number = int64_t{0};
  std::string text = {};  ///< as it was given: "pad_value=1"
};

/// How one column becomes a tensor.
struct ColumnForm {
  Nulls nulls;
  Ragged ragged = Ragged::kJagged;
  const Dtype* dtype = nullptr;                ///< that numbers are cast to; nullptr: their own
  CastWhich cast_which = CastWhich::kNumbers;  ///< which values `dtype` is for
  const PadValue* pad_value = nullptr;         ///< borrowed; nullptr: zeros
  int64_t max_length = -1;                     ///< of padded rows; -1: any
  int64_t pad_multiple = 1;                    ///< of which padded widths are multiples

  /// The padding of rows of `dtype`. Raises ValueError if `pad_value` is not a value of it.
  Padding read_padding(const Dtype& dtype) const;
};

/// One option: its value for all columns, or the values of those that a mapping names.
template <typename T>
struct ColumnOption {
  T all = {};  ///< the default, if the option is a mapping
  bool is_mapping = false;
  std::map<std::string, T, std::less<>> named = {};

  /// The value that a mapping has for `name`; nullptr if it has none.
  const T* find(std::string_view name) const {
    const auto found = named.find(name);
    return found == named.end() ? nullptr : &found->second;
  }
  const T& of(std::string_view name) const {
    const T* found = find(name);
    return found == nullptr ? all : *found;
  }
};

using Names = std::vector<std::string_view>;

/// The options of the columns of one struct.
struct ColumnForms {
  ColumnOption<Nulls> nulls;
  ColumnOption<Ragged> ragged;
  ColumnOption<const Dtype*> dtype;
  ColumnOption<PadValue> pad_value;
  ColumnOption<int64_t> max_length{-1};
  int64_t pad_multiple = 1;

  /// Whether an option is a mapping.
  bool has_names() const;
  /// Raises ValueError if a mapping has a name that none of `columns` has.
  void check_names(const Names& columns) const;
  /// The form of columns that no mapping names.
  ColumnForm for_all() const;
  ColumnForm for_column(std::string_view name) const;
  /// The options of the columns of a matrix. One of a column comes before that of the matrix.
  ColumnForms for_matrix(const std::vector<std::string>& columns, std::string_view matrix) const;
  /// The options of columns beside `names`.
  ColumnForms without(const Names& names) const;

  bool casts() const { return dtype.is_mapping || dtype.all != nullptr; }
  bool pads(std::string_view column) const { return ragged.of(column) == Ragged::kPadded; }
  /// Whether `column` is padded, or may have the lengths of a padded one since it is not named.
  bool may_pad(std::string_view column) const;
  /// The values of a padded row of `column` that are kept; -1 for all. A column that may have the
  /// lengths of others keeps as many as the longest of these.
  int64_t find_max_length(std::string_view column) const;

 private:
  std::vector<std::string_view> list_padded_others(std::string_view column) const;
};

/// Columns that become one tensor (rows, columns).
struct Matrix {
  std::string name;
  std::vector<std::string> columns;
  ColumnForms forms;
};

/// nulls=, ragged=, dtype= and stack= of a conversion, which never change.
struct ColumnOptions {
  ColumnForms forms;
  bool is_matrix = false;             ///< stack=True: all columns are one matrix
  std::vector<Matrix> matrices = {};  ///< stack={name: columns}
  ColumnForms rest = {};              ///< of the columns in no matrix

  /// Whether `column` is in a matrix of `matrices`.
  bool is_stacked(std::string_view column) const;
  /// Raises ValueError unless a table with `columns` has the columns that the options name.
  void check_names(const Names& columns) const;
  /// What becomes of the nulls of `column`: kRaise if it is in matrices whose policies differ.
  Nulls find_null_policy(std::string_view column) const;
};

/// The names of the fields of a struct.
Names list_names(const std::vector<Type>& fields);

}  // namespace arrowdl::python
