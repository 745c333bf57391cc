// Finds out what it takes to cast one type to another one.
#include "cast/find_fit.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "arrowdl/error.hpp"
#include "cast/common_shape.hpp"
#include "cast/find_cast.hpp"
#include "cast/match_fields.hpp"
#include "schema/layout_families.hpp"
#include "schema/schema_path.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

[[noreturn]] void raise_incompatible(const TypePath& path, const Type& to,
                                     const std::string& why_not) {
  raise_value_error(
      "the requested schema is incompatible with the data at ", to_string(path), ": ",
      to_string(*path.type), " is requested as ", to_string(to),
      why_not.empty() ? "" : concat(" (", why_not, ")"),
      "; a request chooses between forms of the same data: request one of these, or none and cast "
      "the result");
}

Fit find_fit_at(const TypePath& path, const Type& to);

/// Calls visit(child of `from`, child of `to`) for the pairs that a cast of the node leaves to
/// cast.
template <typename Visit>
void visit_pairs_to_cast(const Type& from, const Type& to, Cast cast, const Visit& visit) {
  if (cast == Cast::kDecode) return visit(*from.dictionary, to);
  if (cast == Cast::kEncode) return visit(from, *to.dictionary);
  if (cast == Cast::kDecodeRuns) return visit(from.children[1], to);
  if (cast == Cast::kNulls) return;
  if (cast == Cast::kReshape) {
    const std::vector<int64_t>& shape = *find_common_shape(from, to);
    const bool is_flat = from.extension == Extension::kFixedShapeTensor;
    return is_flat ? visit(from.children[0], *find_innermost(to, shape))
                   : visit(*find_innermost(from, shape), to.children[0]);
  }
  if (from.dictionary != nullptr && to.dictionary != nullptr) {
    visit(*from.dictionary, *to.dictionary);
  }
  if (from.children.size() != to.children.size()) return;
  const bool by_name = cast == Cast::kStruct;
  const std::vector<std::size_t> fields =
      by_name ? match_fields(from, to) : std::vector<std::size_t>();
  for (std::size_t i = 0; i < to.children.size(); ++i) {
    visit(from.children[by_name ? fields[i] : i], to.children[i]);
  }
}

bool is_in_order(const std::vector<std::size_t>& fields) {
  return std::is_sorted(fields.begin(), fields.end());
}

Fit fit_of(const Type& from, const Type& to, Cast cast) {
  if (cast == Cast::kSame) return Fit::kSame;
  if (cast != Cast::kStruct) return Fit::kConverted;
  return is_in_order(match_fields(from, to)) ? Fit::kSame : Fit::kShared;
}

Fit find_fit_at(const TypePath& path, const Type& to) {
  const Type& from = *path.type;
  const FoundCast found = find_cast(from, to);
  if (found.cast == Cast::kIncompatible) raise_incompatible(path, to, found.why_not);
  Fit children = Fit::kSame;
  visit_pairs_to_cast(from, to, found.cast, [&](const Type& child, const Type& wanted) {
    children =
        std::max(children, find_fit_at(&child == &from ? path : TypePath{&path, &child}, wanted));
  });
  // Unions are not rebuilt around other children, and nodes other than structs are copied for it.
  if (children > Fit::kSame && is_union(from)) {
    raise_incompatible(path, to, "members of unions are not converted");
  }
  if (children == Fit::kShared && found.cast != Cast::kStruct) children = Fit::kConverted;
  return std::max(children, fit_of(from, to, found.cast));
}

}  // namespace

Fit find_fit(const Type& from, const Type& to) { return find_fit_at(TypePath{nullptr, &from}, to); }

bool narrows_nullability(const Type& from, const Type& to) {
  if (from.is_nullable() && !to.is_nullable()) return true;
  bool narrows = false;
  visit_pairs_to_cast(from, to, find_cast(from, to).cast,
                      [&](const Type& child, const Type& wanted) {
                        narrows = narrows || narrows_nullability(child, wanted);
                      });
  return narrows;
}

ARROWDL_END_NAMESPACE
