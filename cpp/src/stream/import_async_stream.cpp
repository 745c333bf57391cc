// Receives the arrays that an asynchronous producer pushes.
#include "stream/import_async_stream.hpp"

#include <cerrno>
#include <condition_variable>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "arrowdl/async_stream.hpp"
#include "arrowdl/error.hpp"
#include "arrowdl/wait.hpp"
#include "stream/stream_errors.hpp"
#include "util/fork.hpp"
#include "util/interrupt.hpp"

ARROWDL_BEGIN_NAMESPACE

/// Shared by the receiver and, until it releases the handler, the producer.
struct detail::AsyncState : private Counted {
  AsyncState(int64_t most, Releaser of_contents) : depth(most), releaser(of_contents) {}

  bool is_over() const noexcept { return is_at_end || failure != nullptr; }

  const int64_t depth;
  const Releaser releaser;
  const uint64_t process = fork_count();
  ArrowAsyncDeviceStreamHandler handler{};

  std::mutex mutex;
  std::condition_variable changed;
  uint64_t changes = 0;
  std::shared_ptr<const ParsedSchema> schema;
  int32_t device_type = 0;
  ArrowAsyncProducer* producer = nullptr;  ///< from the schema until the release
  std::list<DeviceArray> arrays;
  std::size_t received = 0;
  std::exception_ptr failure;  ///< comes after `arrays`
  bool is_at_end = false;
  std::function<void()> callback;

  /// Held while a function of the producer is called outside of its callbacks, so that it does not
  /// end meanwhile. Such a call may report an error, on the same thread.
  std::recursive_mutex calls;
};

namespace {

using State = detail::AsyncState;

/// Wakes those that wait, after a change by `change(state)`.
template <typename Change>
void update(State& state, const Change& change) {
  std::function<void()> callback;
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    change(state);
    ++state.changes;
    callback.swap(state.callback);
  }
  state.changed.notify_all();
  if (callback) callback();
}

void fail(State& state, const std::exception_ptr& failure) noexcept {
  update(state, [&failure](State& s) {
    if (!s.is_over()) s.failure = failure;
  });
}

/// Calls `call(producer)` unless the producer has released the handler, which waits for the call.
template <typename Call>
void call_producer(State& state, const Call& call) noexcept {
  wait_guarded([&](const Waiting&) {
    const std::lock_guard<std::recursive_mutex> calling(state.calls);
    ArrowAsyncProducer* producer = nullptr;
    {
      const std::lock_guard<std::mutex> lock(state.mutex);
      producer = state.producer;
    }
    if (producer != nullptr) call(producer);
  });
}

// ---------------------------------------------------------------- the handler's callbacks

std::shared_ptr<State> state_of(ArrowAsyncDeviceStreamHandler* self) noexcept {
  return *static_cast<std::shared_ptr<State>*>(self->private_data);
}

/// Runs `body`, and keeps what it throws as the stream's failure. Returns its errno or 0.
template <typename Body>
int receive(State& state, const Body& body) noexcept {
  std::string text;
  return run_as_errno(&text, [&] {
    try {
      body();
    } catch (const std::exception&) {
      fail(state, std::current_exception());
      throw;
    }
  });
}

/// Whether it has failed, or was cancelled.
bool has_failed(State& state) {
  const std::lock_guard<std::mutex> lock(state.mutex);
  return state.failure != nullptr;
}

void accept_schema(State& state, OwnedSchema schema) {
  ArrowAsyncProducer* const producer = state.handler.producer;
  if (producer == nullptr) {
    raise_value_error("malformed asynchronous stream: on_schema was called without a producer");
  }
  auto parsed = share_schema(std::move(schema), state.releaser);
  const int32_t type = from_arrow_device(producer->device_type, 0).type;
  update(state, [&](State& s) {
    if (s.schema != nullptr) raise_value_error("malformed asynchronous stream: a second schema");
    s.schema = std::move(parsed);
    s.device_type = type;
    s.producer = producer;
  });
}

