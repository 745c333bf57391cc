// Shares the memory of trees of C structs, in the form that consumers accept.
#include "array/export_tree.hpp"

#include <utility>
#include <vector>

#include "schema/layout.hpp"
#include "util/bit_util.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Gives `shared` a table of buffers of its own.
const void** set_buffers(ArrowArray* shared, std::vector<const void*> buffers) {
  auto& own = static_cast<SharedNode<ArrowArray>*>(shared->private_data)->buffers;
  own = std::move(buffers);
  shared->buffers = own.data();
  return own.data();
}

/// Makes `array` rows [first, first + count) of what it is.
void narrow(const Type& type, int64_t first, int64_t count, ArrowArray* array) {
  const bool whole = first == 0 && array->length == count;
  // pyarrow refuses an offset where an array of strings has no rows.
  array->offset = count == 0 ? 0 : array->offset + first;
  array->length = count;
  if (type.layout == Layout::kNull) {
    array->null_count = count;
  } else if (!whole && array->null_count != 0) {
    array->null_count = -1;
  }
}

/// Moves the offset of `shared` into its children, which have `rows` rows for each one of it.
void move_offset_to_children(const Type& type, int64_t rows, ArrowArray* shared) {
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    narrow(type.children[i], shared->offset * rows, shared->length * rows, shared->children[i]);
  }
  shared->offset = 0;
}

}  // namespace

template <typename Node>
void share_tree(const Node& source, const std::shared_ptr<const void>& owner, Node* out) {
  const auto n_children = static_cast<std::size_t>(source.n_children);
  auto holder = std::make_unique<SharedNode<Node>>(owner, n_children);
  for (std::size_t i = 0; i < n_children; ++i) {
    share_tree(*source.children[i], owner, &holder->children[i]);
  }
  if (source.dictionary != nullptr) share_tree(*source.dictionary, owner, &holder->dictionary);
  *out = source;
  out->children = holder->pointers.data();
  out->dictionary = source.dictionary == nullptr ? nullptr : &holder->dictionary;
  out->private_data = holder.release();
  out->release = [](Node* node) noexcept {
    delete static_cast<SharedNode<Node>*>(node->private_data);
    node->release = nullptr;
  };
}

template void share_tree(const ArrowArray&, const std::shared_ptr<const void>&, ArrowArray*);
template void share_tree(const ArrowSchema&, const std::shared_ptr<const void>&, ArrowSchema*);

void tidy_for_export(const Type& type, ArrowArray* shared) {
  static constexpr int64_t kZero = 0;  // as one int64 or one int32
  const LayoutRow& row = layout_row(type.layout);
  if (type.layout == Layout::kNull) shared->n_buffers = 0;
  if (shared->length == 0) {
    if (row.has_offsets() && shared->buffers[1] == nullptr) {
      // Parentheses: braces would make a list of the two pointers.
      std::vector<const void*> buffers(shared->buffers, shared->buffers + shared->n_buffers);
      set_buffers(shared, std::move(buffers))[1] = &kZero;
      shared->offset = 0;
    } else if (row.buffer_count >= 3) {
      shared->offset = 0;
    }
  }
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    tidy_for_export(type.children[i], shared->children[i]);
  }
  if (type.dictionary != nullptr) tidy_for_export(*type.dictionary, shared->dictionary);
}

void move_offset_to_fields(const Type& type, ArrowArray* shared) {
  move_offset_to_children(type, 1, shared);
  shared->null_count = 0;
  set_buffers(shared, {nullptr});
}

void move_offsets_down(const Type& type, ArrowArray* shared) {
  if (type.layout == Layout::kFixedSizeList) {
    if (shared->buffers[0] != nullptr && shared->offset != 0) {
      const auto* bits = static_cast<const uint8_t*>(shared->buffers[0]);
      if (shared->offset % 8 == 0) {
        set_buffers(shared, {bits + shared->offset / 8});
      } else {
        auto& moved = static_cast<SharedNode<ArrowArray>*>(shared->private_data)->validity;
        moved.resize(static_cast<std::size_t>((shared->length + 7) / 8));
        copy_bits(bits, shared->offset, shared->length, moved.data());
        set_buffers(shared, {moved.data()});
      }
    }
    move_offset_to_children(type, type.list_size, shared);
  } else if (type.layout == Layout::kSparseUnion && shared->offset != 0 && shared->length != 0) {
    set_buffers(shared, {static_cast<const int8_t*>(shared->buffers[0]) + shared->offset});
    move_offset_to_children(type, 1, shared);
  } else if (type.layout == Layout::kStruct && shared->offset != 0 &&
             (shared->buffers[0] == nullptr || shared->null_count == 0)) {
    move_offset_to_fields(type, shared);
  }
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    move_offsets_down(type.children[i], shared->children[i]);
  }
  if (type.dictionary != nullptr) move_offsets_down(*type.dictionary, shared->dictionary);
}

ARROWDL_END_NAMESPACE
