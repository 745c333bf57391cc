// Opens shared libraries at run time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// A function of a library, which the caller casts to its type.
using LibraryFunction = void (*)();

/// Owns a loaded library, and closes it. May be empty.
class DynamicLibrary {
 public:
  DynamicLibrary() noexcept = default;
  DynamicLibrary(DynamicLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(name_, other.name_);
    return *this;
  }
  ~DynamicLibrary();

  /// The first of `names` that the process has loaded already (see `find_loaded`), so that all use
  /// one runtime; else the first that the system finds; else empty. Searches the system once for
  /// each name: later calls find a missing name only after the process has loaded it.
  static DynamicLibrary open(const std::vector<const char*>& names);

  /// The library `name`, or its copy from a wheel, if the process has loaded it already.
  static DynamicLibrary find_loaded(const char* name);

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  const std::string& name() const noexcept { return name_; }
  /// The function `symbol`, or nullptr.
  LibraryFunction find(const char* symbol) const noexcept;
  /// Never unloads the library.
  void keep() noexcept { handle_ = nullptr; }

 private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}

  void* handle_ = nullptr;
  std::string name_;
};

ARROWDL_END_NAMESPACE
