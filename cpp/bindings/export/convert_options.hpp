// What one call of to_torch, to_jax or to_numpy is asked for.
#pragma once

#include <optional>
#include <string_view>

#include "arrowdl/device.hpp"
#include "export/column_options.hpp"

namespace arrowdl::python {

/// Whose memory the tensors are in.
enum class Access {
  kShared,   ///< copy=None: the array's, read-only, or new memory
  kInPlace,  ///< copy=False: the array's, or BufferError
  kCopied,   ///< copy=True: new memory of the caller's own
  kOwn,      ///< the array's, which is the caller's own, or new memory
};

struct ConvertOptions : ColumnForm {
  Access access = Access::kShared;
  std::optional<Device> device = {};
  const ColumnForms* by_column = nullptr;  ///< borrowed; nullptr: all columns have the same form
  bool is_new = false;                     ///< the array is in memory made for these tensors
  bool is_copy = false;                    ///< copy=True was passed, whatever `access` becomes

  /// The same for columns of these forms.
  ConvertOptions with_forms(const ColumnForms& forms) const {
    ConvertOptions own = with_form(forms.for_all());
    if (forms.has_names()) own.by_column = &forms;
    return own;
  }

  /// The options of the column named `name`.
  ConvertOptions for_column(std::string_view name) const {
    return by_column == nullptr ? *this : with_form(by_column->for_column(name));
  }

 private:
  ConvertOptions with_form(const ColumnForm& form) const {
    ConvertOptions own = *this;
    static_cast<ColumnForm&>(own) = form;
    own.by_column = nullptr;
    return own;
  }
};

}  // namespace arrowdl::python
