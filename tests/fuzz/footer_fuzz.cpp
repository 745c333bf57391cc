// Fuzzes the reader of Parquet footers: nothing, or row groups whose rows and bytes are numbers of
// the file. Two files with that footer become one, or do not.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "files/joined_parquet.hpp"
#include "files/parquet_footer.hpp"

namespace {

/// The file whose columns are somewhere in the footer itself.
void append_file(const std::uint8_t* data, std::size_t size, std::vector<std::uint8_t>* file) {
  file->insert(file->end(), data, data + size);
  file->insert(file->end(), data, data + size);
  for (int shift = 0; shift < 32; shift += 8) {
    file->push_back(static_cast<std::uint8_t>(size >> shift));
  }
  for (const char letter : {'P', 'A', 'R', '1'}) {
    file->push_back(static_cast<std::uint8_t>(letter));
  }
}

/// Two files become one, which is well-formed too.
void join(const std::uint8_t* data, std::size_t size) {
  arrowdl::JoinedParquet joined;
  for (int i = 0; i < 2; ++i) {
    const std::size_t begin = joined.bytes.size();
    append_file(data, size, &joined.bytes);
    if (!joined.add(begin)) return;
  }
  joined.finish();
  arrowdl::JoinedParquet again;
  again.bytes = joined.bytes;
  if (!again.add(0)) std::abort();
  again.finish();
  if (again.bytes != joined.bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::optional<arrowdl::ParquetFooter> footer = arrowdl::parse_parquet_footer(data, size);
  if (!footer) return 0;
  if (arrowdl::is_sound_parquet_footer(data, size) != true) std::abort();
  // A row group takes some bytes.
  if (footer->rows.size() > size || footer->rows.size() != footer->nbytes.size()) std::abort();
  if (footer->schema.size() > 2 * size) std::abort();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < footer->rows.size(); ++i) {
    if (footer->rows[i] < 0 || footer->nbytes[i] < 0) std::abort();
    total += static_cast<std::uint64_t>(footer->rows[i]);
  }
  if (total > INT64_MAX) std::abort();
  join(data, size);
  return 0;
}
