// Libraries that are looked for while the program runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace arrowdl {

/// A function of a library, to be cast to what it is.
using LibraryFunction = void (*)();

/// A loaded library, closed with it. Empty when there is none.
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

  /// The first of `names` that the process has loaded already, so that one runtime serves all, or
  /// its copy from a wheel; else the first that the system finds. Empty when there is none. A name
  /// that the system did not find is not looked for again, but among what the process has loaded.
  static DynamicLibrary open(const std::vector<const char*>& names);

  /// Whether the process has loaded a library of that name already, or its copy from a wheel.
  static bool is_loaded(const char* name);

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  const std::string& name() const noexcept { return name_; }
  /// The function `symbol`, or nullptr.
  LibraryFunction find(const char* symbol) const noexcept;
  /// Leaves the library in the process for good.
  void keep() noexcept { handle_ = nullptr; }

 private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}

  static DynamicLibrary find_loaded(const char* name);

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace arrowdl
