// Owns a file descriptor.
#pragma once

#include <utility>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Closes a file descriptor at its end. May be empty.
class FileDescriptor {
 public:
  FileDescriptor() noexcept = default;
  /// Takes over `number`; -1: none.
  explicit FileDescriptor(int number) noexcept : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor();

  explicit operator bool() const noexcept { return number_ >= 0; }
  int get() const noexcept { return number_; }
  /// Passes the descriptor to the caller; -1 if empty.
  int take() noexcept { return std::exchange(number_, -1); }
  /// Another descriptor of the same file; empty, with the reason in errno, if there can be none.
  FileDescriptor duplicate() const noexcept;
  /// Programs that this process starts do not inherit it, nor duplicates.
  void close_on_exec() const noexcept;

 private:
  int number_ = -1;
};

ARROWDL_END_NAMESPACE
