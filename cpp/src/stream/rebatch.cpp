// Cuts a stream into arrays of a fixed number of rows.
#include "arrowdl/concatenate.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/error.hpp"
#include "stream/row_reader.hpp"

namespace arrowdl {
namespace {

class Rebatch final : public ArrayStream {
 public:
  Rebatch(RowReader reader, int64_t rows, bool drop_last)
      : ArrayStream(reader.schema(), reader.device_type()),
        reader_(std::move(reader)),
        rows_(rows),
        drop_last_(drop_last) {}

  DeviceArray next(int64_t) override {
    const std::vector<DeviceArray> parts = reader_.read(rows_);
    if (parts.empty()) return {};
    if (drop_last_ && count_rows(parts) < rows_) return {};
    return concatenate(parts);
  }

 private:
  static int64_t count_rows(const std::vector<DeviceArray>& parts) {
    int64_t count = 0;
    for (const DeviceArray& part : parts) count += part.length();
    return count;
  }

  RowReader reader_;
  int64_t rows_;
  bool drop_last_;
};

}  // namespace

OwnedStream rebatch(OwnedStream&& stream, int64_t rows, bool drop_last) {
  if (rows < 1) raise_value_error("rows=", rows, ": an array has at least 1 row");
  return std::make_unique<Rebatch>(RowReader(std::move(stream)), rows, drop_last);
}

}  // namespace arrowdl
