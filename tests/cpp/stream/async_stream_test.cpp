// Tests asynchronous streams: our producer with a strict consumer, our consumer with a producer by
// hand, and both together.
#include "arrowdl/async_stream.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "arrowdl/error.hpp"
#include "support/build_array.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl::testing {
namespace {

DeviceArray make_number_row(int64_t n) { return Builder(1).import(field("l"), numbers({n})); }
int64_t read_row(const DeviceArray& array) { return read_rows(array).at(0).number; }

/// Rows 0 to `count` - 1, then the end or what `last` does.
class Rows final : public ArrayStream {
 public:
  explicit Rows(int64_t count, std::function<void()> last = {}, std::atomic<int64_t>* made = {})
      : ArrayStream(share_schema(field("l")), kDLCPU),
        count_(count),
        last_(std::move(last)),
        made_(made) {}
  DeviceArray next(int64_t) override {
    if (position_ == count_) {
      if (last_) last_();
      return {};
    }
    if (made_ != nullptr) ++*made_;
    return make_number_row(position_++);
  }

 private:
  const int64_t count_;
  const std::function<void()> last_;
  std::atomic<int64_t>* const made_;
  int64_t position_ = 0;
};

OwnedStream rows(int64_t count, std::function<void()> last = {},
                 std::atomic<int64_t>* made = nullptr) {
  return std::make_unique<Rows>(count, std::move(last), made);
}

/// A consumer that records all callbacks, and expects the order that the interface prescribes.
class Consumer {
 public:
  Consumer() {
    handler.on_schema = [](auto* self, ArrowSchema* schema) {
      return of(self).receive_schema(OwnedSchema(schema));
    };
    handler.on_next_task = [](auto* self, ArrowAsyncTask* task, const char*) {
      return of(self).receive_task(task);
    };
    handler.on_error = [](auto* self, int code, const char* message, const char*) {
      of(self).receive_error(code, message == nullptr ? "" : message);
    };
    handler.release = [](auto* self) { of(self).receive_release(); };
    handler.private_data = this;
  }

  // The producer is valid until the release, which waits for these calls.
  void request(int64_t n) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_released) handler.producer->request(handler.producer, n);
  }
  void cancel() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_released) handler.producer->cancel(handler.producer);
  }
  void wait_for_release() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return is_released; });
  }
  void wait_for_tasks(std::size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return tasks.size() >= count; });
  }
  std::vector<int64_t> extract() {
    std::vector<int64_t> values;
    const auto schema = share_schema(field("l"));
    for (ArrowAsyncTask& task : tasks) {
      OwnedDeviceArray array;
      EXPECT_EQ(task.extract_data(&task, array.get()), 0);
      values.push_back(read_row(DeviceArray::import(schema, std::move(array))));
    }
    tasks.clear();
    return values;
  }

  ArrowAsyncDeviceStreamHandler handler{};
  int64_t first_request = 0;   ///< made in on_schema
  int64_t second_request = 0;  ///< the same: later, the producer may have ended
  int refuse_schema = 0;
  int refuse_tasks = 0;
  int64_t requested = 0;  ///< bound of the tasks; -1: none
  std::vector<ArrowAsyncTask> tasks;
  bool has_schema = false;
  bool has_end = false;
  bool is_released = false;
  int error = 0;
  std::string message;

 private:
  static Consumer& of(ArrowAsyncDeviceStreamHandler* self) {
    return *static_cast<Consumer*>(self->private_data);
  }
  void expect_open() const {
    EXPECT_FALSE(is_released || has_end || error != 0);
    EXPECT_NE(handler.producer, nullptr);
  }
  int receive_schema(OwnedSchema schema) {
    const std::lock_guard<std::mutex> lock(mutex_);
    expect_open();
    EXPECT_FALSE(has_schema);
    EXPECT_STREQ(schema->format, "l");
    EXPECT_EQ(handler.producer->device_type, ARROW_DEVICE_CPU);
    has_schema = true;
    for (const int64_t n : {first_request, second_request}) {
      if (n != 0) handler.producer->request(handler.producer, n);
    }
    return refuse_schema;
  }
  int receive_task(ArrowAsyncTask* task) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      expect_open();
      EXPECT_TRUE(has_schema);
      if (task == nullptr) {
        has_end = true;
      } else if (refuse_tasks == 0) {
        tasks.push_back(*task);
      }
    }
    changed_.notify_all();
    return refuse_tasks;
  }
  void receive_error(int code, std::string text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    expect_open();
    EXPECT_NE(code, 0);
    error = code;
    message = std::move(text);
  }
  /// The last call of the producer: the thread that waits for it destroys this.
  void receive_release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_FALSE(is_released);
    is_released = true;
    handler.release = nullptr;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
};

