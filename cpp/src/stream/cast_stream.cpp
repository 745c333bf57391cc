// Casts the arrays of a stream to a requested schema.
#include <memory>

#include "array/host_access.hpp"
#include "arrowdl/cast_to_schema.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/stream.hpp"
#include "cast/plan_cast.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

class CastStream final : public ArrayStream {
 public:
  CastStream(OwnedStream source, CastPlan plan, CastTarget target)
      : ArrayStream(plan.schema, target == CastTarget::kHost ? kDLCPU : source->device_type()),
        source_(std::move(source)),
        plan_(std::move(plan)) {}

  DeviceArray next(int64_t max_rows) override {
    const DeviceArray array = source_->next(max_rows);
    return array ? apply_cast(array, plan_) : DeviceArray();
  }

 private:
  OwnedStream source_;
  CastPlan plan_;
};

}  // namespace

OwnedStream cast_stream(OwnedStream&& stream, const std::shared_ptr<const ParsedSchema>& requested,
                        CastTarget target) {
  const Device device{stream->device_type(), 0};
  if (target == CastTarget::kHost) require_host_readable(device, "cast a stream for the host");
  auto plan = plan_cast(stream->schema()->type, requested, {device, target, false});
  if (!plan) return std::move(stream);
  return std::make_unique<CastStream>(std::move(stream), std::move(*plan), target);
}

ARROWDL_END_NAMESPACE
