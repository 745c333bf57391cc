// Tests the opening of a driver that is missing, too old, without a device, or fails half-way.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "backends/runtimes.hpp"
#include "support/device_test.hpp"

namespace arrowdl {
namespace {

using testing::FakeDriver;
using testing::load_fake;

using Open = Backend* (*)(const std::vector<const char*>& names, std::string* why_not);

struct Opened {
  std::unique_ptr<Backend> backend;
  std::string why_not;
};

Opened open(Open function, const char* library) {
  Opened opened;
  opened.backend.reset(function({"libno_such_driver.so.1", library}, &opened.why_not));
  return opened;
}

void expect_reason(const Opened& opened, const char* part) {
  EXPECT_EQ(opened.backend, nullptr);
  EXPECT_NE(opened.why_not.find(part), std::string::npos) << opened.why_not;
}

TEST(Open, AMissingLibrary) {
  expect_reason(open(open_cuda, "libnone_either.so"),
                "looked for libno_such_driver.so.1 libnone_either.so): install the driver");
  expect_reason(open(open_hip, "libnone_either.so"), "AMD's HIP runtime is not installed");
}

/// The system is not searched twice; a library that others load is found.
TEST(Open, ALibraryThatComesLater) {
  const auto folder = std::filesystem::temp_directory_path() / "arrowdl-open-test";
  const std::string later = folder / ("later" + std::to_string(getpid()) + ".so");
  expect_reason(open(open_cuda, later.c_str()), "is not installed");
  std::filesystem::create_directories(folder);
  // Later, the name alone finds the first library of that name, not the copy.
  testing::load_library(FAKE_CUDA_LIBRARY);
  std::filesystem::copy_file(FAKE_CUDA_LIBRARY, later);
  expect_reason(open(open_cuda, later.c_str()), "is not installed");
  testing::load_library(later.c_str());
  EXPECT_NE(open(open_cuda, later.c_str()).backend, nullptr);
  std::filesystem::remove_all(folder);
}

TEST(Open, ADriverTooOld) {
  expect_reason(open(open_cuda, FAKE_OLD_CUDA_LIBRARY), "has no cuStreamIsCapturing: the driver");
  expect_reason(open(open_hip, FAKE_CUDA_LIBRARY), "has no hipInit");
}

TEST(Open, NoDeviceAndOneLater) {
  FakeDriver& fake = load_fake(FAKE_CUDA_LIBRARY);
  fake.set_device_count(0);
  expect_reason(open(open_cuda, FAKE_CUDA_LIBRARY), "finds no device");
  expect_reason(open(open_cuda, FAKE_CUDA_LIBRARY), "CUDA_VISIBLE_DEVICES");
  fake.set_device_count(2);
  const Opened opened = open(open_cuda, FAKE_CUDA_LIBRARY);
  ASSERT_NE(opened.backend, nullptr) << opened.why_not;
  EXPECT_EQ(opened.backend->device_count(), 2);
}

TEST(Open, EveryCallFailsInTurn) {
  const std::pair<Open, const char*> drivers[] = {{open_cuda, FAKE_CUDA_LIBRARY},
                                                  {open_hip, FAKE_HIP_LIBRARY}};
  for (const auto& [function, library] : drivers) {
    FakeDriver& fake = load_fake(library);
    const int before = fake.count().contexts;
    int n = 1;
    for (;; ++n) {
      fake.fail_call(n, 999);
      const Opened opened = open(function, library);
      if (!fake.has_failed()) break;
      expect_reason(opened, "does not start");
      expect_reason(opened, "FAKE_ERROR");
    }
    EXPECT_EQ(n, 3) << "two calls open a driver";
    EXPECT_EQ(fake.count().contexts, before) << "no device is touched before it is used";
    fake.reset();
  }
}

TEST(Open, OnlyDevicesInUseHaveAContext) {
  FakeDriver& fake = load_fake(FAKE_CUDA_LIBRARY);
  const Opened opened = open(open_cuda, FAKE_CUDA_LIBRARY);
  ASSERT_NE(opened.backend, nullptr);
  const int before[] = {fake.contexts_of(0), fake.contexts_of(1)};
  for (int i = 0; i < 3; ++i) {
    const Device device{kDLCUDA, 1};
    opened.backend->memory()->return_stream(device,
                                            opened.backend->memory()->acquire_stream(device));
    opened.backend->memory()->work_stream(Device{kDLCUDAManaged, 1});
  }
  EXPECT_EQ(fake.contexts_of(0), before[0]);
  EXPECT_EQ(fake.contexts_of(1), before[1] + 1);
}

}  // namespace
}  // namespace arrowdl
