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

}  // namespace arrowdl