/// Expects that nothing is left of a test.
class AsyncStreamTest : public ::testing::Test {
 protected:
  void TearDown() override {
    stop_background_reads(20);
    EXPECT_EQ(live_objects(), objects_);
  }

 private:
  const int64_t objects_ = live_objects();
};

using ExportAsyncStream = AsyncStreamTest;
using AsyncReceiverTest = AsyncStreamTest;

// ---------------------------------------------------------------- our producer

TEST_F(ExportAsyncStream, SendsAsManyAsAreRequestedThenTheEnd) {
  std::atomic<int64_t> made{0};
  Consumer consumer;
  consumer.first_request = 2;
  export_async_stream(rows(5, {}, &made), &consumer.handler);
  consumer.wait_for_tasks(2);
  EXPECT_EQ(consumer.extract(), (std::vector<int64_t>{0, 1}));
  consumer.request(1);
  consumer.wait_for_tasks(1);
  EXPECT_EQ(consumer.extract(), (std::vector<int64_t>{2}));
  EXPECT_LE(made, 4) << "it reads one ahead";
  consumer.request(2);
  consumer.wait_for_release();
  EXPECT_TRUE(consumer.has_end) << "without another request";
  EXPECT_EQ(consumer.error, 0);
  EXPECT_EQ(consumer.extract(), (std::vector<int64_t>{3, 4})) << "after the release, too";
}

TEST_F(ExportAsyncStream, RequestsAddUpWithoutOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Consumer consumer;
  consumer.first_request = consumer.second_request = kMost;
  export_async_stream(rows(3), &consumer.handler);
  consumer.wait_for_release();
  EXPECT_EQ(consumer.extract(), (std::vector<int64_t>{0, 1, 2}));
}

/// As libarrow does, which requests one array more for each that it takes from its queue.
TEST_F(ExportAsyncStream, WhoHoldsATaskMayRequestMore) {
  Consumer consumer;
  consumer.first_request = 5;
  export_async_stream(rows(3), &consumer.handler);
  ArrowAsyncProducer* const producer = consumer.handler.producer;
  consumer.wait_for_release();
  producer->request(producer, 1);
  producer->cancel(producer);
  EXPECT_EQ(consumer.extract(), (std::vector<int64_t>{0, 1, 2}));
}

TEST_F(ExportAsyncStream, NothingIsReadBeforeTheFirstRequest) {
  std::atomic<int64_t> made{0};
  Consumer consumer;
  export_async_stream(rows(3, {}, &made), &consumer.handler);
  consumer.cancel();
  consumer.cancel();
  consumer.wait_for_release();
  EXPECT_EQ(made, 0);
  EXPECT_FALSE(consumer.has_end);
  EXPECT_EQ(consumer.error, 0) << "a cancelled stream has not failed";
}

TEST_F(ExportAsyncStream, ACancelledStreamReleasesItsSource) {
  Consumer consumer;
  consumer.first_request = 1;
  export_async_stream(rows(3), &consumer.handler);
  consumer.wait_for_tasks(1);
  consumer.cancel();
  consumer.wait_for_release();
  EXPECT_EQ(consumer.extract(), (std::vector<int64_t>{0}));
}

