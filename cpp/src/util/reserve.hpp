// std::vector::reserve with an error that contains the size.
#pragma once

#include <new>
#include <stdexcept>
#include <vector>

#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

/// As `items->reserve(count)`. Raises MemoryError with the number of bytes.
template <typename T>
void reserve(std::vector<T>* items, int64_t count) {
  try {
    items->reserve(static_cast<std::size_t>(count));
  } catch (const std::bad_alloc&) {
    raise_memory_error(count * static_cast<int64_t>(sizeof(T)));
  } catch (const std::length_error&) {  // more than max_size()
    throw Error(ErrorKind::kMemory, concat("cannot allocate memory for ", count, " items"));
  }
}

ARROWDL_END_NAMESPACE
