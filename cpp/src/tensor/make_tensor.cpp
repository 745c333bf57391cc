// Makes DLPack tensors that share the memory of an owner.
#include "arrowdl/make_tensor.hpp"

#include <cstring>
#include <utility>

namespace arrowdl {
namespace {

void set_header(DLManagedTensor&, uint64_t) noexcept {}

void set_header(DLManagedTensorVersioned& managed, uint64_t flags) noexcept {
  managed.version = DLPackVersion{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed.flags = flags;
}

/// One allocation for the struct, its shape and strides, and the owner of the memory.
template <typename Managed, typename Owner>
struct TensorHolder {
  explicit TensorHolder(Owner from) : owner(std::move(from)) {}

  static void* operator new(std::size_t size, int32_t ndim) {
    return ::operator new(size + 2 * sizeof(int64_t) * static_cast<std::size_t>(ndim));
  }
  static void operator delete(void* memory, int32_t) { ::operator delete(memory); }
  static void operator delete(void* memory) { ::operator delete(memory); }

  int64_t* dims() noexcept { return reinterpret_cast<int64_t*>(this + 1); }

  Owner owner;
  Managed managed;
};

template <typename Managed, typename Owner>
OwnedTensor hold(const TensorView& view, Owner owner, uint64_t flags) {
  using Holder = TensorHolder<Managed, Owner>;
  const DLDevice device = to_dl_device(view.device);
  auto* holder = new (view.ndim) Holder(std::move(owner));
  int64_t* shape = holder->dims();
  int64_t* strides = shape + view.ndim;
  const auto bytes = static_cast<std::size_t>(view.ndim) * sizeof(int64_t);
  std::memcpy(shape, view.shape, bytes);
  std::memcpy(strides, view.strides, bytes);
  // byte_offset stays 0 with the offset in `data`: paddle and dpnp ignore the former.
  holder->managed.dl_tensor = DLTensor{const_cast<uint8_t*>(view.size() == 0 ? nullptr : view.data),
                                       device,
                                       view.ndim,
                                       view.dtype->dl(),
                                       shape,
                                       strides,
                                       0};
  set_header(holder->managed, flags);
  holder->managed.manager_ctx = holder;
  holder->managed.deleter = [](Managed* managed) noexcept {
    delete static_cast<Holder*>(managed->manager_ctx);
  };
  return OwnedTensor(&holder->managed);
}

}  // namespace

OwnedTensor make_tensor(const TensorView& view, std::shared_ptr<const void> owner, uint64_t flags) {
  return hold<DLManagedTensorVersioned>(view, std::move(owner), flags);
}

OwnedTensor make_tensor(const TensorView& view, OwnedTensor owner) {
  const uint64_t flags = owner.flags();
  return hold<DLManagedTensorVersioned>(view, std::move(owner), flags);
}

OwnedTensor make_legacy_tensor(const TensorView& view, std::shared_ptr<const void> owner) {
  return hold<DLManagedTensor>(view, std::move(owner), 0);
}

OwnedTensor to_legacy(OwnedTensor tensor) {
  const TensorView view = view_tensor(*tensor);
  return hold<DLManagedTensor>(view, std::move(tensor), 0);
}

}  // namespace arrowdl
