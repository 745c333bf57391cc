// Reads a stream by numbers of rows, also rows that it has not copied yet, and slices blocks.
#include "stream/row_reader.hpp"

#include <algorithm>

#include "arrowdl/copy.hpp"
#include "arrowdl/error.hpp"

ARROWDL_BEGIN_NAMESPACE

RowReader::RowReader(OwnedStream source)
    : source_(std::move(source)), device_type_(source_->device_type()) {
  if (is_host_readable(Device{device_type_, 0})) device_type_ = kDLCPU;
}

std::vector<DeviceArray> RowReader::read(int64_t rows) {
  std::vector<DeviceArray> parts;
  while (rows > 0 && fill(rows)) {
    const int64_t taken = std::min(rows, rest_.length());
    parts.push_back(rest_.slice(0, taken));
    rest_ = taken < rest_.length() ? rest_.slice(taken, rest_.length() - taken) : DeviceArray();
    rows -= taken;
  }
  return parts;
}

bool RowReader::has_rows(int64_t rows) const {
  if (rest_) return rows <= rest_.length();
  return device_type_ == source_->device_type() && source_->has_rows(rows);
}

DeviceArray RowReader::peek(int64_t rows) {
  if (!fill(rows)) return {};
  return rest_.slice(0, std::min(rows, rest_.length()));
}

PermutedRows RowReader::next_permuted() {
  return rest_ && rest_.length() > 0 ? PermutedRows() : source_->next_permuted();
}

/// Reads arrays until `rest_` has rows. Returns false at the end.
bool RowReader::fill(int64_t missing) {
  while (!rest_ || rest_.length() == 0) {
    rest_ = source_->next(missing);
    if (!rest_) return false;
    if (rest_.device().type != device_type_) rest_ = copy_array(rest_, Device{});
  }
  return true;
}

std::vector<RowReader> open_readers(std::vector<OwnedStream>&& streams, const char* verb) {
  if (streams.empty()) raise_value_error("cannot ", verb, " no streams: pass at least one");
  const ArrayStream& first = *streams.front();
  for (std::size_t i = 1; i < streams.size(); ++i) {
    const Device device{streams[i]->device_type(), 0};
    check_chunk(*first.schema(), first.device_type(), make_empty(streams[i]->schema(), device), i);
  }
  std::vector<RowReader> readers;
  readers.reserve(streams.size());
  for (OwnedStream& stream : streams) readers.emplace_back(std::move(stream));
  return readers;
}

int64_t count_own_bytes(const DeviceArray& array) {
  return array.nbytes() - array.slice(0, 0).nbytes();
}

DeviceArray BlockStream::next(int64_t max_rows) {
  if (!block_) block_ = make_block(max_rows);
  if (!block_) return {};
  const int64_t count = std::min(block_.length(), max_rows);
  DeviceArray rows = block_.slice(0, count);
  block_ = count < block_.length() ? block_.slice(count, block_.length() - count) : DeviceArray();
  return rows;
}

bool BlockStream::has_rows(int64_t rows) const { return block_ && rows <= block_.length(); }

ARROWDL_END_NAMESPACE
