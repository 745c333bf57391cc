// Kernels that take rows of several arrays.
#include "rows.cuh"
#include "threads.cuh"

namespace {

/// What one launch gathers with others: elements of `units` units of `unit` bytes each, or, if that
/// is 0, `units` bits, of which a thread writes a whole byte. Without a bitmap (0) all are set.
struct Column {
  long long first;  ///< the number of its first unit, or byte of bits, among those of all columns
  long long target;
  long long unit;
  long long units;
  long long pitch;  ///< the bytes from an element of the target to the next
  Source only;
  long long all;  ///< the number of the first of several sources
  long long count;
  long long length;  ///< the number of rows that are taken
  Taken taken;

  /// Writes unit `i`, with the sources of all columns. Elements of no row are left alone.
  __device__ void gather(long long i, const Source* several) const {
    const Sources sources{only, several + all, count};
    if (unit == 0) return gather_byte(i, sources);
    const long long element = units == 1 ? i : divide(i, units);
    const long long row = taken.find(element);
    if (row < 0) return;
    const Source source = sources.find(row);
    const long long within = i - element * units;
    const long long from = (row - source.start + source.offset) * units + within;
    copy_unit(target + element * pitch + within * unit, source.data + from * unit, unit);
  }

  __device__ void gather_byte(long long byte, const Sources& sources) const {
    unsigned made = 0;
#pragma unroll 1
    for (int bit = 0; bit < 8 && byte * 8 + bit < units; ++bit) {
      const long long row = taken.find(byte * 8 + bit);
      if (row < 0) continue;
      const Source source = sources.find(row);
      const long long i = row - source.start + source.offset;
      const auto* bitmap = reinterpret_cast<const unsigned char*>(source.data);
      if (bitmap == nullptr || (bitmap[i >> 3] >> (i & 7) & 1) != 0) made |= 1U << bit;
    }
    reinterpret_cast<unsigned char*>(target)[byte] = static_cast<unsigned char>(made);
  }
};

}  // namespace

/// Gathers the `size` units of one column, or of `columns`: `column_count` of them, then the first
/// unit behind the last one in the place of another, then the sources of those that have several.
extern "C" __global__ void gather_columns(const Column* columns, long long size,
                                          long long column_count, long long target, long long unit,
                                          long long units, long long pitch, ROW_PARAMETERS) {
  if (columns == nullptr) {
    const Column only{0, target, unit, units, pitch, {start, data, offset, limit, base, more},
                      0, count,  0,    TAKEN};
#pragma unroll 1
    for (long long i = first_element(); i < size; i += stride()) only.gather(i, all);
    return;
  }
  const auto* sources = reinterpret_cast<const Source*>(columns + column_count + 1);
  const Column* column = columns;
  long long end = 0;
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    if (i >= end) {
      column = columns + find_last(&columns->first, kStep<Column>, column_count, i);
      end = column[1].first;
    }
    column->gather(i - column->first, sources);
  }
}

/// Finds the values of the lists that are taken: `lengths[i + 1]` of them from the value
/// `values[i]` on, none for a row whose bit in `valid` is not set. Sets `*error` for a list that
/// leaves the values, a null one too unless it is a view. Offsets, and the sizes of views, have
/// `itemsize` bytes.
extern "C" __global__ void find_lists(long long* lengths, long long size, long long* values,
                                      const unsigned char* valid, long long itemsize,
                                      long long is_view, long long* error, ROW_PARAMETERS) {
  const Sources sources = SOURCES;
  const Taken taken = TAKEN;
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    const long long row = taken.find(i);
    long long length = 0;
    long long begin = 0;
    const bool is_null = valid != nullptr && (valid[i >> 3] >> (i & 7) & 1) == 0;
    if (row >= 0 && !(is_null && is_view != 0)) {
      const Source source = sources.find(row);
      const long long at = row - source.start + source.offset;
      begin = read_integer(source.data, itemsize, at);
      const long long other = is_view != 0 ? read_integer(source.more, itemsize, at)
                                           : read_integer(source.data, itemsize, at + 1);
      const long long most = source.limit - begin;
      const bool is_wrong =
          begin < 0 || begin > source.limit ||
          (is_view != 0 ? other < 0 || other > most : other < begin || other > source.limit);
      if (is_wrong) *error = 1;
      length = is_wrong || is_null ? 0 : is_view != 0 ? other : other - begin;
      begin = is_wrong || is_null ? 0 : begin + source.base;
    }
    if (i == 0) lengths[0] = 0;
    lengths[i + 1] = length;
    values[i] = begin;
  }
}

/// Finds the value of the run of each row that is taken. Writes run ends of one row each, of
/// `itemsize` bytes as the sources', to `ends` unless it is 0. Sets `*error` for a row after the
/// last run.
extern "C" __global__ void find_runs(long long* values, long long size, long long ends,
                                     long long itemsize, long long* error, ROW_PARAMETERS) {
  const Sources sources = SOURCES;
  const Taken taken = TAKEN;
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    const long long row = taken.find(i);
    const Source source = sources.find(row);
    const long long at = row - source.start + source.offset;
    long long low = 0;
    long long high = source.limit;
#pragma unroll 1
    while (low < high) {
      const long long middle = low + (high - low) / 2;
      if (read_integer(source.data, itemsize, source.more + middle) <= at) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == source.limit) *error = 1;
    values[i] = low == source.limit ? -1 : source.base + low;
    if (ends != 0) write_integer(ends, itemsize, i, i + 1);
  }
}
