// Finds the options of a column.
#include "export/column_options.hpp"

#include <algorithm>
#include <optional>

#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "convert/fill_value.hpp"

namespace arrowdl::python {
namespace {

/// Calls `visit(name, option)` with each option that may be a mapping.
template <typename Forms, typename Visit>
void visit_options(Forms& forms, const Visit& visit) {
  visit("nulls", forms.nulls);
  visit("ragged", forms.ragged);
  visit("dtype", forms.dtype);
  visit("pad_value", forms.pad_value);
  visit("max_length", forms.max_length);
}

bool has_name(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string join_names(const Names& names) {
  std::string joined;
  for (const std::string_view name : names) {
    joined += concat(joined.empty() ? "\"" : ", \"", name, "\"");
  }
  return joined.empty() ? "none" : joined;
}

/// The option without mappings that are left empty, which is the default.
template <typename T>
void drop_empty(ColumnOption<T>* option) {
  option->is_mapping = option->is_mapping && !option->named.empty();
}

}  // namespace

Padding ColumnForm::read_padding(const Dtype& dtype_of_rows) const {
  Padding padding;
  padding.max_length = max_length;
  padding.multiple = pad_multiple;
  if (pad_value == nullptr) return padding;
  const auto element = find_item(pad_value->number, dtype_of_rows);
  if (!element) {
    raise_value_error(pad_value->text, " is not a value of ", dtype_of_rows.name,
                      dtype_of_rows.code == kDLBool ? ": give 0 or 1" : "");
  }
  padding.element = *element;
  return padding;
}

bool ColumnForms::has_names() const {
  bool is_found = false;
  visit_options(*this, [&](const char*, const auto& option) { is_found |= option.is_mapping; });
  return is_found;
}

void ColumnForms::check_names(const Names& columns) const {
  visit_options(*this, [&](const char* name, const auto& option) {
    for (const auto& [column, value] : option.named) {
      if (has_name(columns, column)) continue;
      raise_value_error(name, "= names \"", column, "\", and the columns are ",
                        join_names(columns));
    }
  });
}

ColumnForm ColumnForms::for_all() const {
  ColumnForm form{nulls.all, ragged.all, dtype.all};
  if (!pad_value.all.text.empty()) form.pad_value = &pad_value.all;
  form.max_length = max_length.all;
  form.pad_multiple = pad_multiple;
  return form;
}

ColumnForm ColumnForms::for_column(std::string_view name) const {
  ColumnForm form = for_all();
  form.nulls = nulls.of(name);
  form.ragged = ragged.of(name);
  if (const auto* own = dtype.find(name)) {
    form.dtype = *own;
    form.cast_which = CastWhich::kAll;
  }
  if (const PadValue* own = pad_value.find(name)) form.pad_value = own;
  form.max_length = max_length.of(name);
  return form;
}

ColumnForms ColumnForms::for_matrix(const std::vector<std::string>& columns,
                                    std::string_view matrix) const {
  ColumnForms forms = *this;
  visit_options(forms, [&](const char*, auto& option) {
    const auto given = std::exchange(option.named, {});
    const auto whole = given.find(matrix);
    for (const std::string& column : columns) {
      auto found = given.find(column);
      if (found == given.end()) found = whole;
      if (found != given.end()) option.named.emplace(column, found->second);
    }
    drop_empty(&option);
  });
  return forms;
}

ColumnForms ColumnForms::without(const Names& names) const {
  ColumnForms forms = *this;
  visit_options(forms, [&](const char*, auto& option) {
    for (const std::string_view name : names) {
      if (const auto found = option.named.find(name); found != option.named.end()) {
        option.named.erase(found);
      }
    }
    drop_empty(&option);
  });
  return forms;
}

std::vector<std::string_view> ColumnForms::list_padded_others(std::string_view column) const {
  std::vector<std::string_view> others;
  if (!ragged.is_mapping || ragged.find(column) != nullptr) return others;
  for (const auto& [name, form] : ragged.named) {
    if (form == Ragged::kPadded) others.push_back(name);
  }
  return others;
}

bool ColumnForms::may_pad(std::string_view column) const {
  return pads(column) || !list_padded_others(column).empty();
}

int64_t ColumnForms::find_max_length(std::string_view column) const {
  if (!max_length.is_mapping) return max_length.all;
  if (const int64_t* own = max_length.find(column)) return *own;
  int64_t most = -1;
  for (const std::string_view other : list_padded_others(column)) {
    const int64_t length = max_length.of(other);
    if (length < 0) return -1;
    most = std::max(most, length);
  }
  return most;
}

bool ColumnOptions::is_stacked(std::string_view column) const {
  return std::any_of(matrices.begin(), matrices.end(), [&](const Matrix& matrix) {
    return std::find(matrix.columns.begin(), matrix.columns.end(), column) != matrix.columns.end();
  });
}

void ColumnOptions::check_names(const Names& columns) const {
  Names names = columns;
  for (const Matrix& matrix : matrices) {
    names.push_back(matrix.name);
    for (const std::string& column : matrix.columns) {
      if (has_name(columns, column)) continue;
      raise_value_error("stack= names \"", column, "\", and the columns are ", join_names(columns));
    }
    if (has_name(columns, matrix.name) && !is_stacked(matrix.name)) {
      raise_value_error("stack: the batch has a column \"", matrix.name,
                        "\" that is not stacked: give the matrix another name");
    }
  }
  forms.check_names(names);
}

Nulls ColumnOptions::find_null_policy(std::string_view column) const {
  std::optional<Nulls> policy;
  for (const Matrix& matrix : matrices) {
    if (std::find(matrix.columns.begin(), matrix.columns.end(), column) == matrix.columns.end()) {
      continue;
    }
    const Nulls& own = matrix.forms.nulls.of(column);
    if (policy && *policy != own) return Nulls::kRaise;
    policy = own;
  }
  return policy ? *policy : forms.nulls.of(column);
}

Names list_names(const std::vector<Type>& fields) {
  Names names;
  names.reserve(fields.size());
  for (const Type& field : fields) names.push_back(field.name());
  return names;
}

}  // namespace arrowdl::python
