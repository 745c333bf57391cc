// The cast of rows, and those of one node that it chooses from.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "array/row_access.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "cast/misfit.hpp"
#include "compute/take.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The rows that count: not those under a null, or those that no row of a list, a dictionary or run
/// ends refers to. They are found when one is asked for.
class UsedRows {
 public:
  /// All rows count.
  UsedRows() = default;

  /// The rows, of `count`, that `mark(&bits)` marks.
  UsedRows(int64_t count, std::function<void(std::vector<bool>*)> mark);

  /// Whether all rows are known to count.
  bool is_whole() const noexcept { return state_ == nullptr; }
  bool operator[](int64_t row) const;

 private:
  struct State {
    int64_t count;
    std::function<void(std::vector<bool>*)> mark;
    std::vector<bool> bits;
  };
  std::shared_ptr<State> state_;
};

/// The used rows, of `count` rows, of a child of `array`: `find_rows(i)` for each row `i` that
/// counts and is not null. `array` must be in host memory when a row is requested.
UsedRows find_used(const DeviceArray& array, const UsedRows& used, int64_t count,
                   std::function<Range(int64_t)> find_rows);

/// The used rows of the dictionary.
UsedRows find_used_values(const DeviceArray& array, const UsedRows& used);

/// The used rows of the values of run ends.
UsedRows find_used_runs(const DeviceArray& array, const UsedRows& used);

/// The dictionary index of each row of `array`; 0 for null rows. Raises Undecided for an index that
/// leaves the dictionary of `dictionary_length` values.
std::vector<RowIndex> find_dictionary_rows(const DeviceArray& array, int64_t dictionary_length);

/// The rows of `array`: `rows` of `values`, its dictionary, which is not empty, and null where
/// `array` is. Raises Undecided if `values` cannot be null where `array` is.
OwnedArray decode_dictionary(const DeviceArray& array, const DeviceArray& values,
                             const std::vector<RowIndex>& rows);

/// Appends the indices of `to` and makes the dictionary: the distinct `values`, in the order of
/// their first appearance. Raises Misfit if the indices cannot count them.
void encode_dictionary(const DeviceArray& values, const Type& to, ArrayParts* parts);

/// Appends the offsets and bytes, or the views, of `array` as `to` has them. Raises Misfit if the
/// offsets of `to` cannot count the bytes.
void cast_binary(const DeviceArray& array, const Type& to, ArrayParts* parts);

/// Appends the buffers of lists of `to` over the values of `array`, none for lists of a fixed size.
/// Returns the values, which are still to be cast to the item type of `to`; nothing where `parts`
/// has them, since no list of `used` is valid. Raises Misfit if `to` cannot count the values, or
/// lists of `used` are not of its fixed size.
std::optional<DeviceArray> cast_lists(const DeviceArray& array, const Type& to,
                                      const UsedRows& used, ArrayParts* parts);

/// `length` rows of `to`, none null: `depth` levels of fixed-size lists around `values`.
OwnedArray nest_values(OwnedArray values, const Type& to, std::size_t depth, int64_t length);

/// The values inside `depth` levels of fixed-size lists. Raises Misfit if a list of `used` is null.
DeviceArray flatten_lists(DeviceArray lists, std::size_t depth, UsedRows used);

/// Appends the elements of `array` as numbers of `to`. Floats are rounded to the nearest shorter
/// float. Raises ValueError for other values of `used` that `to` does not hold exactly, unless they
/// are null.
void cast_numbers(const DeviceArray& array, const Type& to, const UsedRows& used,
                  ArrayParts* parts);

/// How many units of a time's `format`, such as "tsu:", make a day.
inline int64_t count_per_day(const char* format) {
  constexpr int64_t kSecondsPerDay = 86400;
  if (format[1] == 'd' && format[2] == 'D') return 1;
  switch (format[2]) {
    case 'm':
      return kSecondsPerDay * 1000;
    case 'u':
      return kSecondsPerDay * 1000000;
    case 'n':
      return kSecondsPerDay * 1000000000;
    default:
      return kSecondsPerDay;
  }
}

/// Converts a time in units of which `from` make a day to those of which `to` do. Returns whether
/// it is a whole number of them that fits.
inline bool convert_unit(int64_t time, int64_t from, int64_t to, int64_t* result) {
  if (to >= from) return checked_multiply(time, to / from, result);
  *result = time / (from / to);
  return *result * (from / to) == time;
}

/// Appends the elements of `array` in the units of `to`. Raises Misfit for values of `used` that
/// are not a whole number of these units, or are too large, unless they are null.
void cast_units(const DeviceArray& array, const Type& to, const UsedRows& used, ArrayParts* parts);

/// Rows as values that follow one another, cut at offsets.
template <typename Offset>
struct OffsetRows {
  DeviceArray values;
  Buffer offsets;  ///< length + 1, the first one 0

  Offset operator[](int64_t i) const noexcept {
    Offset offset;
    std::memcpy(&offset, offsets.data() + i * int64_t{sizeof(Offset)}, sizeof(Offset));
    return offset;
  }
  int64_t length_of(int64_t i) const noexcept { return int64_t{(*this)[i + 1]} - (*this)[i]; }
};

/// Raises Misfit if an offset of `to` cannot be `offset`.
template <typename Offset>
void require_offset(const Type& to, int64_t offset) {
  if (offset <= std::numeric_limits<Offset>::max()) return;
  raise_misfit("the rows hold ", offset, " values together, more than the offsets of ",
               to_string(to), " can count: request 64-bit offsets, or those of the array");
}

/// Offsets of `length` rows of `size` values each. Raises Misfit if `to` cannot count the values.
template <typename Offset>
Buffer make_even_offsets(int64_t length, int64_t size, const Type& to);

extern template Buffer make_even_offsets<int32_t>(int64_t, int64_t, const Type&);
extern template Buffer make_even_offsets<int64_t>(int64_t, int64_t, const Type&);

/// The rows of `array`, any list, binary with offsets or view of these. Raises Misfit if `to`
/// cannot count the values.
template <typename Offset>
OffsetRows<Offset> read_offset_rows(const DeviceArray& array, const Type& to);

extern template OffsetRows<int32_t> read_offset_rows(const DeviceArray&, const Type&);
extern template OffsetRows<int64_t> read_offset_rows(const DeviceArray&, const Type&);

/// Whether the elements of `type` are decimals, of any width.
bool is_decimal(const Type& type);

/// The elements of `array`, decimals in host memory, as int64, uint64, or float64 rounded to the
/// nearest: that of these which `dtype` is converted from. Raises UnfitValue for decimals that are
/// not whole or not in the range of an integer `dtype`, of rows that `is_read` says.
DeviceArray read_decimals(const DeviceArray& array, const Dtype& dtype,
                          const std::function<bool(int64_t)>& is_read);

/// The rows of `array` as rows of `to`. find_fit has found that they fit; above Fit::kShared
/// `array` is in host memory and ready. Raises Misfit or ValueError for values of `used` that do
/// not fit, ValueError for nulls if `to` is not nullable.
OwnedArray cast_rows(const DeviceArray& array, const Type& to, const UsedRows& used = {});

ARROWDL_END_NAMESPACE
