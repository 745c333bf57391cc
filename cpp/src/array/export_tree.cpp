// Shares the memory of trees of C structs, in the form that consumers accept.
#include "array/export_tree.hpp"

#include <utility>
#include <vector>

#include "schema/layout.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Gives `shared` a table of buffers of its own.
const void** set_buffers(ArrowArray* shared, std::vector<const void*> buffers) {
  auto& own = static_cast<SharedNode<ArrowArray>*>(shared->private_data)->buffers;
  own = std::move(buffers);
  shared->buffers = own.data();
  return own.data();
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
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    ArrowArray& field = *shared->children[i];
    const bool whole = shared->offset == 0 && field.length == shared->length;
    field.offset += shared->offset;
    field.length = shared->length;
    if (type.children[i].layout == Layout::kNull) {
      field.null_count = field.length;
    } else if (!whole && field.null_count != 0) {
      field.null_count = -1;
    }
  }
  shared->offset = 0;
  shared->null_count = 0;
  set_buffers(shared, {nullptr});
}

ARROWDL_END_NAMESPACE
