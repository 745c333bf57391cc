// Plans a cast to a requested schema from the types alone, and casts by it.
#include "cast/plan_cast.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "arrowdl/owned.hpp"
#include "cast/casts.hpp"
#include "cast/misfit.hpp"
#include "schema/make_schema.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

using SharedSchema = std::shared_ptr<const ParsedSchema>;

std::vector<std::pair<std::string_view, std::string_view>> list_metadata(const Type& type) {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  visit_metadata(*type.schema, [&](std::string_view key, std::string_view value) {
    pairs.emplace_back(key, value);
  });
  return pairs;
}

/// Whether two types are equal, names and metadata included.
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

/// `requested`, with a nullable root if that of `own` is: the flag of the root of a struct means
/// nothing, since it stands for a table (pyarrow does not set it).
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

/// What the cast takes on `device`; Fit::kNone also if the device does not allow it.
Fit find_fit_on(const CastScope& scope, const Type& from, const Type& to) {
  const Fit fit = find_fit(from, to);
  if (fit == Fit::kNone) return fit;
  if (fit == Fit::kConverted && !can_convert(scope.device, scope.target)) return Fit::kNone;
  const bool is_blind = !is_host_readable(scope.device) && !scope.knows_nulls;
  return is_blind && narrows_nullability(from, to) ? Fit::kNone : fit;
}

}  // namespace

std::optional<CastPlan> plan_cast(const Type& from, const SharedSchema& requested,
                                  const CastScope& scope) {
  CastPlan plan{keep_root_nullable(from, requested), Fit::kNone};
  if (is_equal(from, plan.schema->type)) return std::nullopt;
  plan.fit = find_fit_on(scope, from, plan.schema->type);
  return plan.fit == Fit::kNone ? std::nullopt : std::optional<CastPlan>(std::move(plan));
}

DeviceArray apply_cast(const DeviceArray& array, const CastPlan& plan) {
  if (plan.fit != Fit::kConverted) {
    return array.derive(plan.schema, cast_rows(array, plan.schema->type));
  }
  array.synchronize();
  return DeviceArray::import(plan.schema, cast_rows(array, plan.schema->type));
}

DeviceArray cast_to_schema(const DeviceArray& array,
                           const std::shared_ptr<const ParsedSchema>& requested,
                           CastTarget target) {
  const auto plan = plan_cast(array.type(), requested, {array.device(), target, true});
  if (!plan) return array;
  try {
    return apply_cast(array, *plan);
  } catch (const Undecided&) {
    return array;  // what the protocol returns for a request that cannot be met
  }
}

ARROWDL_END_NAMESPACE
