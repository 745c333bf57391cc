// Rows of several arrays, and which of them an operation takes.
#pragma once

#include "threads.cuh"

namespace {

/// Finds the last of `count` ascending numbers, each `step` behind the one before it, that is
/// `most` or less; the first one if none is.
__device__ long long find_last(const long long* numbers, long long step, long long count,
                               long long most) {
  long long low = 0;
  long long high = count;
#pragma unroll 1
  while (high - low > 1) {
    const long long middle = low + (high - low) / 2;
    if (numbers[middle * step] <= most) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/// How far apart the first numbers of structs of numbers are.
template <typename Row>
constexpr long long kStep = sizeof(Row) / sizeof(long long);

/// One of the arrays. Their rows are numbered through, one array after the other.
struct Source {
  long long start;   ///< the number of its first row
  long long data;    ///< the address of a buffer
  long long offset;  ///< the index of its first row in the buffer
  long long limit;   ///< of lists, the number of their values; of run ends, the number of runs
  long long base;    ///< of lists and run ends, the number of the first value
  long long more;    ///< of list views, the address of the sizes; of run ends, the first run
};

struct Sources {
  Source only;        ///< the one array
  const Source* all;  ///< or several of them
  long long count;

  __device__ Source find(long long row) const {
    return count == 1 ? only : all[find_last(&all->start, kStep<Source>, count, row)];
  }
};

/// The rows that are taken: all, those of `rows`, or ranges of them. Range k has the rows from
/// number k on, and is taken at starts[k] up to starts[k + 1].
struct Taken {
  const void* rows;
  const long long* starts;
  long long ranges;
  long long width;     ///< a row stands for this number of consecutive ones
  long long itemsize;  ///< the bytes of a number: 4 without a sign, or 8

  /// The row that is taken at `i`; negative if none is.
  __device__ long long find(long long i) const {
    const long long at = width == 1 ? i : divide(i, width);
    long long row = at;
    if (starts != nullptr) {
      const long long range = find_last(starts, 1, ranges, at);
      row = read_row(range) + (at - starts[range]);
    } else if (rows != nullptr) {
      row = read_row(at);
    }
    return row < 0 || width == 1 ? row : row * width + (i - at * width);
  }

  __device__ long long read_row(long long i) const {
    if (itemsize == 4) return static_cast<const unsigned*>(rows)[i];
    return static_cast<const long long*>(rows)[i];
  }
};

/// The integer of `width` bytes (2, 4 or 8) at an index.
__device__ long long read_integer(long long data, long long width, long long i) {
  if (width == 8) return reinterpret_cast<const long long*>(data)[i];
  if (width == 4) return reinterpret_cast<const int*>(data)[i];
  return reinterpret_cast<const short*>(data)[i];
}

/// Copies `unit` bytes (1, 2, 4, 8 or 16), to which both addresses are aligned.
__device__ void copy_unit(long long target, long long source, long long unit) {
  if (unit == 16) {
    *reinterpret_cast<ulonglong2*>(target) = *reinterpret_cast<const ulonglong2*>(source);
  } else if (unit == 8) {
    *reinterpret_cast<long long*>(target) = *reinterpret_cast<const long long*>(source);
  } else if (unit == 4) {
    *reinterpret_cast<int*>(target) = *reinterpret_cast<const int*>(source);
  } else if (unit == 2) {
    *reinterpret_cast<short*>(target) = *reinterpret_cast<const short*>(source);
  } else {
    *reinterpret_cast<char*>(target) = *reinterpret_cast<const char*>(source);
  }
}

/// The `unit` bytes (1, 2, 4 or 8) at an address that is aligned to them.
__device__ unsigned long long read_unit(long long source, long long unit) {
  if (unit == 8) return *reinterpret_cast<const unsigned long long*>(source);
  if (unit == 4) return *reinterpret_cast<const unsigned int*>(source);
  if (unit == 2) return *reinterpret_cast<const unsigned short*>(source);
  return *reinterpret_cast<const unsigned char*>(source);
}

/// Writes the integer of `width` bytes (2, 4 or 8) at an index.
__device__ void write_integer(long long data, long long width, long long i, long long value) {
  if (width == 8) {
    reinterpret_cast<long long*>(data)[i] = value;
  } else if (width == 4) {
    reinterpret_cast<int*>(data)[i] = static_cast<int>(value);
  } else {
    reinterpret_cast<short*>(data)[i] = static_cast<short>(value);
  }
}

}  // namespace

// The parameters of kernels that take rows, and the structs of them.
#define ROW_PARAMETERS                                                                \
  long long start, long long data, long long offset, long long limit, long long base, \
      long long more, const Source *all, long long count, const void *rows,           \
      const long long *starts, long long ranges, long long width, long long row_bytes
#define SOURCES \
  Sources { {start, data, offset, limit, base, more}, all, count }
#define TAKEN \
  Taken { rows, starts, ranges, width, row_bytes }
