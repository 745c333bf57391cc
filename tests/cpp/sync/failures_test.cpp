// Tests every operation of a backend while each call of the driver fails in turn.
#include <functional>
#include <memory>

#include "backends/runtimes.hpp"
#include "support/device_test.hpp"

namespace arrowdl {
namespace {

using testing::DeviceTest;
using testing::FakeCounts;

constexpr int kUnknownFailure = 999;

class FailuresTest : public DeviceTest {
 protected:
  using Make = std::function<void*(Backend&)>;
  using Undo = std::function<void(Backend&, void*)>;

  std::unique_ptr<Backend> open() const {
    std::string why_not;
    const std::vector<const char*> names{GetParam().library};
    return std::unique_ptr<Backend>(GetParam().device == kDLCUDA ? open_cuda(names, &why_not)
                                                                 : open_hip(names, &why_not));
  }

  /// Runs `make` and `undo` on new backends; the first, second, … call of `make` fails. It either
  /// throws and makes nothing, or succeeds. Returns the number of its calls.
  int fail_making(const Make& make, const Undo& undo) {
    for (int n = 1;; ++n) {
      const std::unique_ptr<Backend> backend = open();
      const FakeCounts before = enter_as_caller(n);
      try {
        void* made = make(*backend);
        fake_->fail_call(0, 0);
        undo(*backend, made);
      } catch (const Error& error) {
        expect_words(error);
      }
      const bool has_failed = leave_as_caller();
      EXPECT_EQ(fake_->count().events, before.events) << "call " << n;
      EXPECT_EQ(fake_->count().allocations, before.allocations) << "call " << n;
      undo(*backend, make(*backend));  // the next time it works
      if (!has_failed) return n - 1;
    }
  }

  /// The same with failures of the calls of `undo`, which cannot report them. Drivers free an
  /// object even if they report an earlier failure; an object whose device cannot be entered is
  /// leaked.
  int fail_undoing(const Make& make, const Undo& undo) {
    for (int n = 1;; ++n) {
      const std::unique_ptr<Backend> backend = open();  // what it learns is its own
      void* made = make(*backend);
      enter_as_caller(n);
      undo(*backend, made);
      if (!leave_as_caller()) return n - 1;
    }
  }

 private:
  FakeCounts enter_as_caller(int failing_call) {
    fake_->set_current_context(1);
    context_ = fake_->current_context();
    const FakeCounts before = fake_->count();
    fake_->fail_call(failing_call, kUnknownFailure);
    return before;
  }

  bool leave_as_caller() {
    const bool has_failed = fake_->has_failed();
    fake_->fail_call(0, 0);
    EXPECT_EQ(fake_->current_context(), context_) << "the caller's context is another one";
    EXPECT_EQ(fake_->capture_mode(), 0);
    EXPECT_EQ(fake_->misuses(), 0);
    fake_->set_current_context(-1);
    return has_failed;
  }

  static void expect_words(const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::kRuntime) << text;
    EXPECT_NE(text.find(" failed on "), std::string::npos) << text;
    EXPECT_NE(text.find("FAKE_ERROR: so says the fake driver"), std::string::npos) << text;
  }

