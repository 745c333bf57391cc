// Rows that a stream has not copied yet.
#include "stream/permuted_rows.hpp"

#include "arrowdl/stream.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Most streams have no rows to copy.
PermutedRows ArrayStream::next_permuted() { return {}; }

ARROWDL_END_NAMESPACE
