// Kernels over the lengths and offsets of lists.
#include "rows.cuh"
#include "threads.cuh"

namespace {

/// The values that one thread adds up.
constexpr long long kChunk = 64;

}  // namespace

/// Replaces each of the `size` values by the sum of its chunk up to it, and writes the sums of
/// whole chunks to `totals`.
extern "C" __global__ void scan_chunks(long long* values, long long size, long long count,
                                       long long* totals) {
#pragma unroll 1
  for (long long chunk = first_element(); chunk < size; chunk += stride()) {
    long long sum = 0;
#pragma unroll 1
    for (long long i = chunk * kChunk; i < (chunk + 1) * kChunk && i < count; ++i) {
      sum += values[i];
      values[i] = sum;
    }
    totals[chunk] = sum;
  }
}

/// Adds to each value the sum up to the chunk before its own.
extern "C" __global__ void add_totals(long long* values, long long size, const long long* totals) {
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    if (i >= kChunk) values[i] += totals[i / kChunk - 1];
  }
}

/// Writes `size` offsets of `itemsize` bytes (4 or 8), or, for sizes, their differences.
extern "C" __global__ void write_offsets(long long target, long long size, long long itemsize,
                                         const long long* values, long long is_sizes) {
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    const long long value = is_sizes != 0 ? values[i + 1] - values[i] : values[i];
    copy_unit(target + i * itemsize, reinterpret_cast<long long>(&value), itemsize);
  }
}

/// The lengths of lists whose offsets have `itemsize` bytes, `most` at most: written to `lengths`
/// unless it is nullptr, and the largest one to `*longest` unless it is nullptr.
extern "C" __global__ void measure_lists(long long* lengths, long long size, long long offsets,
                                         long long itemsize, long long most,
                                         unsigned long long* longest) {
  long long found = 0;
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    long long length =
        read_integer(offsets, itemsize, i + 1) - read_integer(offsets, itemsize, i);
    if (length > most) length = most;
    if (length > found) found = length;
    if (lengths != nullptr) lengths[i] = length;
  }
  if (longest != nullptr && found > 0) {
    atomicMax(longest, static_cast<unsigned long long>(found));
  }
}

/// The value of each of `columns` columns of a padded list; -1 where it ends.
extern "C" __global__ void pad_rows(long long* values, long long size, long long columns,
                                    long long offsets, long long itemsize, long long most) {
#pragma unroll 1
  for (long long i = first_element(); i < size; i += stride()) {
    const long long row = i / columns;
    const long long column = i - row * columns;
    const long long begin = read_integer(offsets, itemsize, row);
    const long long length = read_integer(offsets, itemsize, row + 1) - begin;
    values[i] = column < length && column < most ? begin + column : -1;
  }
}
