#include <algorithm>
#include <string_view>

#include "array/host_access.hpp"
#include "arrowdl/cast.hpp"
#include "arrowdl/device_array.hpp"
#include "arrowdl/owned.hpp"
#include "arrowdl/stream.hpp"
#include "cast/cast.hpp"
#include "schema/copy_schema.hpp"

namespace arrowdl {
namespace {

using SharedSchema = std::shared_ptr<const ParsedSchema>;

std::vector<std::pair<std::string_view, std::string_view>> list_metadata(const Type& type) {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  visit_metadata(*type.schema, [&](std::string_view key, std::string_view value) {
    pairs.emplace_back(key, value);
  });
  return pairs;
}

/// Whether the schemas say the same, names and metadata included.
bool is_equal(const Type& a, const Type& b) {
  const bool is_same_node = std::string_view(a.schema->format) == b.schema->format &&
                            std::string_view(a.name()) == b.name() &&
                            a.schema->flags == b.schema->flags &&
                            a.children.size() == b.children.size() &&
                            (a.dictionary == nullptr) == (b.dictionary == nullptr) &&
                            list_metadata(a) == list_metadata(b);
  if (!is_same_node) return false;
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    if (!is_equal(a.children[i], b.children[i])) return false;
  }
  return a.dictionary == nullptr || is_equal(*a.dictionary, *b.dictionary);
}

/// `requested`, whose root may be null where that of `own` may: of a struct the root's flag says
/// nothing (pyarrow's schemas have none), nor does it of the table that it stands for.
SharedSchema keep_root_nullable(const Type& own, const SharedSchema& requested) {
  const Type& root = requested->type;
  const bool are_structs = own.layout == Layout::kStruct && root.layout == Layout::kStruct;
  if (!are_structs || !own.is_nullable() || root.is_nullable()) return requested;
  OwnedSchema schema = copy_schema(*root.schema);
  schema->flags |= ARROW_FLAG_NULLABLE;
  return share_schema(std::move(schema));
}

bool can_convert(const Device& device, CastTarget target) {
  return device.type == kDLCPU || (target == CastTarget::kHost && is_host_readable(device));
}

/// What `from`, on `device`, takes to become `to`: Fit::kNone as well where it cannot there.
/// `knows_nulls` says whether the arrays can be asked for nulls where the host cannot read them.
Fit find_fit_on(const Device& device, CastTarget target, const Type& from, const Type& to,
                bool knows_nulls) {
  const Fit fit = find_fit(from, to);
  if (fit == Fit::kNone) return fit;
  if (fit == Fit::kConverted && !can_convert(device, target)) return Fit::kNone;
  const bool is_blind = !is_host_readable(device) && !knows_nulls;
  return is_blind && narrows_nullability(from, to) ? Fit::kNone : fit;
}

/// `array` as find_fit_on has said that it can be. Raises Misfit where its values do not.
DeviceArray cast_array(const DeviceArray& array, const SharedSchema& requested, Fit fit) {
  const bool is_converted = fit == Fit::kConverted;
  if (is_converted) array.synchronize();
  OwnedDeviceArray made;
  cast_rows(array, requested->type).move(&made->array);
  const Device device = is_converted ? Device{} : array.device();
  made->device_type = device.type;
  made->device_id = to_arrow_device_id(device);
  made->sync_event = is_converted ? nullptr : array.sync_event().get();
  return DeviceArray::import(requested, std::move(made));
}

class CastStream final : public ArrayStream {
 public:
  CastStream(OwnedStream source, SharedSchema requested, Fit fit, CastTarget target)
      : ArrayStream(std::move(requested),
                    target == CastTarget::kHost ? kDLCPU : source->device_type()),
        source_(std::move(source)),
        fit_(fit) {}

  DeviceArray next(int64_t max_rows) override {
    const DeviceArray array = source_->next(max_rows);
    return array ? cast_array(array, schema(), fit_) : DeviceArray();
  }

 private:
  OwnedStream source_;
  Fit fit_;
};

}  // namespace

DeviceArray cast_to_schema(const DeviceArray& array, const SharedSchema& asked_for,
                           CastTarget target) {
  const SharedSchema requested = keep_root_nullable(array.type(), asked_for);
  if (is_equal(array.type(), requested->type)) return array;
  const Fit fit = find_fit_on(array.device(), target, array.type(), requested->type, true);
  if (fit == Fit::kNone) return array;
  try {
    return cast_array(array, requested, fit);
  } catch (const Misfit&) {
    return array;  // the protocol's answer to what cannot be given
  }
}

OwnedStream cast_stream(OwnedStream&& stream, const SharedSchema& asked_for, CastTarget target) {
  const Type& type = stream->schema()->type;
  const Device device{stream->device_type(), 0};
  if (target == CastTarget::kHost) require_host_readable(device, "cast a stream for the host");
  const SharedSchema requested = keep_root_nullable(type, asked_for);
  if (is_equal(type, requested->type)) return std::move(stream);
  const Fit fit = find_fit_on(device, target, type, requested->type, false);
  if (fit == Fit::kNone) return std::move(stream);
  return std::make_unique<CastStream>(std::move(stream), requested, fit, target);
}

}  // namespace arrowdl
