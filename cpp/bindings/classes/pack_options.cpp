// Reads what DeviceStream.pack is asked for.
#include "classes/pack_options.hpp"

#include <utility>

#include "arrowdl/error.hpp"
#include "convert/fill_value.hpp"
#include "export/read_column_options.hpp"
#include "support/arguments.hpp"

namespace arrowdl::python {
namespace {

namespace py = pybind11;

constexpr std::pair<const char*, PackStrategy> kStrategies[] = {
    {"concat", PackStrategy::kConcat}, {"best_fit", PackStrategy::kBestFit}};
constexpr std::pair<const char*, LongSequence> kLong[] = {{"split", LongSequence::kSplit},
                                                          {"truncate", LongSequence::kTruncate},
                                                          {"drop", LongSequence::kDrop},
                                                          {"raise", LongSequence::kRaise}};

/// The padding of a column. Zeros, of which every type has some, are nothing to read.
void read_pack_padding(const ColumnForm& form, const PackedColumn& column, const Type& type,
                       PackOptions* pack) {
  if (form.pad_value == nullptr || is_zero(form.pad_value->number)) return;
  if (column.dtype == nullptr) {
    raise_value_error(form.pad_value->text, " is not a value of column \"", type.name(), "\", ",
                      to_string(type), ": give 0, or a mapping from column names to values");
  }
  pack->padding.push_back({column.column, form.read_padding(*column.dtype).element});
}

}  // namespace

void read_pack_options(const Type& type, const PackArguments& arguments, PackOptions* options) {
  options->strategy = read_choice("strategy", arguments.strategy.ptr(), kStrategies);
  options->longer = read_choice("long", arguments.longer.ptr(), kLong);
  options->has_aligned = arguments.aligned.has_value();
  if (options->has_aligned) options->aligned = *arguments.aligned;
  const auto [row, value, block] = arguments.resume_from;
  options->from = {row, value, block};
  ColumnArguments given;
  const py::str padded("padded");  // rows that are padded have a pad_value
  given.ragged = padded.ptr();
  given.pad_value = arguments.pad_value.ptr();
  const ColumnForms forms = read_column_options(given).forms;
  const std::vector<PackedColumn> columns = find_packed_columns(type, *options);
  forms.check_names(list_names(type.children));
  for (const PackedColumn& column : columns) {
    const Type& child = type.children[column.column];
    read_pack_padding(forms.for_column(child.name()), column, child, options);
  }
}

}  // namespace arrowdl::python
