// A tensor to Arrow and back in C++: no Python, no copy.

#include <arrowdl/dtype.hpp>
#include <arrowdl/make_tensor.hpp>
#include <arrowdl/to_arrow.hpp>
#include <arrowdl/to_dlpack.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

int main() {
  // Any memory with a shared owner can be a tensor; here three rows of two floats.
  auto values = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4, 5, 6});
  arrowdl::TensorView view;
  view.data = reinterpret_cast<const std::uint8_t*>(values->data());
  view.dtype = arrowdl::find_dtype("float32");
  view.push_dim(3);
  view.push_dim(2);
  view.set_contiguous_strides();

  arrowdl::OwnedTensor tensor = arrowdl::make_tensor(view, values, 0);
  arrowdl::DeviceArray array = arrowdl::to_arrow(std::move(tensor));
  std::cout << "Arrow array of " << array.length() << " rows\n";

  arrowdl::OwnedTensor back = arrowdl::to_dlpack(array);
  std::cout << "tensor of " << back->shape[0] << " x " << back->shape[1] << "\n"
            << "zero-copy: " << (back->data == values->data() ? "yes" : "no") << "\n";
}
