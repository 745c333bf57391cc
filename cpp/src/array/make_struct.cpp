// Makes a struct array of its fields.
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

DeviceArray make_struct(const std::vector<std::string>& names,
                        const std::vector<DeviceArray>& fields) {
  std::vector<OwnedSchema> schemas;
  std::vector<OwnedArray> arrays;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (names[i].find('\0') != std::string::npos) {
      raise_value_error("the name of field ", i, " has a NUL character, where Arrow's names end");
    }
    if (fields[i].length() != fields[0].length()) {
      raise_value_error("field \"", names[i], "\" has ", fields[i].length(), " rows, \"", names[0],
                        "\" has ", fields[0].length());
    }
    if (fields[i].device() != fields[0].device()) {
      raise_value_error("field \"", names[i], "\" is on ", to_string(fields[i].device()), ", \"",
                        names[0], "\" on ", to_string(fields[0].device()), ": move one of them");
    }
    schemas.push_back(rename_schema(fields[i].export_schema(), names[i].c_str()));
    arrays.push_back(share_array(fields[i]));
  }
  const int64_t length = fields.empty() ? 0 : fields[0].length();
  const Device device = fields.empty() ? Device{} : fields[0].device();
  std::vector<EventHandle> events;
  events.reserve(fields.size());
  for (const DeviceArray& field : fields) events.push_back(field.sync_event());
  ArrayParts parts;
  parts.length = length;
  parts.buffers.push_back(Buffer());
  parts.children = std::move(arrays);
  return DeviceArray::import(make_nested_schema("+s", std::move(schemas)),
                             make_array(std::move(parts)), device,
                             OwnedEvent::join(device, std::move(events)));
}

ARROWDL_END_NAMESPACE