int on_schema(ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) noexcept {
  OwnedSchema owned(schema);
  const std::shared_ptr<State> state = state_of(self);
  if (const int code = receive(*state, [&] { accept_schema(*state, std::move(owned)); })) {
    return code;
  }
  if (has_failed(*state)) return ECANCELED;
  self->producer->request(self->producer, state->depth);
  return 0;
}

void accept_array(State& state, ArrowAsyncTask& task) {
  OwnedDeviceArray chunk;
  if (const int code = task.extract_data(&task, chunk.get())) {
    raise_producer_error("extract its next array", code, "");
  }
  DeviceArray array = DeviceArray::import(state.schema, std::move(chunk), state.releaser);
  check_chunk(*state.schema, state.device_type, array, state.received++);
  std::list<DeviceArray> node;
  node.push_back(std::move(array));
  update(state, [&node](State& s) {
    if (!s.is_over()) s.arrays.splice(s.arrays.end(), node);
  });
}

/// Extracts every task, and returns 0 then, whatever has failed: the interface does not say who
/// frees a task that was extracted and refused, and libarrow 26 frees it again. `cancel` ends the
/// stream instead.
int on_next_task(ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task, const char*) noexcept {
  const std::shared_ptr<State> state = state_of(self);
  if (state->schema == nullptr) {
    return receive(*state, [task] {
      raise_value_error(task == nullptr
                            ? "malformed asynchronous stream: the end before the schema"
                            : "malformed asynchronous stream: an array before the schema");
    });
  }
  if (task == nullptr) {
    update(*state, [](State& s) { s.is_at_end = true; });
    return 0;
  }
  if (receive(*state, [&] { accept_array(*state, *task); }) != 0) {
    self->producer->cancel(self->producer);
  }
  return 0;
}

void on_error(ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
              const char*) noexcept {
  const std::shared_ptr<State> state = state_of(self);
  receive(*state, [&] {
    raise_producer_error("give its next array", code, message == nullptr ? "" : message);
  });
}

void on_release(ArrowAsyncDeviceStreamHandler* self) noexcept {
  const std::unique_ptr<std::shared_ptr<State>> held(
      static_cast<std::shared_ptr<State>*>(self->private_data));
  State& state = **held;
  wait_guarded([&state](const Waiting&) {
    const std::lock_guard<std::recursive_mutex> no_calls(state.calls);
    const std::lock_guard<std::mutex> lock(state.mutex);
    state.producer = nullptr;
  });
  self->release = nullptr;
  receive(state, [&state] {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.is_over()) return;
    throw Error(ErrorKind::kRuntime,
                "the asynchronous stream's producer released its consumer before the end");
  });
}

/// The result of `read` once it is not empty.
template <typename Read>
auto read_when_ready(const AsyncReceiver& receiver, const Read& read) {
  for (;;) {
    const uint64_t seen = receiver.changes();
    if (auto result = read()) return result;
    receiver.wait_for_change(seen);
  }
}

}  // namespace

bool pass_failure(ArrowAsyncDeviceStreamHandler* handler,
                  const std::exception_ptr& failure) noexcept {
  if (handler->release != on_release) return false;
  fail(*state_of(handler), failure);
  return true;
}

// ---------------------------------------------------------------- the receiver

AsyncReceiver::AsyncReceiver(int64_t depth, Releaser releaser)
    : state_(std::make_shared<State>(depth, releaser)) {
  if (depth < 1) raise_value_error("depth=", depth, ": request at least 1 array ahead");
}

AsyncReceiver::~AsyncReceiver() {
  if (state_->process == fork_count()) {
    cancel();
  } else {  // a thread of the parent may have locked the state at the fork
    alignas(std::shared_ptr<State>) unsigned char kept[sizeof(std::shared_ptr<State>)];
    new (kept) std::shared_ptr<State>(std::move(state_));
  }
}

