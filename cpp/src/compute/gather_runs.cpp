// Gathers the run ends of run-end encoded arrays.
#include <limits>

#include "array/run_ends.hpp"
#include "arrowdl/error.hpp"
#include "compute/allocate_elements.hpp"
#include "compute/gather_layouts.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

template <typename RunEnd>
OwnedArray gather_run_ends(const Selection& selection,
                           const std::vector<RunReader<RunEnd>>& readers,
                           const std::vector<Range>& runs, int64_t run_count) {
  RunEnd* target = nullptr;
  ArrayParts parts;
  parts.length = run_count;
  parts.buffers = {Buffer(), allocate_elements(run_count, &target)};
  int64_t rows_before = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RowRange& range = selection.ranges[i];
    for (int64_t run = runs[i].start; run < runs[i].end(); ++run) {
      const int64_t end = readers[range.source].end_within(run, range.rows);
      *target++ = static_cast<RunEnd>(rows_before + end);
    }
    rows_before += range.rows.length;
  }
  return make_array(std::move(parts));
}

template <typename RunEnd>
ChildRows gather_runs_of(const Selection& selection, ArrayParts* parts) {
  if (selection.length > std::numeric_limits<RunEnd>::max()) {
    raise_buffer_error(selection.length, " rows are more than the int", sizeof(RunEnd) * 8,
                       " run ends of ", to_string(selection.type()),
                       " can count: cast to int64 run ends or decode them first");
  }
  const std::vector<RunReader<RunEnd>> readers(selection.sources.begin(), selection.sources.end());
  std::vector<Range> runs;
  std::vector<RowRange> values;
  int64_t run_count = 0;
  for (const RowRange& range : selection.ranges) {
    runs.push_back(readers[range.source].find_runs(range.rows));
    append_range(&values, range.source, runs.back());
    run_count = add_rows(run_count, runs.back().length);
  }
  parts->children.push_back(gather_run_ends(selection, readers, runs, run_count));
  return {select_child(selection.sources, 1), std::move(values)};
}

}  // namespace

ChildRows gather_runs(const Selection& selection, ArrayParts* parts) {
  return visit_run_ends(selection.type(), [&](auto zero) {
    return gather_runs_of<decltype(zero)>(selection, parts);
  });
}

ARROWDL_END_NAMESPACE
