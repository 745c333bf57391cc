// The backend of OpenCL, through its ICD loader. A sync_event is a cl_event*, a GPU stream a
// cl_command_queue, a data pointer a cl_mem. OpenCL makes queues and memory only in a context,
// which the device ids of Arrow and DLPack do not name: arrowdl uses the queues and events of
// others.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "arrowdl/error.hpp"
#include "arrowdl/namespace.hpp"
#include "backends/runtime_process.hpp"
#include "backends/runtimes.hpp"
#include "backends/symbol_table.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

struct Status {
  int code;
  const char* name;
};

// What calls for devices, queues and events return, and how commands end.
// Source: OpenCL API specification 3.0, appendix "Error Codes"; cl_khr_icd.
constexpr Status kStatuses[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

constexpr bool is_descending() {
  for (std::size_t i = 1; i < std::size(kStatuses); ++i) {
    if (kStatuses[i].code >= kStatuses[i - 1].code) return false;
  }
  return true;
}
static_assert(is_descending(), "every status stands here once");

/// "CL_INVALID_EVENT (-58)"
std::string describe_opencl_status(int status) {
  const auto* const found = std::find_if(std::begin(kStatuses), std::end(kStatuses),
                                         [&](const Status& row) { return row.code == status; });
  if (found == std::end(kStatuses)) return concat("status ", status);
  return concat(found->name, " (", status, ")");
}

// The values of OpenCL's enumerations that are used here.
constexpr unsigned kPlatformVersion = 0x0901;
constexpr uint64_t kAllDevices = 0xFFFFFFFF;
constexpr unsigned kContextDevices = 0x1081;
constexpr unsigned kQueueContext = 0x1090;
constexpr unsigned kEventQueue = 0x11D0;
constexpr unsigned kEventStatus = 0x11D3;
constexpr unsigned kEventContext = 0x11D4;
constexpr int kComplete = 0;
constexpr int kQueued = 3;
constexpr int kAnEventFailed = -14;
constexpr int kPlatformNotFound = -1001;

/// object, what to ask, size of the answer, the answer, size that the answer needs
using GetInfo = Call<void*, unsigned, std::size_t, void*, std::size_t*>;
/// queue, events to wait for (none: all work before), the new event
using Enqueue = Call<void*, unsigned, void* const*, void**>;

struct OpenClCalls {
  Call<unsigned, void**, unsigned*> get_platforms;
  Call<void*, uint64_t, unsigned, void**, unsigned*> get_devices;
  GetInfo get_platform_info;
  GetInfo get_context_info;
  GetInfo get_queue_info;
  GetInfo get_event_info;
  AnyCall create_queue;  // returns the queue
  Call<void*> retain_queue;
  Call<void*> release_queue;
  Call<void*> flush;
  Enqueue enqueue_marker;
  Enqueue enqueue_barrier;
  Call<unsigned, void* const*> wait_for_events;
  Call<void*> release_event;
};

template <auto Member>
constexpr Symbol<OpenClCalls> row(const char* name) {
  return {name, find_slot<OpenClCalls, Member>};
}

constexpr Symbol<OpenClCalls> kSymbols[] = {
    row<&OpenClCalls::get_platforms>("clGetPlatformIDs"),
    row<&OpenClCalls::get_devices>("clGetDeviceIDs"),
    row<&OpenClCalls::get_platform_info>("clGetPlatformInfo"),
    row<&OpenClCalls::get_context_info>("clGetContextInfo"),
    row<&OpenClCalls::get_queue_info>("clGetCommandQueueInfo"),
    row<&OpenClCalls::get_event_info>("clGetEventInfo"),
    row<&OpenClCalls::create_queue>("clCreateCommandQueue"),
    row<&OpenClCalls::retain_queue>("clRetainCommandQueue"),
    row<&OpenClCalls::release_queue>("clReleaseCommandQueue"),
    row<&OpenClCalls::flush>("clFlush"),
    row<&OpenClCalls::enqueue_marker>("clEnqueueMarkerWithWaitList"),
    row<&OpenClCalls::enqueue_barrier>("clEnqueueBarrierWithWaitList"),
    row<&OpenClCalls::wait_for_events>("clWaitForEvents"),
    row<&OpenClCalls::release_event>("clReleaseEvent"),
};

/// The cl_event to which a sync_event points.
void* handle_of(EventHandle event) noexcept { return *static_cast<void**>(event.get()); }

class OpenCl final : public Backend, private StreamOps {
 public:
  OpenCl(std::string library_name, const OpenClCalls& calls)
      : library_name_(std::move(library_name)), calls_(calls) {}

  /// Finds the devices. Returns why that fails, or an empty string.
  std::string start();

  const char* name() const noexcept override { return "OpenCL"; }
  std::string version() override { return concat(versions_, " (", library_name_, ")"); }
  int64_t device_count() override { return device_count_; }
  StreamOps* streams() noexcept override { return this; }
  const char* limits() const noexcept override {
    return "an OpenCL queue and a cl_mem belong to a context, which a device's number does not "
           "name; do it in the library that made the data, and say which queue the work is on "
           "(stream=queue)";
  }

  void synchronize(const Device& device, EventHandle event) override;
  bool is_complete(const Device& device, EventHandle event) override {
    process_.require_current(device, name());
    return find_status(device, handle_of(event)) == kComplete;
  }

 private:
  class OwnQueue;

  EventHandle record(const Device& device, StreamHandle queue) override {
    require_queue(device, queue);
    return mark(device, queue, {});
  }
  void wait(const Device& device, StreamHandle queue, EventHandle event) override;
  void synchronize_stream(const Device& device, StreamHandle queue) override;
  void destroy(const Device&, EventHandle event) noexcept override {
    if (!process_.is_current()) return;
    const std::unique_ptr<void*> cell(static_cast<void**>(event.get()));
    calls_.release_event(*cell);
  }
  EventHandle join(const Device& device, const std::vector<EventHandle>& events) override;

  StreamHandle retain_stream(const Device& device, StreamHandle queue) override {
    require_queue(device, queue);
    require(device, calls_.retain_queue, queue.get());
    return queue;
  }
  void release_stream(const Device&, StreamHandle queue) noexcept override {
    if (process_.is_current()) calls_.release_queue(queue.get());
  }

  template <typename... Args, typename... Given>
  static void require(const Device& device, const Call<Args...>& call, Given... args) {
    if (const int status = call(args...); status != 0) raise(device, call.name, status);
  }
  [[noreturn]] static void raise(const Device& device, const char* call, int status) {
    throw Error(ErrorKind::kRuntime, concat(call, " failed on ", to_string(device), ": ",
                                            describe_opencl_status(status)));
  }
  [[noreturn]] static void raise_failed(const Device& device, int status) {
    throw Error(ErrorKind::kRuntime, concat("the work before the event on ", to_string(device),
                                            " failed: ", describe_opencl_status(status)));
  }
  void require_queue(const Device& device, StreamHandle queue) const;

  /// The handle that `get` returns for the property `what` of `object`.
  static void* find_handle(const Device& device, const GetInfo& get, void* object, unsigned what) {
    void* handle = nullptr;
    require(device, get, object, what, sizeof(handle), &handle, nullptr);
    return handle;
  }
  int find_status(const Device& device, void* handle) const;
  EventHandle mark(const Device& device, StreamHandle queue,
                   const std::vector<void*>& handles) const;
  std::string find_version(void* platform) const;

  const std::string library_name_;
  const OpenClCalls calls_;
  const RuntimeProcess process_;
  std::string versions_;
  int64_t device_count_ = 0;
};

/// A queue of ours in a context. OpenCL keeps it until its work is done.
class OpenCl::OwnQueue {
 public:
  OwnQueue(const OpenCl& opencl, const Device& device, void* context) : opencl_(opencl) {
    const OpenClCalls& calls = opencl.calls_;
    std::size_t size = 0;
    require(device, calls.get_context_info, context, kContextDevices, size, nullptr, &size);
    std::vector<void*> devices(size / sizeof(void*));
    require(device, calls.get_context_info, context, kContextDevices, size, devices.data(),
            nullptr);
    int status = 0;
    using Create = void* (*)(void* context, void* device, uint64_t properties, int* status);
    const auto create = reinterpret_cast<Create>(calls.create_queue.function);
    queue_ = create(context, devices.front(), 0, &status);
    if (queue_ == nullptr) raise(device, calls.create_queue.name, status);
  }
  ~OwnQueue() { opencl_.calls_.release_queue(queue_); }
  OwnQueue(const OwnQueue&) = delete;
  OwnQueue& operator=(const OwnQueue&) = delete;

  StreamHandle get() const noexcept { return StreamHandle(queue_); }

 private:
  const OpenCl& opencl_;
  void* queue_ = nullptr;
};

std::string OpenCl::start() {
  unsigned count = 0;
  int status = calls_.get_platforms(0, nullptr, &count);
  if (status == kPlatformNotFound || (status == 0 && count == 0)) {
    return concat(library_name_,
                  " finds no platform: install the OpenCL driver (ICD) of the device, and see "
                  "whether OCL_ICD_VENDORS hides it");
  }
  std::vector<void*> platforms(count);
  if (status == 0) status = calls_.get_platforms(count, platforms.data(), nullptr);
  if (status != 0) {
    return concat(library_name_, " does not start, ", calls_.get_platforms.name, " says ",
                  describe_opencl_status(status), ": see whether the device's driver is installed");
  }
  for (void* platform : platforms) {
    unsigned devices = 0;
    status = calls_.get_devices(platform, kAllDevices, 0, nullptr, &devices);
    if (status == 0) device_count_ += devices;
    versions_ += concat(versions_.empty() ? "" : "; ", find_version(platform));
  }
  return {};
}

/// "3.0 PoCL 3.1", without the "OpenCL " that the runtime writes before it.
std::string OpenCl::find_version(void* platform) const {
  std::size_t size = 0;
  if (calls_.get_platform_info(platform, kPlatformVersion, 0, nullptr, &size) != 0) return "?";
  std::string text(size, '\0');
  if (calls_.get_platform_info(platform, kPlatformVersion, size, text.data(), nullptr) != 0) {
    return "?";
  }
  text.resize(std::min(text.find('\0'), text.size()));
  const std::string prefix = "OpenCL ";
  return text.compare(0, prefix.size(), prefix) == 0 ? text.substr(prefix.size()) : text;
}

// ---------------------------------------------------------------- events

void OpenCl::wait(const Device& device, StreamHandle queue, EventHandle event) {
  require_queue(device, queue);
  void* const handle = handle_of(event);
  find_status(device, handle);
  // Loaders pass the event to the queue's driver, which may not be the one that knows it.
  if (find_handle(device, calls_.get_event_info, handle, kEventContext) !=
      find_handle(device, calls_.get_queue_info, queue.get(), kQueueContext)) {
    raise_buffer_error("the queue and the event on ", to_string(device),
                       " are of two OpenCL contexts, across which nothing is ordered: use a queue "
                       "of the context that the memory is of");
  }
  require(device, calls_.enqueue_barrier, queue.get(), 1U, &handle, nullptr);
}

void OpenCl::synchronize_stream(const Device& device, StreamHandle queue) {
  const std::unique_ptr<void*> cell(static_cast<void**>(record(device, queue).get()));
  const auto release = [this](void* handle) { calls_.release_event(handle); };
  const std::unique_ptr<void, decltype(release)> event(*cell, release);
  synchronize(device, EventHandle(cell.get()));
}

void OpenCl::synchronize(const Device& device, EventHandle event) {
  process_.require_current(device, name());
  void* const handle = handle_of(event);
  const int status = calls_.wait_for_events(1, &handle);
  if (status == 0 || status == kAnEventFailed) find_status(device, handle);
  if (status != 0) raise(device, calls_.wait_for_events.name, status);
}

/// On a queue of ours: an in-order one of the user's would stand still until all have happened.
EventHandle OpenCl::join(const Device& device, const std::vector<EventHandle>& events) {
  process_.require_current(device, name());
  std::vector<void*> pending;
  void* context = nullptr;
  for (const EventHandle event : events) {
    void* const handle = handle_of(event);
    if (find_status(device, handle) == kComplete) continue;
    void* const own = find_handle(device, calls_.get_event_info, handle, kEventContext);
    if (!pending.empty() && own != context) {
      raise_buffer_error("the events on ", to_string(device),
                         " are of several OpenCL contexts, which no queue can wait for together: "
                         "call synchronize() on the arrays first");
    }
    context = own;
    pending.push_back(handle);
  }
  if (pending.empty()) return {};
  const OwnQueue queue(*this, device, context);
  return mark(device, queue.get(), pending);
}

/// The execution status; raises for one that says that the work failed.
int OpenCl::find_status(const Device& device, void* handle) const {
  int status = 0;
  require(device, calls_.get_event_info, handle, kEventStatus, sizeof(status), &status, nullptr);
  if (status < 0) raise_failed(device, status);
  if (status != kQueued) return status;
  // The queue may not be flushed yet, and without a flush its work would never run.
  void* const queue = find_handle(device, calls_.get_event_info, handle, kEventQueue);
  if (queue != nullptr) require(device, calls_.flush, queue);
  return status;
}

/// An event for `handles`, or for all that `queue` holds now.
EventHandle OpenCl::mark(const Device& device, StreamHandle queue,
                         const std::vector<void*>& handles) const {
  auto cell = std::make_unique<void*>(nullptr);  // sync_event points to the event's handle
  require(device, calls_.enqueue_marker, queue.get(), static_cast<unsigned>(handles.size()),
          handles.empty() ? nullptr : handles.data(), cell.get());
  const int status = calls_.flush(queue.get());  // otherwise it may never run
  if (status != 0) {
    calls_.release_event(*cell);
    raise(device, calls_.flush.name, status);
  }
  return EventHandle(cell.release());
}

void OpenCl::require_queue(const Device& device, StreamHandle queue) const {
  process_.require_current(device, name());
  if (!queue.is_null()) return;
  raise_buffer_error("the work on ", to_string(device),
                     " is on an OpenCL queue, and none was named: pass stream=queue");
}

}  // namespace

Backend* open_opencl(std::string* why_not) {
#ifdef _WIN32
  const std::vector<const char*> names = {"OpenCL.dll"};
#elif defined(__APPLE__)
  const std::vector<const char*> names = {"/System/Library/Frameworks/OpenCL.framework/OpenCL"};
#else
  const std::vector<const char*> names = {"libOpenCL.so.1"};
#endif
  constexpr LibraryText kText = {
      "OpenCL's loader",
      "install a loader of OpenCL 1.2",
      "install it with the driver of the device, or import pyopencl, which brings one",
  };
  return open_runtime<OpenCl>(kText, names, kSymbols, why_not);
}

ARROWDL_END_NAMESPACE
