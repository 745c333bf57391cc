// Reads what DeviceStream.pack is asked for.
#pragma once

#include <pybind11/cast.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrowdl/pack.hpp"

namespace arrowdl::python {

/// The arguments of DeviceStream.pack that are numbers, names, or objects still to be read.
struct PackArguments {
  pybind11::object strategy;
  pybind11::object longer;
  pybind11::object pad_value;
  std::optional<std::vector<std::string>> aligned;
  std::array<int64_t, 3> resume_from;
};

/// Completes `options`, whose plain members are set, for a stream of `type`. Raises ValueError or
/// TypeError, naming the argument.
void read_pack_options(const Type& type, const PackArguments& arguments, PackOptions* options);

}  // namespace arrowdl::python
