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

/// Gives arrays of no rows in `shared`, a tree of share_tree in host memory, the one offset that
/// the format asks for: producers leave it NULL, and strict consumers (pyarrow) refuse that.
inline void fill_absent_offsets(ArrowArray* shared) {
  static constexpr int64_t kZero = 0;  // as one int64 or one int32
  const bool is_binary = shared->n_buffers == 3 && shared->n_children == 0;
  const bool is_list = shared->n_buffers == 2 && shared->n_children == 1;
  if ((is_binary || is_list) && shared->length == 0 && shared->buffers[1] == nullptr) {
    std::vector<const void*>& own =
        static_cast<SharedNode<ArrowArray>*>(shared->private_data)->buffers;
    own.assign(shared->buffers, shared->buffers + shared->n_buffers);
    own[1] = &kZero;
    shared->buffers = own.data();
    shared->offset = 0;
  }
  for (int64_t i = 0; i < shared->n_children; ++i) fill_absent_offsets(shared->children[i]);
  if (shared->dictionary != nullptr) fill_absent_offsets(shared->dictionary);
}

/// Lets the fields of `shared`, a struct of share_tree without nulls, begin where its window does:
/// pyarrow takes no record batch with an offset of its own.
inline void move_offset_to_fields(ArrowArray* shared) {
  static constexpr const void* kNoValidity = nullptr;
  for (int64_t i = 0; i < shared->n_children; ++i) {
    ArrowArray& field = *shared->children[i];
    const bool whole = shared->offset == 0 && field.length == shared->length;
    field.offset += shared->offset;
    field.length = shared->length;
    const bool is_null_type = field.n_buffers == 0 && field.n_children == 0;
    if (is_null_type) {
      field.null_count = field.length;
    } else if (!whole && field.null_count != 0) {
      field.null_count = -1;
    }
  }
  shared->offset = 0;
  std::vector<const void*>& own =
      static_cast<SharedNode<ArrowArray>*>(shared->private_data)->buffers;
  own.assign({kNoValidity});
  shared->buffers = own.data();
}

}  // namespace arrowdl
