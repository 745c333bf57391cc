// Tests copies that processes share, on the fake drivers: here one process opens its own.
#include "arrowdl/shared_copy.hpp"

#include <fcntl.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "support/build_array.hpp"
#include "support/device_test.hpp"
#include "support/every_type.hpp"
#include "support/expect_error.hpp"
#include "support/random_slice.hpp"
#include "support/read_rows.hpp"
#include "support/values.hpp"

namespace arrowdl {
namespace {

using testing::Builder;
using testing::eventually;
using testing::expect_error;
using testing::read_rows;
using testing::Values;

bool has_view_layout(const Type& type) {
  if (type.layout == Layout::kBinaryView) return true;
  for (const Type& child : type.children) {
    if (has_view_layout(child)) return true;
  }
  return type.dictionary != nullptr && has_view_layout(*type.dictionary);
}

int64_t read_number(const std::string& text, std::size_t at) {
  int64_t number;
  std::memcpy(&number, text.data() + at, sizeof(number));
  return number;
}

void write_number(std::string& text, std::size_t at, int64_t number) {
  std::memcpy(&text[at], &number, sizeof(number));
}

class SharedCopyTest : public testing::DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    objects_ = live_objects();
  }
  void TearDown() override {
    EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
    EXPECT_EQ(live_objects(), objects_);
    DeviceTest::TearDown();
  }

  DeviceArray make_bytes(const std::string& bytes) {
    Builder builder(1);
    Values rows;
    for (const char byte : bytes) rows.push_back(testing::number(byte));
    return copy_array(builder.import(testing::field("c"), rows), device_);
  }

  static DeviceArray open(const SharedCopy& shared) {
    return open_shared_copy(shared.description, shared.descriptor.get());
  }

  static Values read(const DeviceArray& array) { return read_rows(copy_array(array, Device{})); }

  int64_t objects_ = 0;
};
INSTANTIATE_DEVICE_TESTS(SharedCopyTest);

TEST_P(SharedCopyTest, EveryTypeComesBack) {
  for (const testing::NamedSchema& named : testing::every_type()) {
    SCOPED_TRACE(named.name);
    const OwnedSchema schema = named.make();
    if (has_view_layout(parse_schema(*schema.get()))) continue;
    for (unsigned seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(seed);
      Builder builder(seed);
      auto [array, expected] = testing::make_slice(builder, schema);
      SharedCopy shared = make_shared_copy(copy_array(array, device_));
      array = DeviceArray();
      const DeviceArray opened = open(shared);
      shared = SharedCopy();
      ASSERT_EQ(opened.device(), device_);
      ASSERT_FALSE(opened.sync_event()) << "the sender has waited";
      ASSERT_EQ(read(opened), expected);
      ASSERT_EQ(to_string(opened.type()), to_string(parse_schema(*schema.get())));
    }
  }
}

DeviceArray import_with_metadata() {
  OwnedSchema schema = testing::field("c");
  EXPECT_EQ(ArrowSchemaSetName(schema.get(), "a name"), NANOARROW_OK);
  nanoarrow::UniqueBuffer pairs;
  ArrowMetadataBuilderInit(pairs.get(), nullptr);
  ArrowMetadataBuilderAppend(pairs.get(), ArrowCharView("key"), ArrowCharView("value"));
  ArrowSchemaSetMetadata(schema.get(), reinterpret_cast<const char*>(pairs->data));
  schema->flags = 0;
  Builder builder(1);
  return builder.import(schema, {testing::number(1)});
}

TEST_P(SharedCopyTest, NamesMetadataAndFlagsComeBack) {
  const DeviceArray array = copy_array(import_with_metadata(), device_);
  const OwnedSchema opened = open(make_shared_copy(array)).export_schema();
  EXPECT_STREQ(opened->name, "a name");
  EXPECT_EQ(opened->flags, 0);
  ArrowStringView value;
  ArrowMetadataGetValue(opened->metadata, ArrowCharView("key"), &value);
  EXPECT_EQ(std::string(value.data, static_cast<std::size_t>(value.size_bytes)), "value");
}

