// Copies a strided tensor to contiguous memory, by runs or by tiles.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "arrowdl/error.hpp"
#include "arrowdl/tensor_view.hpp"
#include "arrowdl/wait.hpp"
#include "backends/host_access.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

constexpr std::size_t kLine = 64;  // bytes of a cache line, on most machines

/// A dimension and its strides in bytes.
struct Step {
  int64_t extent;
  int64_t source;
  int64_t target;
};

/// The copy with its dimensions merged where possible: a plane of rows and columns, and the
/// dimensions that repeat it.
struct Plan {
  int64_t itemsize;
  Step columns{1, 0, 0};  // the innermost dimension of the target
  Step rows{1, 0, 0};
  Step outer[kMaxDims];
  int32_t n_outer = 0;

  bool has_runs() const { return columns.source == itemsize; }
};

/// Whether one step of `outer` is as far as all steps of `inner`.
bool merges(const Step& outer, const Step& inner) {
  int64_t end = 0;
  return checked_multiply(inner.source, inner.extent, &end) && outer.source == end;
}

/// Dimensions of more than one element, outermost first, neighbours merged. Returns how many.
int32_t merge_dimensions(const TensorView& view, Step* steps) {
  int32_t n = 0;
  int64_t target = view.nbytes();
  for (int32_t d = 0; d < view.ndim; ++d) {
    if (view.shape[d] == 1) continue;
    target /= view.shape[d];
    const Step step{view.shape[d], view.strides[d] * view.dtype->itemsize(), target};
    if (n > 0 && merges(steps[n - 1], step)) {
      steps[n - 1] = {steps[n - 1].extent * step.extent, step.source, step.target};
    } else {
      steps[n++] = step;
    }
  }
  return n;
}

/// Treats a run of 2 to 16 bytes as one element: a pair of floats is copied like a double.
void widen_items(Plan* plan, Step* steps, int32_t* n) {
  const int64_t run =
      *n > 1 && steps[*n - 1].source == plan->itemsize ? steps[*n - 1].extent * plan->itemsize : 0;
  if (run != 2 && run != 4 && run != 8 && run != 16) return;
  plan->itemsize = run;
  --*n;
}

Plan make_plan(const TensorView& view) {
  Plan plan;
  plan.itemsize = view.dtype->itemsize();
  int32_t n = merge_dimensions(view, plan.outer);
  widen_items(&plan, plan.outer, &n);
  if (n > 0) plan.columns = plan.outer[--n];
  if (n > 0) {
    // Rows are the dimension with the smallest stride in the source, where a transpose has its
    // runs; otherwise the dimension next to the columns in the target.
    Step* rows = plan.outer + n - 1;
    for (Step* step = plan.outer; step < plan.outer + n && !plan.has_runs(); ++step) {
      if (std::abs(step->source) < std::min(std::abs(rows->source), std::abs(plan.columns.source)))
        rows = step;
    }
    plan.rows = *rows;
    std::copy(rows + 1, plan.outer + n, rows);
    --n;
  }
  plan.n_outer = n;
  return plan;
}

void copy_runs(const Plan& plan, const uint8_t* source, uint8_t* target) {
  const auto run = static_cast<std::size_t>(plan.columns.extent * plan.itemsize);
  for (int64_t row = 0; row < plan.rows.extent; ++row) {
    std::memcpy(target + row * plan.rows.target, source + row * plan.rows.source, run);
  }
}

/// Rows [top, bottom) by columns [left, right) of the plane.
struct Tile {
  int64_t top;
  int64_t bottom;
  int64_t left;
  int64_t right;
};

template <std::size_t kItemsize>
void copy_tile(const Plan& plan, const Tile& tile, const uint8_t* source, uint8_t* target) {
  for (int64_t row = tile.top; row < tile.bottom; ++row) {
    const uint8_t* from = source + row * plan.rows.source;
    uint8_t* to = target + row * plan.rows.target;
    for (int64_t column = tile.left; column < tile.right; ++column) {
      std::memcpy(to + column * static_cast<int64_t>(kItemsize),
                  from + column * plan.columns.source, kItemsize);
    }
  }
}

/// Copies a whole tile whose columns are cache lines of the source. Reads each line at once, since
/// lines at a power-of-two distance evict one another.
template <std::size_t kItemsize>
void transpose_tile(const Plan& plan, const Tile& tile, const uint8_t* source, uint8_t* target) {
  constexpr std::size_t kTile = kLine / kItemsize;
  uint8_t lines[kTile][kLine];
  source += tile.top * plan.rows.source + tile.left * plan.columns.source;
  target += tile.top * plan.rows.target + tile.left * static_cast<int64_t>(kItemsize);
  for (std::size_t column = 0; column < kTile; ++column) {
    std::memcpy(lines[column], source, kLine);
    source += plan.columns.source;
  }
  for (std::size_t row = 0; row < kTile; ++row) {
    uint8_t items[kLine];
    for (std::size_t column = 0; column < kTile; ++column) {
      std::memcpy(items + column * kItemsize, lines[column] + row * kItemsize, kItemsize);
    }
    std::memcpy(target, items, kLine);
    target += plan.rows.target;
  }
}

/// Copies tile by tile, so that a transpose uses each cache line while it is cached.
template <std::size_t kItemsize>
void copy_tiles(const Plan& plan, const uint8_t* source, uint8_t* target) {
  constexpr auto kTile = static_cast<int64_t>(kLine / kItemsize);
  const bool has_lines = plan.rows.source == static_cast<int64_t>(kItemsize);
  for (int64_t top = 0; top < plan.rows.extent; top += kTile) {
    const int64_t bottom = std::min(top + kTile, plan.rows.extent);
    for (int64_t left = 0; left < plan.columns.extent; left += kTile) {
      const Tile tile{top, bottom, left, std::min(left + kTile, plan.columns.extent)};
      const bool is_whole = bottom - top == kTile && tile.right - left == kTile;
      if (has_lines && is_whole) {
        transpose_tile<kItemsize>(plan, tile, source, target);
      } else {
        copy_tile<kItemsize>(plan, tile, source, target);
      }
    }
  }
}

using CopyPlane = void (*)(const Plan&, const uint8_t*, uint8_t*);

CopyPlane choose_kernel(const Plan& plan) {
  if (plan.has_runs()) return copy_runs;
  switch (plan.itemsize) {
    case 1:
      return copy_tiles<1>;
    case 2:
      return copy_tiles<2>;
    case 4:
      return copy_tiles<4>;
    case 8:
      return copy_tiles<8>;
    default:
      return copy_tiles<16>;
  }
}

void copy_planes(const TensorView& source, uint8_t* target) {
  const Plan plan = make_plan(source);
  const CopyPlane copy_plane = choose_kernel(plan);
  int64_t index[kMaxDims] = {};
  const uint8_t* from = source.data;
  while (true) {
    copy_plane(plan, from, target);
    int32_t d = plan.n_outer - 1;
    for (; d >= 0; --d) {  // one step along the innermost dimension that has steps left
      const Step& step = plan.outer[d];
      if (++index[d] < step.extent) {
        from += step.source;
        target += step.target;
        break;
      }
      index[d] = 0;
      from -= (step.extent - 1) * step.source;
      target -= (step.extent - 1) * step.target;
    }
    if (d < 0) return;
  }
}

}  // namespace

void copy_contiguous(const TensorView& source, uint8_t* target) {
  require_host_readable(source.device, "make a tensor contiguous");
  if (source.size() > 0) work_guarded(source.nbytes(), [&] { copy_planes(source, target); });
}

ARROWDL_END_NAMESPACE