ArrowAsyncDeviceStreamHandler* AsyncReceiver::handler() {
  ArrowAsyncDeviceStreamHandler& handler = state_->handler;
  if (handler.private_data == nullptr) {
    handler.private_data = new std::shared_ptr<State>(state_);
    handler.on_schema = on_schema;
    handler.on_next_task = on_next_task;
    handler.on_error = on_error;
    handler.release = on_release;
  }
  return &handler;
}

void AsyncReceiver::release_handler() noexcept {
  ArrowAsyncDeviceStreamHandler& handler = state_->handler;
  if (handler.release != nullptr) handler.release(&handler);
}

std::shared_ptr<const ParsedSchema> AsyncReceiver::schema() const {
  require_own_process(state_->process);
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->schema == nullptr && state_->failure) raise_failure(state_->failure);
  return state_->schema;
}

int32_t AsyncReceiver::device_type() const {
  require_own_process(state_->process);
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->device_type;
}

std::optional<DeviceArray> AsyncReceiver::poll() {
  require_own_process(state_->process);
  DeviceArray array;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->arrays.empty()) {
      if (state_->failure) raise_failure(state_->failure);
      if (state_->is_at_end) return array;
      return std::nullopt;
    }
    array = std::move(state_->arrays.front());
    state_->arrays.pop_front();
    if (state_->is_over()) return array;
  }
  call_producer(*state_, [](ArrowAsyncProducer* producer) { producer->request(producer, 1); });
  return array;
}

void AsyncReceiver::wait_for_change(uint64_t seen) const {
  require_own_process(state_->process);
  wait_guarded([&](const Waiting& waiting) {
    std::unique_lock<std::mutex> lock(state_->mutex);
    const auto has_changed = [&] { return state_->changes != seen; };
    while (!waiting.wait_for(state_->changed, lock, kInterruptInterval, has_changed)) {
      lock.unlock();
      check_interrupt();
      lock.lock();
    }
  });
}

DeviceArray AsyncReceiver::next() {
  return *read_when_ready(*this, [this] { return poll(); });
}

std::shared_ptr<const ParsedSchema> AsyncReceiver::wait_for_schema() {
  return read_when_ready(*this, [this] { return schema(); });
}

uint64_t AsyncReceiver::changes() const {
  require_own_process(state_->process);
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->changes;
}

bool AsyncReceiver::notify(uint64_t seen, std::function<void()> callback) {
  require_own_process(state_->process);
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->changes != seen) return false;
  state_->callback.swap(callback);
  return true;
}

void AsyncReceiver::cancel() noexcept {
  if (state_->process != fork_count()) return;
  std::list<DeviceArray> dropped;
  bool was_over = false;
  const auto cancelled =
      std::make_exception_ptr(Error(ErrorKind::kRuntime, "the asynchronous stream was cancelled"));
  update(*state_, [&](State& s) {
    was_over = s.is_over();
    s.arrays.swap(dropped);
    if (!was_over) s.failure = cancelled;
  });
  if (was_over) return;
  call_producer(*state_, [](ArrowAsyncProducer* producer) { producer->cancel(producer); });
}

// ---------------------------------------------------------------- as a stream

namespace {

class ReceivedStream final : public ArrayStream {
 public:
  ReceivedStream(std::shared_ptr<const ParsedSchema> schema,
                 std::shared_ptr<AsyncReceiver> receiver)
      : ArrayStream(std::move(schema), receiver->device_type()), receiver_(std::move(receiver)) {}
  ~ReceivedStream() override { receiver_->cancel(); }

  DeviceArray next(int64_t) override { return receiver_->next(); }

 private:
  const std::shared_ptr<AsyncReceiver> receiver_;
};

}  // namespace

OwnedStream read_async(std::shared_ptr<AsyncReceiver> receiver) {
  auto schema = receiver->wait_for_schema();
  return std::make_unique<ReceivedStream>(std::move(schema), std::move(receiver));
}

ARROWDL_END_NAMESPACE