/// A mapping keeps the memory, and so does a descriptor: no process has to outlive another.
TEST_P(SharedCopyTest, TheMemoryStaysAsLongAsSomethingRefersToIt) {
  SharedCopy shared = make_shared_copy(make_bytes("abcd"));
  const auto has_nothing = [&] {
    empty_staging_pool();
    return fake_->count().allocations == before_.allocations;
  };
  EXPECT_TRUE(eventually(has_nothing)) << "the sender keeps but the descriptor";
  const DeviceArray first = open(shared);
  const DeviceArray second = open(shared);
  EXPECT_NE(first.buffer(1), second.buffer(1));
  shared = SharedCopy();
  EXPECT_EQ(read(first), read(second));
}

TEST_P(SharedCopyTest, WhatWasOpenedIsSentOn) {
  const DeviceArray opened = open(make_shared_copy(make_bytes("abcd")));
  EXPECT_EQ(read(open(make_shared_copy(opened.slice(1, 2)))), read(make_bytes("bc")));
}

TEST_P(SharedCopyTest, PeersMayReadIt) {
  const Device second{GetParam().device, 1};
  const DeviceArray opened = open(make_shared_copy(make_bytes("abcd")));
  EXPECT_EQ(read(copy_array(opened, second)), read(make_bytes("abcd")));
}

TEST_P(SharedCopyTest, TheCopyWaitsForItsSourceAndTheHostForTheCopy) {
  DeviceArray source = make_bytes("abcd");
  source.synchronize();
  const Gated gated = take_gated_stream();
  auto* const bytes = const_cast<uint8_t*>(source.buffer_as<uint8_t>(1) + source.offset());
  fake_->enqueue_fill(0, gated.stream, bytes, 'z', 4);
  const OwnedEvent written = OwnedEvent::record(device_, gated.stream);
  OwnedDeviceArray exported = source.export_device_array();
  exported->sync_event = written.handle().get();
  const DeviceArray pending = DeviceArray::import(source.export_schema(), std::move(exported));
  const int waits = fake_->host_waits();
  std::atomic<bool> is_open{false};
  std::thread opener([&] {
    EXPECT_TRUE(eventually([&] { return fake_->host_waits() > waits; }));
    is_open = true;
    fake_->open_gate(gated.gate);
  });
  const SharedCopy shared = make_shared_copy(pending);
  EXPECT_TRUE(is_open) << "it has not waited";
  opener.join();
  EXPECT_EQ(read(open(shared)), read(make_bytes("zzzz")));
}

/// The end of a mapping waits for the device, so it is on arrowdl's own thread, and after the work
/// of the streams that read it.
TEST_P(SharedCopyTest, ItStaysMappedUntilItsReadersAreDone) {
  DeviceArray opened = open(make_shared_copy(make_bytes("abcd")));
  const Gated gated = take_gated_stream();
  opened.record_stream(gated.stream);
  const void* const memory = opened.buffer_as<uint8_t>(1) + opened.offset();
  const auto seen = read_on(gated.stream, memory, 4);
  opened = DeviceArray();
  EXPECT_GE(pending_releases(), 1);
  fake_->open_gate(gated.gate);
  fake_->drain(0, gated.stream);
  EXPECT_EQ(*seen, (std::vector<uint8_t>{'a', 'b', 'c', 'd'}));
}

