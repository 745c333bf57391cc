// Rows that a stream has not copied yet.
#include "arrowdl/stream.hpp"
#include "stream/row_reader.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Most streams have no rows to copy.
PermutedRows ArrayStream::next_permuted() { return {}; }

ARROWDL_END_NAMESPACE
