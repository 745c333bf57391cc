// The extension types of other libraries: what a tensor of each is.
#pragma once

#include <cstdint>
#include <string_view>

#include "arrowdl/namespace.hpp"

ARROWDL_BEGIN_NAMESPACE

/// How an extension type is read.
enum class Reading : uint8_t {
  kStorage,      ///< as its storage
  kDtype,        ///< as elements of a dtype
  kTensor,       ///< as a tensor of Arrow's canonical types
  kShapedLists,  ///< lists that have the shape in its metadata, as one tensor
  kNoBytes,      ///< as its storage, unless that is binary or string
  kRefused,      ///< not at all
};

/// One extension type.
struct ExtensionRow {
  std::string_view name;  ///< with a '*' at its end: of all names that begin so
  Reading reading;
  std::string_view note;  ///< kDtype: the dtype; kNoBytes and kRefused: what to do instead
};

/// The row of a name, or nullptr. arrow.bool8 and arrowdl's own types are in the table of dtypes.
const ExtensionRow* find_extension(std::string_view name) noexcept;

ARROWDL_END_NAMESPACE
