// Exports that share memory: a new tree of C structs over the nodes of one that stays alive.
#pragma once

#include <memory>
#include <vector>

#include "arrowdl/owned.hpp"

namespace arrowdl {

/// What one node of an exported tree holds. A consumer may move any node out of the tree and
/// release it on its own (Arrow "C Data Interface", moving an array), so each has its own owner.
template <typename Node>  // ArrowArray or ArrowSchema
struct SharedNode : private Counted {
  SharedNode(std::shared_ptr<const void> from, std::size_t n_children)
      : owner(std::move(from)), children(n_children), pointers(n_children) {
    for (std::size_t i = 0; i < n_children; ++i) {
      children[i].release = nullptr;
      pointers[i] = &children[i];
    }
    dictionary.release = nullptr;
  }

  ~SharedNode() {
    for (Node& child : children) release(child);
    release(dictionary);
  }

  static void release(Node& node) noexcept {
    if (node.release != nullptr) node.release(&node);
  }

  std::shared_ptr<const void> owner;
  std::vector<Node> children;
  std::vector<Node*> pointers;
  std::vector<const void*> buffers;  ///< of an array, where they are not the source's own
  Node dictionary;
};

/// Fills `*out` with a copy of `source` that keeps `owner` alive, and `owner` must keep `source`.
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

/// Whether a node is of the null type. polars gives it a buffer, which is NULL; a struct without
/// fields has one as well, and no nulls then.
inline bool is_null_type(const ArrowArray& node) noexcept {
  if (node.n_children > 0 || node.n_buffers > 1) return false;
  return node.n_buffers == 0 ||
         (node.buffers[0] == nullptr && node.length > 0 && node.null_count == node.length);
}

/// Puts right in `shared`, a tree of share_tree in host memory, what strict consumers refuse.
/// Arrays of no rows get the one offset that the format asks for, and views of no rows begin at 0:
/// producers leave those buffers NULL, and pyarrow takes none of them for what lies before. Arrays
/// of the null type lose the buffer that they may have.
inline void tidy_for_export(ArrowArray* shared) {
  static constexpr int64_t kZero = 0;  // as one int64 or one int32
  const bool is_binary = shared->n_buffers == 3 && shared->n_children == 0;
  const bool is_list = shared->n_buffers == 2 && shared->n_children == 1;
  const bool is_view_or_binary = shared->n_buffers >= 3;
  if (shared->length == 0 && (is_binary || is_list) && shared->buffers[1] == nullptr) {
    std::vector<const void*>& own =
        static_cast<SharedNode<ArrowArray>*>(shared->private_data)->buffers;
    own.assign(shared->buffers, shared->buffers + shared->n_buffers);
    own[1] = &kZero;
    shared->buffers = own.data();
    shared->offset = 0;
  } else if (shared->length == 0 && is_view_or_binary) {
    shared->offset = 0;
  } else if (is_null_type(*shared)) {
    shared->n_buffers = 0;
  }
  for (int64_t i = 0; i < shared->n_children; ++i) tidy_for_export(shared->children[i]);
  if (shared->dictionary != nullptr) tidy_for_export(shared->dictionary);
}

/// Lets the fields of `shared`, a struct of share_tree without nulls, begin where its window does:
/// pyarrow takes no record batch with an offset or a bitmap of its own.
inline void move_offset_to_fields(ArrowArray* shared) {
  static constexpr const void* kNoValidity = nullptr;
  for (int64_t i = 0; i < shared->n_children; ++i) {
    ArrowArray& field = *shared->children[i];
    const bool whole = shared->offset == 0 && field.length == shared->length;
    const bool is_null = is_null_type(field);
    field.offset += shared->offset;
    field.length = shared->length;
    if (is_null) {
      field.null_count = field.length;
    } else if (!whole && field.null_count != 0) {
      field.null_count = -1;
    }
  }
  shared->offset = 0;
  shared->null_count = 0;
  std::vector<const void*>& own =
      static_cast<SharedNode<ArrowArray>*>(shared->private_data)->buffers;
  own.assign({kNoValidity});
  shared->buffers = own.data();
}

}  // namespace arrowdl
