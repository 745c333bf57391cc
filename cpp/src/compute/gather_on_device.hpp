// Gathers rows of arrays with the kernels of a device.
#pragma once

#include <vector>

#include "arrowdl/device_array.hpp"
#include "arrowdl/lists.hpp"
#include "arrowdl/owned.hpp"

ARROWDL_BEGIN_NAMESPACE

// The arrays are on one device with kernels. All work is on a stream of ours after their events,
// and the result has an event for it. Nulls of results are not counted. The host waits once for
// each level of lists, strings, maps and run ends, since their sizes and errors are on the device;
// for other types it does not wait. Malformed offsets and run ends raise ValueError before they are
// followed. BufferError is raised for what the type cannot hold, and for dense unions, views of
// binary and strings, and different dictionaries, which only the host can gather.

/// The rows of `sources`, which agree in type, one array after the other, as `schema`.
DeviceArray concatenate_on_device(OwnedSchema schema, const std::vector<DeviceArray>& sources);

/// The rows of `sources` with the numbers `rows`, an array of int64 or uint32 on their device; the
/// rows are numbered through, one array after the other. Requires numbers within the sources.
DeviceArray take_on_device(OwnedSchema schema, const std::vector<DeviceArray>& sources,
                           const DeviceArray& rows);

/// As `decode_run_ends`, one level.
DeviceArray decode_run_ends_on_device(OwnedSchema schema, const DeviceArray& array);

/// As `split_list`.
ListParts split_list_on_device(const DeviceArray& array, bool empty_nulls);

ARROWDL_END_NAMESPACE
