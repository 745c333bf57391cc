// Arrow's asynchronous device streams: a producer pushes arrays to a consumer's handler.
//
// The source of every rule here: "Async Device Stream Interface" of the Arrow C device data
// interface. It calls the structs experimental.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "arrowdl/owned.hpp"
#include "arrowdl/stream.hpp"

#ifndef ARROW_C_ASYNC_STREAM_INTERFACE
#define ARROW_C_ASYNC_STREAM_INTERFACE

extern "C" {

/// An array that is ready to be taken. The consumer may copy the struct, and takes the array once.
struct ArrowAsyncTask {
  /// Moves the array to `out`, and frees what the task holds. Returns 0 or an errno.
  int (*extract_data)(struct ArrowAsyncTask* self, struct ArrowDeviceArray* out);
  void* private_data;
};

/// How a consumer steers its producer, which owns this struct until it has released the handler.
struct ArrowAsyncProducer {
  ArrowDeviceType device_type;  ///< of every array
  /// Asks for `n` (at least 1) more arrays. Returns before any of them is passed to the handler.
  void (*request)(struct ArrowAsyncProducer* self, int64_t n);
  /// Asks the producer to end soon. More calls have no effect.
  void (*cancel)(struct ArrowAsyncProducer* self);
  const char* additional_metadata;  ///< encoded as that of a schema; or NULL
  void* private_data;
};

/// What a consumer does. The producer calls one callback at a time, on any thread.
struct ArrowAsyncDeviceStreamHandler {
  /// The first callback, once. The handler takes over the schema's content. Returns 0 or an errno.
  int (*on_schema)(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowSchema* schema);
  /// The next array, or NULL at the end. `task` and `metadata` are valid during the call. Returns 0
  /// or an errno, after which the producer stops.
  int (*on_next_task)(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowAsyncTask* task,
                      const char* metadata);
  /// The stream has failed: `release` follows. The texts are valid during the call, or NULL.
  void (*on_error)(struct ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
                   const char* metadata);
  /// The last callback, always called.
  void (*release)(struct ArrowAsyncDeviceStreamHandler* self);
  /// Set by the producer before its first callback, valid until `release`.
  struct ArrowAsyncProducer* producer;
  void* private_data;
};

}  // extern "C"

#endif  // ARROW_C_ASYNC_STREAM_INTERFACE

ARROWDL_BEGIN_NAMESPACE

namespace detail {
struct AsyncState;
}

/// Passes `stream` to `handler`, as its producer, on a thread of its own: the schema at once, then
/// as many arrays as the consumer requests. The thread reads one array more, so that the end needs
/// no request, and releases the source before the handler. The caller keeps the stream, and no
/// callback is called, where this raises: RuntimeError if no thread can start, ValueError for a
/// handler that lacks a callback.
///
/// A failure of the source is reported by `on_error`, after the arrays before it, with the errno
/// and the text of the source's producer. So is a request of less than 1 array (EINVAL), and the
/// end of the process (ECANCELED). After `cancel`, or a callback that fails, only `release`
/// follows.
void export_async_stream(OwnedStream&& stream, ArrowAsyncDeviceStreamHandler* handler);

/// Receives an asynchronous stream. Several threads may use it; in a forked child its functions
/// raise RuntimeError.
///
/// It requests `depth` arrays, and another for each array that is taken, so that at most `depth`
/// wait here. A task is extracted during `on_next_task`, on the producer's thread. Metadata other
/// than the schema's is not kept.
class AsyncReceiver {
 public:
  /// Raises ValueError unless depth >= 1. `releaser` is DeviceArray::import's.
  explicit AsyncReceiver(int64_t depth, Releaser releaser = nullptr);
  /// Cancels the stream.
  ~AsyncReceiver();
  AsyncReceiver(const AsyncReceiver&) = delete;
  AsyncReceiver& operator=(const AsyncReceiver&) = delete;

  /// The handler, to be passed to one producer. It lives until the producer releases it, also after
  /// this object.
  ArrowAsyncDeviceStreamHandler* handler();
  /// Releases the handler in place of a producer that did not start.
  void release_handler() noexcept;

  /// The type of the arrays; nullptr if it has not arrived. Raises the failure of a stream that
  /// failed before.
  std::shared_ptr<const ParsedSchema> schema() const;
  /// The device type of the arrays; 0 if the schema has not arrived.
  int32_t device_type() const;
  /// The next array; an empty one at the end, and from then on. Nothing if none is ready. Raises
  /// the failure of the stream after the arrays before it: RuntimeError, MemoryError or
  /// NotImplementedError with the producer's text, ValueError for a malformed stream, RuntimeError
  /// after `cancel` and in a forked child.
  std::optional<DeviceArray> poll();

  /// The same, but these wait.
  std::shared_ptr<const ParsedSchema> wait_for_schema();
  DeviceArray next();

  /// How often the producer has changed what `schema` or `poll` return.
  uint64_t changes() const;
  /// Waits until `changes()` is not `seen`.
  void wait_for_change(uint64_t seen) const;
  /// Calls `callback` once, on the thread of the next change; an empty function: never. Replaces an
  /// earlier callback, and must not throw. Returns false, and drops `callback`, if `changes()` is
  /// not `seen`.
  bool notify(uint64_t seen, std::function<void()> callback);

  /// Ends the stream: drops arrays that wait, and asks the producer to stop. No effect in a forked
  /// child.
  void cancel() noexcept;

 private:
  std::shared_ptr<detail::AsyncState> state_;
};

/// The arrays of `receiver` as a stream, which cancels it if it is dropped before its end. Waits
/// for the schema; raises as `AsyncReceiver::poll`.
OwnedStream read_async(std::shared_ptr<AsyncReceiver> receiver);

ARROWDL_END_NAMESPACE
