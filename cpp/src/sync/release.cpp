// Records, awaits and completes the release of memory.
#include "sync/release.hpp"

#include <atomic>
#include <new>
#include <utility>

#include "arrowdl/backends.hpp"
#include "arrowdl/wait.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

std::atomic<int64_t> abandoned{0};

/// An error that lasts for as many polls, about a fifth of a second, is taken for sticky.
constexpr int kMaxFailures = 200;

bool is_being_captured(const RetainedStream& stream) {
  return stream.streams().is_capturing(stream.device(), stream.get());
}

/// Asks for the work of `*first`, which ends before an event on a stream of ours, and records it
/// for all releases up to `end` that wait for the same work of the device.
void record_work(std::list<Release>::iterator first, std::list<Release>::iterator end) {
  const std::shared_ptr<const ConsumerWork> work = first->work;
  const Device device = first->device;
  MemoryOps& memory = require_memory(device, "wait for the work of a consumer");
  const BorrowedStream ours(memory, device);
  work->order_before(device, ours.get());
  for (auto release = first; release != end; ++release) {
    if (release->work != work || release->device != device) continue;
    auto recorded = std::make_unique<RecordedStream>(RecordedStream{
        RetainedStream(memory, device, ours.get()), OwnedEvent::record(device, ours.get()), {}});
    recorded->next = std::move(release->streams);
    release->streams = std::move(recorded);
    release->work = nullptr;
  }
}

}  // namespace

void record_works(std::list<Release>& releases) noexcept {
  for (auto first = releases.begin(); first != releases.end(); ++first) {
    const std::shared_ptr<const ConsumerWork> work = first->work;
    if (work == nullptr) continue;
    try {
      record_work(first, releases.end());
    } catch (const std::bad_alloc&) {  // try again later
      return;
    } catch (...) {
      for (Release& release : releases) release.failures += release.work == work ? 1 : 0;
      return;
    }
  }
}

bool Release::record() {
  if (work != nullptr) return false;
  is_captured = false;
  for (RecordedStream* used = streams.get(); used != nullptr; used = used->next.get()) {
    if (used->event) continue;
    is_captured = is_being_captured(used->stream);
    if (is_captured) return false;
    used->event = OwnedEvent::record(used->stream.device(), used->stream.get());
  }
  return true;
}

bool Release::is_due() {
  if (!record()) return false;
  for (; streams != nullptr; streams = std::move(streams->next)) {
    if (!is_complete(streams->event.device(), streams->event.handle())) return false;
  }
  return true;
}

void Release::wait() const {
  for (const RecordedStream* used = streams.get(); used != nullptr; used = used->next.get()) {
    synchronize_event(used->event.device(), used->event.handle());
  }
}

bool wait_for_streams(const RecordedStream* streams) {
  for (const RecordedStream* used = streams; used != nullptr; used = used->next.get()) {
    if (is_being_captured(used->stream)) return false;
  }
  wait_guarded([streams](const Waiting&) {
    for (const RecordedStream* used = streams; used != nullptr; used = used->next.get()) {
      const RetainedStream& stream = used->stream;
      if (used->event) {
        synchronize_event(used->event.device(), used->event.handle());
      } else {
        stream.streams().synchronize_stream(stream.device(), stream.get());
      }
    }
  });
  return true;
}

/// Keeps abandoned releases reachable, for leak checkers. The list has no lock, which a fork could
/// copy while it is held.
void abandon(Release release) noexcept {
  struct Abandoned {
    Release release;
    Abandoned* next;
  };
  static std::atomic<Abandoned*> all{nullptr};
  count_abandoned();
  auto* const kept = new (std::nothrow) Abandoned{{}, all.load()};
  if (kept == nullptr) {
    alignas(Release) unsigned char never_destroyed[sizeof(Release)];
    new (never_destroyed) Release(std::move(release));
    return;
  }
  kept->release = std::move(release);
  while (!all.compare_exchange_weak(kept->next, kept)) {
  }
}

void count_abandoned() noexcept { ++abandoned; }

int64_t abandoned_releases() noexcept { return abandoned; }

bool try_finish(Release& release) noexcept {
  if (release.failures >= kMaxFailures) {
    abandon(std::move(release));
    return true;
  }
  try {
    if (!release.is_due()) return false;
    const Release done = std::move(release);
    return true;
  } catch (const std::bad_alloc&) {  // try again later
  } catch (...) {
    ++release.failures;
  }
  return false;
}

ARROWDL_END_NAMESPACE
