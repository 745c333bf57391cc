// Passes a stream to the handler of an asynchronous consumer.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "arrowdl/async_stream.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/wait.hpp"
#include "schema/make_schema.hpp"
#include "stream/background.hpp"
#include "stream/import_async_stream.hpp"
#include "stream/stream_errors.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// The array of a task. The consumer has one reference, and the producer another until the consumer
/// has accepted the task.
struct TaskArray : private Counted {
  TaskArray(DeviceArray from, std::shared_ptr<const void> by)
      : array(std::move(from)), producer(std::move(by)) {}

  DeviceArray array;
  /// libarrow 26 calls `request` for each task that it takes from its queue, before it extracts the
  /// array: also after the producer has released the handler, until when the producer has to exist.
  const std::shared_ptr<const void> producer;
  std::atomic<bool> is_extracted{false};
};

int extract_data(ArrowAsyncTask* self, ArrowDeviceArray* out) noexcept {
  const std::unique_ptr<std::shared_ptr<TaskArray>> held(
      static_cast<std::shared_ptr<TaskArray>*>(std::exchange(self->private_data, nullptr)));
  *out = {};
  if (held == nullptr) return EINVAL;
  (*held)->is_extracted = true;
  std::string text;
  return run_as_errno(&text, [&] { (*held)->array.export_device_array().move(out); });
}

/// The producer of one handler. Its thread calls all callbacks.
class AsyncExport final : public BackgroundRead,
                          public std::enable_shared_from_this<AsyncExport>,
                          private Counted {
 public:
  AsyncExport(OwnedStream source, ArrowAsyncDeviceStreamHandler* handler)
      : source_(std::move(source)), handler_(handler) {
    producer_.device_type = static_cast<ArrowDeviceType>(source_->device_type());
    producer_.request = [](ArrowAsyncProducer* self, int64_t n) {
      static_cast<AsyncExport*>(self->private_data)->request(n);
    };
    producer_.cancel = [](ArrowAsyncProducer* self) {
      static_cast<AsyncExport*>(self->private_data)->end(Ended::kByConsumer);
    };
    producer_.additional_metadata = nullptr;
    producer_.private_data = this;
  }

  ArrowAsyncProducer* producer() noexcept { return &producer_; }
  OwnedStream take_source() noexcept { return std::move(source_); }

  void run() override {
    std::string text;
    std::exception_ptr failure;
    const int code = run_as_errno(&text, [this, &failure] {
      try {
        produce();
      } catch (const std::exception&) {
        failure = std::current_exception();
        throw;
      }
    });
    source_.reset();
    if (code != 0 && !pass_failure(handler_, failure)) {
      handler_->on_error(handler_, code, text.empty() ? nullptr : text.c_str(), nullptr);
    }
    handler_->release(handler_);
  }
  void close() noexcept override { end(Ended::kWithProcess); }

 private:
  enum class Ended { kNo, kByConsumer, kWithProcess };

  // Both notify with the lock held: as soon as the thread can go on, it may destroy this.

  void request(int64_t n) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    if (n < 1) {
      bad_request_ = std::min(bad_request_, n);
    } else {
      requested_ = requested_ > kMost - n ? kMost : requested_ + n;
    }
    changed_.notify_all();
  }

  void end(Ended ended) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_ == Ended::kNo) ended_ = ended;
    changed_.notify_all();
  }

  void produce() {
    OwnedSchema schema = copy_schema(*source_->schema()->schema.get());
    if (handler_->on_schema(handler_, schema.get()) != 0 || !wait_for_request()) return;
    DeviceArray array = source_->next();
    while (array) {
      if (!wait_for_request() || !send(std::move(array))) return;
      array = source_->next();
    }
    handler_->on_next_task(handler_, nullptr, nullptr);
  }

  /// Returns false if the consumer has cancelled the stream.
  bool wait_for_request() {
    std::unique_lock<std::mutex> lock(mutex_);
    Waiting::on_own_thread().wait(changed_, lock, [this] {
      return requested_ > 0 || bad_request_ < 1 || ended_ != Ended::kNo;
    });
    if (ended_ == Ended::kByConsumer) return false;
    if (ended_ == Ended::kWithProcess) {
      throw ProducerError(ErrorKind::kRuntime, "", ECANCELED, "the producer's process ends");
    }
    if (bad_request_ < 1) {
      raise_value_error("ArrowAsyncProducer.request(", bad_request_,
                        "): request at least 1 array (Arrow's async device stream interface)");
    }
    return true;
  }

  /// Returns false if the consumer has refused the array.
  bool send(DeviceArray array) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      --requested_;
    }
    const auto held = std::make_shared<TaskArray>(std::move(array), shared_from_this());
    auto theirs = std::make_unique<std::shared_ptr<TaskArray>>(held);
    ArrowAsyncTask task{extract_data, theirs.get()};
    const bool is_accepted = handler_->on_next_task(handler_, &task, nullptr) == 0;
    if (is_accepted || held->is_extracted) theirs.release();
    return is_accepted;
  }

  OwnedStream source_;
  ArrowAsyncDeviceStreamHandler* const handler_;
  ArrowAsyncProducer producer_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t requested_ = 0;
  int64_t bad_request_ = 1;  ///< less than 1: what was requested
  Ended ended_ = Ended::kNo;
};

}  // namespace

void export_async_stream(OwnedStream&& stream, ArrowAsyncDeviceStreamHandler* handler) {
  if (handler->on_schema == nullptr || handler->on_next_task == nullptr ||
      handler->on_error == nullptr || handler->release == nullptr) {
    raise_value_error(
        "malformed ArrowAsyncDeviceStreamHandler: a callback is NULL, or it was released");
  }
  const auto read = std::make_shared<AsyncExport>(std::move(stream), handler);
  handler->producer = read->producer();
  try {
    start_background(read, "Read the stream with its iterator");
  } catch (...) {
    handler->producer = nullptr;
    stream = read->take_source();
    throw;
  }
}

ARROWDL_END_NAMESPACE