  int64_t context_ = 0;
};
INSTANTIATE_DEVICE_TESTS(FailuresTest);

void do_nothing(Backend&, void*) {}

TEST_P(FailuresTest, Events) {
  const StreamHandle stream = take_stream();
  const Make record = [&](Backend& backend) {
    return backend.streams()->record(device_, stream).get();
  };
  const Undo destroy = [&](Backend& backend, void* event) {
    backend.streams()->destroy(device_, EventHandle(event));
  };
  EXPECT_GE(fail_making(record, destroy), 6);
  EXPECT_GE(fail_undoing(record, destroy), 5);
  abandoned_ = fake_->count().events - before_.events;
  EXPECT_LE(abandoned_, 4) << "only where the context cannot be found, retained or entered";
}

TEST_P(FailuresTest, Waiting) {
  const StreamHandle stream = take_stream();
  const EventHandle event = backend_->streams()->record(device_, stream);
  fake_->drain(0, {});
  const auto nothing = [](const auto& verb) {
    return [verb](Backend& backend) -> void* {
      verb(backend);
      return nullptr;
    };
  };
  const Make verbs[] = {
      nothing([&](Backend& backend) { backend.streams()->wait(device_, stream, event); }),
      nothing([&](Backend& backend) { backend.synchronize(device_, event); }),
      nothing([&](Backend& backend) { backend.is_complete(device_, event); }),
      nothing([&](Backend& backend) { backend.streams()->is_capturing(device_, stream); }),
  };
  for (const Make& verb : verbs) EXPECT_GE(fail_making(verb, do_nothing), 5);
  backend_->streams()->destroy(device_, event);
}

TEST_P(FailuresTest, Join) {
  const Gated first = take_gated_stream();
  const Gated second = take_gated_stream();
  std::vector<EventHandle> events{backend_->streams()->record(device_, first.stream),
                                  backend_->streams()->record(device_, second.stream)};
  EXPECT_GE(
      fail_making([&](Backend& backend) { return backend.streams()->join(device_, events).get(); },
                  [&](Backend& backend, void* event) {
                    backend.streams()->destroy(device_, EventHandle(event));
                  }),
      20);
  fake_->open_gate(first.gate);
  fake_->open_gate(second.gate);
  for (const EventHandle event : events) backend_->streams()->destroy(device_, event);
}

TEST_P(FailuresTest, Streams) {
  const Make take = [&](Backend& backend) {
    return backend.memory()->acquire_stream(device_).get();
  };
  const Undo give = [&](Backend& backend, void* stream) {
    backend.memory()->return_stream(device_, StreamHandle(stream));
  };
  EXPECT_GE(fail_making(take, give), 5);
  EXPECT_GE(fail_undoing(take, give), 4);
  const int streams = fake_->count().streams;
  EXPECT_GE(
      fail_making([&](Backend& backend) { return backend.memory()->work_stream(device_).get(); },
                  do_nothing),
      5);
  EXPECT_LE(fake_->count().streams, streams + 16) << "one for each backend";
}

TEST_P(FailuresTest, Memory) {
  const StreamHandle stream = take_stream();
  for (const bool has_pools : {true, false}) {
    fake_->set_pools(has_pools);
    for (const int32_t type : {GetParam().device, GetParam().host}) {
      const Device device{type, 0};
      const Make allocate = [&](Backend& backend) {
        return backend.memory()->allocate(device, 8, stream);
      };
      const Undo free = [&](Backend& backend, void* memory) {
        backend.memory()->free(device, memory, stream);
      };
      EXPECT_GE(fail_making(allocate, free), 5);
      EXPECT_GE(fail_undoing(allocate, free), 5);
    }
  }
  const int kept = fake_->count().allocations - before_.allocations;
  EXPECT_LE(kept, 16) << "rather leaked than given back while the stream may use it";
  before_.allocations += kept;
}

TEST_P(FailuresTest, Copies) {
  const StreamHandle stream = take_stream();
  const auto memory = make_memory(8, stream);
  const std::vector<uint8_t> source(8, 1);
  EXPECT_GE(fail_making(
                [&](Backend& backend) -> void* {
                  backend.memory()->copy(device_, memory.get(), Device{}, source.data(), 8, stream);
                  return nullptr;
                },
                do_nothing),
            5);
  const OwnedEvent copied = OwnedEvent::record(device_, stream);
  synchronize_event(device_, copied.handle());  // `source` is read until then
}

class KernelFailuresTest : public FailuresTest {};
INSTANTIATE_TEST_SUITE_P(Fake, KernelFailuresTest, ::testing::Values(testing::kCuda),
                         testing::runtime_name);

TEST_P(KernelFailuresTest, Launches) {
  const StreamHandle stream = take_stream();
  const auto memory = make_memory(64, stream);
  const Bitmap bitmap{memory.get()};
  const uint64_t item = 0;
  const Make expand = [&](Backend& backend) -> void* {
    backend.kernels(device_)->unpack_bits(device_, memory.get() + 8, 8, bitmap, stream);
    return nullptr;
  };
  const Make fill = [&](Backend& backend) -> void* {
    backend.kernels(device_)->copy_set(device_, memory.get() + 8, 4, memory.get() + 8, bitmap,
                                       &item, 8, stream);
    return nullptr;
  };
  const Make join_bits = [&](Backend& backend) -> void* {
    backend.kernels(device_)->and_bits(device_, memory.get() + 8, 3, 9, bitmap, bitmap, stream);
    return nullptr;
  };
  for (const Make& make : {expand, fill, join_bits}) EXPECT_GE(fail_making(make, do_nothing), 8);
  fake_->drain(0, stream);
}

}  // namespace
}  // namespace arrowdl
