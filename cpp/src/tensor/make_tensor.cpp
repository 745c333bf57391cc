// Makes DLPack tensors that share the memory of an owner.
#include "arrowdl/make_tensor.hpp"

#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "arrowdl/error.hpp"
#include "util/overflow.hpp"

ARROWDL_BEGIN_NAMESPACE
namespace {

/// Raises BufferError unless a struct of DLPack can say where the values are.
void check_layout(const TensorView& view, bool is_versioned) {
  if (view.dtype->is_padded() && !is_versioned) {
    raise_buffer_error("values of ", view.dtype->name,
                       " have a byte each, which only DLPack 1.1 can say: pass max_version=(1, 1)");
  }
  const int32_t last = view.ndim - 1;
  if (view.dtype->values == 1 || view.shape[last] < 2 || view.strides[last] == 1) return;
  if (view.size() == 0) return;
  raise_buffer_error("the values of ", view.dtype->name,
                     " in a byte belong to another dimension than the last: read the bytes of the "
                     "storage, and permute them");
}

/// Writes the shape and the strides of `view`, in DLPack's elements.
void write_dims(const TensorView& view, int64_t* shape, int64_t* strides) {
  const int64_t values = view.dtype->values;
  const auto bytes = static_cast<std::size_t>(view.ndim) * sizeof(int64_t);
  std::memcpy(shape, view.shape, bytes);
  std::memcpy(strides, view.strides, bytes);
  if (values == 1) return;
  const int32_t last = view.ndim - 1;
  bool fits = checked_multiply(shape[last], values, &shape[last]);
  for (int32_t d = 0; d < last; ++d) {
    fits = checked_multiply(strides[d], values, &strides[d]) && fits;
  }
  strides[last] = 1;
  if (!fits) raise_buffer_error("a tensor of ", view.dtype->name, " with too many values");
}

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
  check_layout(view, std::is_same_v<Managed, DLManagedTensorVersioned>);
  if (view.dtype->is_padded()) flags |= DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  const DLDevice device = to_dl_device(view.device);
  std::unique_ptr<Holder> made(new (view.ndim) Holder(std::move(owner)));
  int64_t* shape = made->dims();
  int64_t* strides = shape + view.ndim;
  write_dims(view, shape, strides);
  Holder* holder = made.release();
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
  const TensorView view = view_tensor(tensor);
  return hold<DLManagedTensor>(view, std::move(tensor), 0);
}

ARROWDL_END_NAMESPACE
