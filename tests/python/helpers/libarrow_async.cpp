// Arrow C++'s asynchronous device streams behind C functions, for tests.
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/thread_pool.h>

#include <memory>
#include <string>

namespace {

using Batch = std::shared_ptr<arrow::RecordBatch>;

struct Consumer {
  ArrowAsyncDeviceStreamHandler handler;
  arrow::Future<arrow::AsyncRecordBatchGenerator> stream;
};

std::string error;

arrow::Result<Batch> make_batch(const std::shared_ptr<arrow::Schema>& schema, int64_t value) {
  arrow::Int64Builder builder;
  ARROW_RETURN_NOT_OK(builder.Append(value));
  ARROW_ASSIGN_OR_RAISE(auto array, builder.Finish());
  return arrow::RecordBatch::Make(schema, 1, {array});
}

}  // namespace

extern "C" {

/// Pushes batches of the rows 0 to `count` - 1 of the column x. Batch `failing` fails. May wait.
void produce(ArrowAsyncDeviceStreamHandler* handler, int64_t count, int64_t failing) {
  const auto schema = arrow::schema({arrow::field("x", arrow::int64())});
  const auto position = std::make_shared<int64_t>(0);
  const auto generate = [=]() -> arrow::Future<Batch> {
    auto* const pool = arrow::internal::GetCpuThreadPool();
    return arrow::DeferNotOk(pool->Submit([=]() -> arrow::Result<Batch> {
      const int64_t value = (*position)++;
      if (value == failing) return arrow::Status::Invalid("made to fail");
      if (value >= count) return Batch();
      return make_batch(schema, value);
    }));
  };
  arrow::ExportAsyncRecordBatchReader(schema, generate, arrow::DeviceAllocationType::kCPU, handler)
      .AddCallback([](const arrow::Status&) {});
}

/// A consumer, which begins with its handler.
Consumer* make_consumer(uint64_t queue) {
  auto* const consumer = new Consumer;
  consumer->stream = arrow::CreateAsyncDeviceStreamHandler(
      &consumer->handler, arrow::internal::GetCpuThreadPool(), queue);
  return consumer;
}

/// The number of rows until the end; -1 and `last_error` if the stream fails.
int64_t consume(Consumer* consumer) {
  const auto stream = consumer->stream.result();
  if (!stream.ok()) {
    error = stream.status().ToString();
    return -1;
  }
  for (int64_t rows = 0;;) {
    const auto next = stream->generator().result();
    if (!next.ok()) {
      error = next.status().ToString();
      return -1;
    }
    if (next->batch == nullptr) return rows;
    rows += next->batch->num_rows();
  }
}

const char* last_error() { return error.c_str(); }

}  // extern "C"
