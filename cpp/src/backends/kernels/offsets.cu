// Kernels over the lengths and offsets of lists.
#include "rows.cuh"
#include "threads.cuh"

/// Replaces each of the `count` values by the sum of its chunk of `length` values up to it, and
/// writes the sums of the `size` chunks to `totals`.
extern "C" __global__ void scan_chunks(long long* values, long long size, long long count,
                                       long long* totals, long long length) {
#pragma unroll 1
  for (long long chunk = first_element(); chunk < size; chunk += stride()) {
    long long sum = 0;
#pragma unroll 1
    for (long long i = chunk * length; i < (chunk + 1) * length && i < count; ++i) {
      sum += values[i];
      values[i] = sum;
    }
    totals[chunk] = sum;
  }
}

/// Adds to each value the sum up to the chunk before its own.
extern "C" __global__ void add_totals(long long* values, long long size, const long long* totals,
                                      long long length) {
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    if (i >= length) values[i] += totals[divide(i, length) - 1];
  }
}

/// Writes `size` offsets of `itemsize` bytes (4 or 8), or, for sizes, their differences: of values
/// of `width` bytes, less `base`.
extern "C" __global__ void write_offsets(long long target, long long size, long long itemsize,
                                         long long values, long long width, long long base,
                                         long long is_sizes) {
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    const long long value = read_integer(values, width, i);
    write_integer(target, itemsize, i,
                  is_sizes != 0 ? read_integer(values, width, i + 1) - value : value - base);
  }
}

/// The lengths of `count` lists whose offsets have `itemsize` bytes, `most` at most: written to
/// `lengths` unless it is nullptr, and the largest ones to `longest` unless it is nullptr. `size`
/// is a number of threads.
extern "C" __global__ void measure_lists(long long* lengths, long long /*size*/, long long count,
                                         long long offsets, long long itemsize, long long most,
                                         unsigned long long* longest) {
  long long found = 0;
#pragma unroll 1
  for (long long i = first_element(); i < count; i += stride()) {
    long long length = read_integer(offsets, itemsize, i + 1) - read_integer(offsets, itemsize, i);
    if (length > most) length = most;
    if (length > found) found = length;
    if (lengths != nullptr) lengths[i] = length;
  }
  if (longest != nullptr && found > 0) {
    atomicMax(find_result(longest), static_cast<unsigned long long>(found));
  }
}

namespace {

/// The values of a list that a padded row has.
struct PaddedRow {
  long long data;
  long long units;
};

__device__ PaddedRow find_row(long long row, long long units, long long data, long long offsets,
                              long long itemsize, long long most, long long unit) {
  const long long begin = read_integer(offsets, itemsize, row);
  const long long length = read_integer(offsets, itemsize, row + 1) - begin;
  return {data + begin * units * unit, (length < most ? length : most) * units};
}

}  // namespace

/// Pads lists to rows of `columns` values of `units` units of `unit` bytes each (1, 2, 4, 8 or 16),
/// `nbytes` bytes in all; `most` values of a list are kept. The rest of a row repeats the 16 bytes
/// of `low` and `high`. A thread writes a block.
extern "C" __global__ void pad_rows(long long target, long long size, long long nbytes,
                                    long long columns, long long units, long long unit,
                                    long long data, long long offsets, long long itemsize,
                                    long long most, unsigned long long low,
                                    unsigned long long high) {
  const int width = static_cast<int>(unit);
  const long long row_units = columns * units;
  const int step = kBlock / width;
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    const long long rest = nbytes - i * kBlock;
    long long row = divide(i * step, row_units);
    long long column = i * step - row * row_units;
    const int end = rest < kBlock ? static_cast<int>(rest) : kBlock;
    Block made{low, high};
#pragma unroll 1
    for (int byte = 0; byte < end; ++row, column = 0) {
      const PaddedRow values = find_row(row, units, data, offsets, itemsize, most, unit);
      if (byte == 0 && column + step <= values.units) {  // all in one list
        made = read_part(values.data + column * unit, rest);
        break;
      }
#pragma unroll 1
      for (; byte < end && column < row_units; byte += width, ++column) {
        if (column < values.units) {  // units of a block are always in one list
          made.write(byte, width, read_unit(values.data + column * unit, unit));
        }
      }
    }
    write_part(target + i * kBlock, made, rest);
  }
}
