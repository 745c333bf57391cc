// Closes and duplicates file descriptors.
#include "arrowdl/file_descriptor.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <unistd.h>
#endif

ARROWDL_BEGIN_NAMESPACE

#if defined(__unix__) || defined(__APPLE__)

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

FileDescriptor FileDescriptor::duplicate() const noexcept {
  return FileDescriptor(fcntl(number_, F_DUPFD_CLOEXEC, 0));
}

void FileDescriptor::close_on_exec() const noexcept { fcntl(number_, F_SETFD, FD_CLOEXEC); }

#else  // nothing that arrowdl calls there makes one

FileDescriptor::~FileDescriptor() = default;

FileDescriptor FileDescriptor::duplicate() const noexcept { return FileDescriptor(); }

void FileDescriptor::close_on_exec() const noexcept {}

#endif

ARROWDL_END_NAMESPACE
