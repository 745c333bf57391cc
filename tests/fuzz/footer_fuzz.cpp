// Fuzzes the reader of Parquet footers: nothing, or row groups whose rows and bytes are numbers of
// the file.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "files/parquet_footer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::optional<arrowdl::ParquetFooter> footer = arrowdl::parse_parquet_footer(data, size);
  if (!footer) return 0;
  // A row group takes some bytes.
  if (footer->rows.size() > size || footer->rows.size() != footer->nbytes.size()) std::abort();
  if (footer->schema.size() > 2 * size) std::abort();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < footer->rows.size(); ++i) {
    if (footer->rows[i] < 0 || footer->nbytes[i] < 0) std::abort();
    total += static_cast<std::uint64_t>(footer->rows[i]);
  }
  if (total > INT64_MAX) std::abort();
  return 0;
}
