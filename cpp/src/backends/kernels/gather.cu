// Kernels that take rows of several arrays.
#include "rows.cuh"
#include "threads.cuh"

/// Copies the elements of the rows that are taken. An element has `units` units of `unit` bytes,
/// `size` is the number of all units. Elements of no row are left alone.
extern "C" __global__ void gather_elements(long long target, long long size, long long unit,
                                           long long units, ROW_PARAMETERS) {
  const Sources sources = SOURCES;
  const Taken taken = TAKEN;
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    const long long element = units == 1 ? i : divide(i, units);
    const long long row = taken.find(element);
    if (row < 0) continue;
    const Source source = sources.find(row);
    const long long from = (row - source.start + source.offset) * units + (i - element * units);
    copy_unit(target + i * unit, source.data + from * unit, unit);
  }
}

/// Packs the bits of the `bits` rows that are taken. Without a bitmap (0) all are set. A thread
/// writes a whole byte.
extern "C" __global__ void gather_bits(unsigned char* target, long long size, long long bits,
                                       ROW_PARAMETERS) {
  const Sources sources = SOURCES;
  const Taken taken = TAKEN;
#pragma unroll 1
  for (long long byte = first_element(); byte < size; byte += stride()) {
    unsigned made = 0;
#pragma unroll 1
    for (int bit = 0; bit < 8 && byte * 8 + bit < bits; ++bit) {
      const long long row = taken.find(byte * 8 + bit);
      if (row < 0) continue;
      const Source source = sources.find(row);
      const long long i = row - source.start + source.offset;
      const auto* bitmap = reinterpret_cast<const unsigned char*>(source.data);
      if (bitmap == nullptr || (bitmap[i >> 3] >> (i & 7) & 1) != 0) made |= 1U << bit;
    }
    target[byte] = static_cast<unsigned char>(made);
  }
}

/// Finds the values of the lists that are taken: `lengths[i + 1]` of them from the value
/// `values[i]` on, none for a row whose bit in `valid` is not set. Sets `*error` for a list that
/// leaves the values. Offsets, and the sizes of views, have `itemsize` bytes.
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
    if (row >= 0 && (valid == nullptr || (valid[i >> 3] >> (i & 7) & 1) != 0)) {
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
      length = is_wrong ? 0 : is_view != 0 ? other : other - begin;
      begin = is_wrong ? 0 : begin + source.base;
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
