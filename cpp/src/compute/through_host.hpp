// Lets the CPU work on copies of arrays that neither it nor kernels can read where they are.
#pragma once

#include <vector>

#include "arrowdl/copy.hpp"
#include "arrowdl/device_array.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Makes one or more arrays, whose rows are gathered together, readable: replaces those that
/// neither the CPU nor kernels gather where they are by copies on the host. Returns whether kernels
/// gather them. Otherwise waits for them. The result belongs on `*home`: `copy_array` brings it
/// there. Raises BufferError, "cannot `verb` on opencl:0: ...", for memory that cannot be copied,
/// and for arrays on several devices.
bool make_readable(std::vector<DeviceArray>* arrays, Device* home, const char* verb);

/// `rows`, null also where `copy`, the same rows on the host, is null.
DeviceArray with_nulls_of_host(const DeviceArray& rows, const DeviceArray& copy);

/// `rows`, null also where the bits of host memory that begin at bit `offset` of `bits` are not
/// set. `null_count` of them are not. Raises BufferError for a type without a bitmap.
DeviceArray with_nulls_of_host(const DeviceArray& rows, Buffer bits, int64_t offset,
                               int64_t null_count);

ARROWDL_END_NAMESPACE