TEST_P(SharedCopyTest, ProgramsDoNotInheritTheDescriptor) {
  const SharedCopy shared = make_shared_copy(make_bytes("abcd"));
  EXPECT_EQ(fcntl(shared.descriptor.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(fcntl(shared.descriptor.duplicate().get(), F_GETFD), FD_CLOEXEC);
}

TEST_P(SharedCopyTest, AnArrayWithoutBytesHasNoMemory) {
  const SharedCopy shared = make_shared_copy(make_bytes("").slice(0, 0));
  EXPECT_FALSE(shared.descriptor);
  EXPECT_EQ(open(shared).length(), 0);
  EXPECT_EQ(open(shared).device(), device_);
}

TEST_P(SharedCopyTest, OtherMemoryIsRefused) {
  Builder builder(1);
  const DeviceArray host = builder.import(testing::field("c"), {testing::number(1)});
  expect_error(ErrorKind::kBuffer, "cpu:0 cannot be shared", [&] { make_shared_copy(host); });
  const DeviceArray pinned = copy_array(host, {GetParam().host, 0});
  expect_error(ErrorKind::kBuffer, "_host:0 cannot be shared", [&] { make_shared_copy(pinned); });
  const DeviceArray array = make_bytes("abcd");
  fake_->set_sharing(false);
  expect_error(ErrorKind::kBuffer, "MemCreate: FAKE_ERROR", [&] { make_shared_copy(array); });
}

TEST_P(SharedCopyTest, NoMemoryIsAnErrorAfterASecondTry) {
  const DeviceArray array = make_bytes("abcd");
  fake_->set_capacity(1 << 20);
  expect_error(ErrorKind::kMemory, "send fewer rows", [&] { make_shared_copy(array); });
}

/// Whatever call fails, nothing is left behind.
TEST_P(SharedCopyTest, EveryCallMayFail) {
  constexpr int kSomeError = 999;
  DeviceArray array = make_bytes("abcd");
  array.synchronize();
  int failures = 0;
  for (int n = 1; failures + 1 == n; ++n) {
    fake_->fail_call(n, kSomeError);
    try {
      const DeviceArray opened = open(make_shared_copy(array));
    } catch (const Error&) {
    }  // it goes on without some, such as those at the end of a stream
    if (fake_->has_failed()) ++failures;
    fake_->fail_call(0, 0);
    ASSERT_TRUE(eventually([] { return pending_releases() == 0; })) << n;
  }
  EXPECT_GT(failures, 20);
  array = DeviceArray();
  accept_abandoned();
}

/// Only the device itself needs access: other copies go without.
TEST_P(SharedCopyTest, APeerMayRefuseAccess) {
  DeviceArray array = make_bytes("abcd");
  array.synchronize();
  int refusals = 0;
  bool has_failed = true;
  for (int n = 1; has_failed; ++n) {
    fake_->fail_call(n, 999);
    try {
      make_shared_copy(array);
    } catch (const Error& error) {
      if (std::strstr(error.what(), "MemSetAccess") != nullptr) ++refusals;
    }
    has_failed = fake_->has_failed();
    fake_->fail_call(0, 0);
    ASSERT_TRUE(eventually([] { return pending_releases() == 0; })) << n;
  }
  EXPECT_EQ(refusals, 1);
  array = DeviceArray();
  accept_abandoned();
}

/// ROCm 7.1 takes the descriptor by value, as CUDA does, earlier ones a pointer to it.
TEST_P(SharedCopyTest, NewerVersionsOpenItToo) {
  const SharedCopy shared = make_shared_copy(make_bytes("abcd"));
  fake_->set_version(70125424);
  EXPECT_EQ(read(open(shared)), read(make_bytes("abcd")));
}

TEST_P(SharedCopyTest, AnotherThreadMayCaptureAGraph) {
  DeviceArray array = make_bytes("abcd");
  array.synchronize();
  const Values expected = read(array);
  fake_->set_global_capture(true);
  DeviceArray opened = open(make_shared_copy(array));
  EXPECT_EQ(read(opened), expected);
  opened = DeviceArray();
  EXPECT_TRUE(eventually([] { return pending_releases() == 0; }));
  EXPECT_FALSE(fake_->is_capture_broken());
  fake_->set_global_capture(false);
}

TEST_P(SharedCopyTest, AGpuThatIsNotHereIsNamed) {
  SharedCopy shared = make_shared_copy(make_bytes("abcd"));
  const std::size_t at = shared.description.find("0000:01:00.0");
  ASSERT_NE(at, std::string::npos);
  shared.description[at + 6] = '7';
  expect_error(ErrorKind::kBuffer, "memory of the GPU 0000:07:00.0 GPU-a0a0",
               [&] { open(shared); });
  expect_error(ErrorKind::kBuffer, "this process has 0000:01:00.0 GPU-a0a0", [&] { open(shared); });
}

TEST_P(SharedCopyTest, ADescriptionThatIsCutOffIsRefused) {
  const SharedCopy shared = make_shared_copy(make_bytes("abcd"));
  for (std::size_t size = 0; size < shared.description.size(); ++size) {
    const std::string cut = shared.description.substr(0, size);
    expect_error(ErrorKind::kValue, "does not describe a shared array",
                 [&] { open_shared_copy(cut, shared.descriptor.get()); });
  }
}

/// Whatever it says then, nothing beyond it is read. Many changes make another description.
TEST_P(SharedCopyTest, AnyByteOfADescriptionMayBeWrong) {
  const SharedCopy shared = make_shared_copy(copy_array(import_with_metadata(), device_));
  int refusals = 0;
  for (std::size_t i = 0; i < shared.description.size(); ++i) {
    for (const int change : {1, 0x7F, 0x80, 0xFF}) {
      std::string changed = shared.description;
      changed[i] = static_cast<char>(changed[i] ^ change);
      try {
        open_shared_copy(changed, shared.descriptor.get());
      } catch (const Error&) {
        ++refusals;
      }
    }
  }
  EXPECT_GT(refusals, 100);
}

TEST_P(SharedCopyTest, RowsBeyondTheirBuffersAreRefused) {
  constexpr std::size_t kFromEnd = 10 * sizeof(int64_t);  // rows, ..., children, dictionary
  SharedCopy shared = make_shared_copy(make_bytes("abcd"));
  const std::size_t at = shared.description.size() - kFromEnd;
  ASSERT_EQ(read_number(shared.description, at), 4);
  write_number(shared.description, at, 65);
  expect_error(ErrorKind::kValue, "does not describe a shared array", [&] { open(shared); });
}

TEST_P(SharedCopyTest, ABufferWithoutMemoryIsRefused) {
  constexpr std::size_t kFromEnd = 4 * sizeof(int64_t);  // size, offset, children, dictionary
  SharedCopy shared = make_shared_copy(make_bytes("").slice(0, 0));
  const std::size_t at = shared.description.size() - kFromEnd;
  ASSERT_EQ(read_number(shared.description, at), -1);
  write_number(shared.description, at, 0);
  expect_error(ErrorKind::kValue, "does not describe a shared array", [&] { open(shared); });
}

TEST_P(SharedCopyTest, EndlessNestingIsRefused) {
  SharedCopy shared = make_shared_copy(make_bytes("").slice(0, 0));
  const std::string node = shared.description.substr(shared.description.rfind('c') - 8);
  shared.description.resize(shared.description.size() - node.size());
  std::string level(8 + 2 + 10 * 8, 0);
  write_number(level, 0, 2);
  level.replace(8, 2, "+s");
  write_number(level, 10, -1);       // no name
  write_number(level, 10 + 8, -1);   // no metadata
  write_number(level, 10 + 48, 1);   // one buffer,
  write_number(level, 10 + 56, -1);  // absent
  write_number(level, 10 + 72, 1);   // one child
  for (int i = 0; i < 300'000; ++i) shared.description += level;
  shared.description += node;
  expect_error(ErrorKind::kValue, "does not describe a shared array", [&] { open(shared); });
}

TEST_P(SharedCopyTest, ADescriptorOfSomethingElseIsRefused) {
  const SharedCopy shared = make_shared_copy(make_bytes("abcd"));
  const FileDescriptor other(::open("/dev/null", O_RDONLY));
  for (const int descriptor : {-1, other.get()}) {
    expect_error(ErrorKind::kBuffer, "ImportFromShareableHandle: ", [&] {
      open_shared_copy(shared.description, descriptor);
    });
  }
}

}  // namespace
}  // namespace arrowdl