TEST_F(ExportAsyncStream, FailuresComeAfterTheArraysBeforeThem) {
  Consumer consumer;
  consumer.first_request = 9;
  export_async_stream(
      rows(2, [] { throw ProducerError(ErrorKind::kRuntime, "", ENOLINK, "gone"); }),
      &consumer.handler);
  consumer.wait_for_release();
  EXPECT_EQ(consumer.extract(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(consumer.error, ENOLINK);
  EXPECT_EQ(consumer.message, "gone");
  EXPECT_FALSE(consumer.has_end);
}

TEST_F(ExportAsyncStream, BadRequestsAreErrors) {
  for (const int64_t n : {int64_t{0}, int64_t{-3}}) {
    Consumer consumer;
    export_async_stream(rows(2), &consumer.handler);
    consumer.request(n);
    consumer.wait_for_release();
    EXPECT_EQ(consumer.error, EINVAL);
    EXPECT_NE(consumer.message.find("request(" + std::to_string(n)), std::string::npos);
  }
}

TEST_F(ExportAsyncStream, ARefusalEndsTheStreamAndFreesTheTask) {
  Consumer schema;
  schema.refuse_schema = ENOMEM;
  export_async_stream(rows(2), &schema.handler);
  schema.wait_for_release();
  EXPECT_EQ(schema.error, 0);
  Consumer tasks;
  tasks.first_request = 2;
  tasks.refuse_tasks = EIO;
  export_async_stream(rows(2), &tasks.handler);
  tasks.wait_for_release();
  EXPECT_EQ(tasks.error, 0);
  EXPECT_FALSE(tasks.has_end);
}

TEST_F(ExportAsyncStream, TheEndOfTheProcessIsAnError) {
  Consumer consumer;
  export_async_stream(rows(2), &consumer.handler);
  stop_background_reads(20);
  EXPECT_TRUE(consumer.is_released);
  EXPECT_EQ(consumer.error, ECANCELED);
}

TEST_F(ExportAsyncStream, ReleasedHandlersAreRefused) {
  Consumer consumer;
  consumer.handler.release = nullptr;
  OwnedStream stream = rows(2);
  expect_error(ErrorKind::kValue, "ArrowAsyncDeviceStreamHandler",
               [&] { export_async_stream(std::move(stream), &consumer.handler); });
  EXPECT_NE(stream, nullptr) << "the caller keeps it";
}

// ---------------------------------------------------------------- our consumer

/// A producer by hand, on the test's thread.
class Producer {
 public:
  explicit Producer(ArrowAsyncDeviceStreamHandler* consumer) : handler(consumer) {
    producer.device_type = ARROW_DEVICE_CPU;
    producer.request = [](auto* self, int64_t n) {
      auto* const own = static_cast<Producer*>(self->private_data);
      own->requested += n;
      if (own->on_request) own->on_request();
    };
    producer.cancel = [](auto* self) { ++static_cast<Producer*>(self->private_data)->cancels; };
    producer.private_data = this;
    handler->producer = &producer;
  }

  int send_schema(const char* format = "l") const {
    OwnedSchema schema = field(format);
    const int code = handler->on_schema(handler, schema.get());
    EXPECT_EQ(schema->release, nullptr) << "the consumer owns the content";
    return code;
  }
  int send(DeviceArray array) {
    array_ = std::move(array);
    ArrowAsyncTask task{[](auto* self, ArrowDeviceArray* out) {
                          auto* const own = static_cast<Producer*>(self->private_data);
                          if (own->extract_error != 0) return own->extract_error;
                          own->array_.export_device_array().move(out);
                          own->array_ = {};
                          return 0;
                        },
                        this};
    return handler->on_next_task(handler, &task, nullptr);
  }
  int send_end() const { return handler->on_next_task(handler, nullptr, nullptr); }
  void fail(int code, const char* message) const {
    handler->on_error(handler, code, message, nullptr);
  }
  void release() const { handler->release(handler); }

  ArrowAsyncDeviceStreamHandler* const handler;
  ArrowAsyncProducer producer{};
  std::atomic<int64_t> requested{0};
  std::atomic<int> cancels{0};
  std::function<void()> on_request;
  int extract_error = 0;

 private:
  DeviceArray array_;
};

TEST_F(AsyncReceiverTest, RequestsMoreAsArraysAreTaken) {
  AsyncReceiver receiver(2);
  EXPECT_EQ(receiver.schema(), nullptr);
  EXPECT_EQ(receiver.poll(), std::nullopt);
  Producer producer(receiver.handler());
  EXPECT_EQ(producer.send_schema(), 0);
  EXPECT_EQ(producer.requested, 2);
  EXPECT_EQ(to_string(receiver.schema()->type), "int64");
  EXPECT_EQ(receiver.device_type(), kDLCPU);
  EXPECT_EQ(producer.send(make_number_row(7)), 0);
  EXPECT_EQ(producer.send(make_number_row(8)), 0);
  EXPECT_EQ(read_row(receiver.poll().value()), 7);
  EXPECT_EQ(producer.requested, 3);
  EXPECT_EQ(producer.send_end(), 0);
  EXPECT_EQ(read_row(receiver.poll().value()), 8);
  EXPECT_EQ(producer.requested, 3) << "no request after the end";
  EXPECT_FALSE(receiver.poll().value());
  producer.release();
  EXPECT_FALSE(receiver.next());
}

TEST_F(AsyncReceiverTest, FailuresKeepErrnoAndText) {
  AsyncReceiver receiver(2);
  Producer producer(receiver.handler());
  producer.send_schema();
  producer.send(make_number_row(7));
  producer.fail(ENOSYS, "no such thing");
  producer.release();
  EXPECT_EQ(read_row(receiver.next()), 7);
  for (int i = 0; i < 2; ++i) {
    expect_error(ErrorKind::kNotImplemented, "no such thing", [&] { receiver.poll(); });
  }
  EXPECT_NE(receiver.schema(), nullptr);
}

TEST_F(AsyncReceiverTest, AFailureBeforeTheSchemaIsRaised) {
  AsyncReceiver receiver(1);
  Producer producer(receiver.handler());
  producer.fail(EACCES, nullptr);
  producer.release();
  expect_error(ErrorKind::kRuntime, "Permission denied", [&] { receiver.schema(); });
  expect_error(ErrorKind::kRuntime, "Permission denied", [&] { receiver.wait_for_schema(); });
}

TEST_F(AsyncReceiverTest, AReleaseBeforeTheEndIsAnError) {
  AsyncReceiver receiver(1);
  Producer producer(receiver.handler());
  producer.send_schema();
  producer.release();
  expect_error(ErrorKind::kRuntime, "before the end", [&] { receiver.next(); });
}

TEST_F(AsyncReceiverTest, MalformedStreamsAreRefused) {
  AsyncReceiver twice(1);
  Producer producer(twice.handler());
  EXPECT_EQ(producer.send_schema(), 0);
  EXPECT_EQ(producer.send_schema(), EINVAL);
  producer.release();
  expect_error(ErrorKind::kValue, "a second schema", [&] { twice.poll(); });

  AsyncReceiver no_schema(1);
  Producer hasty(no_schema.handler());
  EXPECT_EQ(hasty.send(make_number_row(1)), EINVAL);
  hasty.release();
  expect_error(ErrorKind::kValue, "before the schema", [&] { no_schema.poll(); });

  AsyncReceiver nothing(1);
  Producer empty(nothing.handler());
  EXPECT_EQ(empty.send_end(), EINVAL);
  empty.release();
  expect_error(ErrorKind::kValue, "the end before the schema", [&] { nothing.schema(); });
  expect_error(ErrorKind::kValue, "the end before the schema", [&] { nothing.poll(); });

  AsyncReceiver wrong(1);
  Producer other(wrong.handler());
  other.send_schema("g");
  other.send_schema("g");
  other.release();

  AsyncReceiver failing(1);
  Producer broken(failing.handler());
  broken.send_schema();
  broken.extract_error = ENODATA;
  EXPECT_EQ(broken.send({}), 0) << "the task is extracted: only the producer's `cancel` is left";
  EXPECT_EQ(broken.cancels, 1);
  broken.release();
  expect_error(ErrorKind::kRuntime, "extract its next array", [&] { failing.poll(); });
}

TEST_F(AsyncReceiverTest, CancelDropsWhatWaitsAndWhatComes) {
  AsyncReceiver receiver(4);
  Producer producer(receiver.handler());
  producer.send_schema();
  producer.send(make_number_row(1));
  receiver.cancel();
  receiver.cancel();
  EXPECT_EQ(producer.cancels, 1);
  expect_error(ErrorKind::kRuntime, "was cancelled", [&] { receiver.poll(); });
  EXPECT_EQ(producer.send(make_number_row(2)), 0) << "extracted, and dropped";
  EXPECT_EQ(producer.send_end(), 0);
  producer.release();
  expect_error(ErrorKind::kRuntime, "was cancelled", [&] { receiver.next(); });
}

TEST_F(AsyncReceiverTest, AProducerOutlivesItsReceiver) {
  auto receiver = std::make_unique<AsyncReceiver>(1);
  Producer producer(receiver->handler());
  receiver.reset();
  EXPECT_EQ(producer.cancels, 0) << "the producer has not shown itself";
  EXPECT_EQ(producer.send_schema(), ECANCELED);
  EXPECT_EQ(producer.requested, 0);
  producer.release();
}

TEST_F(AsyncReceiverTest, AHandlerThatNobodyTookIsFreed) {
  AsyncReceiver unused(1);
  AsyncReceiver refused(1);
  EXPECT_NE(refused.handler(), nullptr);
  refused.release_handler();
  refused.release_handler();
  expect_error(ErrorKind::kValue, "depth=0", [] { AsyncReceiver(0); });
}

TEST_F(AsyncReceiverTest, AProducerMayFailInRequest) {
  AsyncReceiver receiver(1);
  Producer producer(receiver.handler());
  producer.send_schema();
  producer.send(make_number_row(1));
  producer.on_request = [&] { producer.fail(EIO, "in request"); };
  EXPECT_EQ(read_row(receiver.poll().value()), 1);
  expect_error(ErrorKind::kRuntime, "in request", [&] { receiver.poll(); });
  producer.release();
}

TEST_F(AsyncReceiverTest, NotifiesOnceAfterAChange) {
  AsyncReceiver receiver(2);
  Producer producer(receiver.handler());
  const uint64_t before = receiver.changes();
  int calls = 0;
  EXPECT_TRUE(receiver.notify(before, [&] { calls += 100; }));
  EXPECT_TRUE(receiver.notify(before, [&] { ++calls; })) << "the last one is called";
  producer.send_schema();
  producer.send(make_number_row(1));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(receiver.notify(before, [&] { ++calls; })) << "it has changed since";
  EXPECT_TRUE(receiver.notify(receiver.changes(), {}));
  producer.send_end();
  EXPECT_EQ(calls, 1);
  producer.release();
}

// ---------------------------------------------------------------- both

TEST_F(AsyncStreamTest, RowsOfEveryTypeArrive) {
  for (const NamedSchema& type : every_type()) {
    SCOPED_TRACE(type.name);
    Builder builder(3);
    const OwnedSchema schema = type.make();
    const Values values = builder.make_values(parse_schema(*schema.get()), 5);
    const auto receiver = std::make_shared<AsyncReceiver>(1);
    const DeviceArray array = builder.import(schema, values);
    export_async_stream(make_stream({array, array}), receiver->handler());
    const OwnedStream stream = read_async(receiver);
    EXPECT_EQ(stream->device_type(), kDLCPU);
    EXPECT_EQ(read_rows(stream->next()), values);
    EXPECT_EQ(read_rows(stream->next()), values);
    EXPECT_FALSE(stream->next());
  }
}

TEST_F(AsyncStreamTest, ManyReadersTakeEachArrayOnce) {
  constexpr int64_t kRows = 2000;
  for (const int64_t depth : {1, 3, 64}) {
    AsyncReceiver receiver(depth);
    export_async_stream(rows(kRows), receiver.handler());
    std::atomic<int64_t> sum{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
      readers.emplace_back([&] {
        while (const DeviceArray array = receiver.next()) sum += read_row(array);
      });
    }
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(sum, kRows * (kRows - 1) / 2);
  }
}

TEST_F(AsyncStreamTest, DroppedInTheMiddle) {
  for (int64_t taken = 0; taken < 20; ++taken) {
    const auto receiver = std::make_shared<AsyncReceiver>(2);
    export_async_stream(rows(1000), receiver->handler());
    const OwnedStream stream = read_async(receiver);
    for (int64_t i = 0; i < taken; ++i) EXPECT_EQ(read_row(stream->next()), i);
  }
}

}  // namespace
}  // namespace arrowdl::testing
