// Makes trees of C structs that share the memory of another tree.
#pragma once

#include <memory>
#include <vector>

#include "arrowdl/owned.hpp"
#include "arrowdl/schema.hpp"

ARROWDL_BEGIN_NAMESPACE

/// The private data of one node of an exported tree. A consumer may move any node out of the tree
/// and release it alone (Arrow "C Data Interface", moving an array), so each node has an owner.
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
  std::vector<uint8_t> validity;     ///< of an array, where no byte of the source's begins with it
  Node dictionary;
};

/// Fills `*out` with a copy of `source` that keeps `owner` alive; `owner` must keep `source`.
template <typename Node>
void share_tree(const Node& source, const std::shared_ptr<const void>& owner, Node* out);

extern template void share_tree(const ArrowArray&, const std::shared_ptr<const void>&, ArrowArray*);
extern template void share_tree(const ArrowSchema&, const std::shared_ptr<const void>&,
                                ArrowSchema*);

/// Corrects `shared`, a tree of share_tree in host memory, for strict consumers. Arrays without
/// rows, whose buffers producers leave NULL, get the one offset that the format requires; binary
/// arrays and views without rows get offset 0, since pyarrow refuses another one there. Arrays of
/// the null type lose the buffer that polars gives them.
void tidy_for_export(const Type& type, ArrowArray* shared);

/// Moves the offset of `shared`, a struct of share_tree without nulls, into its fields: pyarrow
/// accepts no record batch with an offset or a bitmap of its own.
void move_offset_to_fields(const Type& type, ArrowArray* shared);

/// Moves the offsets of fixed-size lists, sparse unions and structs of `shared`, a tree of
/// share_tree in memory that the host may read, into their children, which end with the last row:
/// polars 2.1 refuses fixed-size lists with nulls otherwise, and arrow-rs forgets the offset of a
/// union and applies that of a struct below another one twice. Copies the bits of validity of a
/// list if the first is not the first of a byte; a struct with a bitmap keeps its offset unless it
/// has no null.
void move_offsets_down(const Type& type, ArrowArray* shared);

ARROWDL_END_NAMESPACE
