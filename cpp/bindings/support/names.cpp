// Makes the interned strings of the module.
#include "support/names.hpp"

#include <pybind11/pybind11.h>

namespace arrowdl::python {
namespace names {

const InternedName arrow_c_array("__arrow_c_array__");
const InternedName arrow_c_device_array("__arrow_c_device_array__");
const InternedName arrow_c_device_stream("__arrow_c_device_stream__");
const InternedName arrow_c_schema("__arrow_c_schema__");
const InternedName arrow_c_stream("__arrow_c_stream__");
const InternedName cuda_array_interface("__cuda_array_interface__");
const InternedName dataframe("__dataframe__");
const InternedName dlpack("__dlpack__");
const InternedName dlpack_c_exchange_api("__dlpack_c_exchange_api__");
const InternedName dlpack_device("__dlpack_device__");
const InternedName dtype("dtype");
const InternedName equals("equals");
const InternedName export_to_c_device("_export_to_c_device");
const InternedName is_conj("is_conj");
const InternedName is_deleted("is_deleted");
const InternedName is_neg("is_neg");
const InternedName is_nested("is_nested");
const InternedName items("items");
const InternedName mask("mask");
const InternedName requires_grad("requires_grad");
const InternedName schema("schema");
const InternedName sycl_queue("sycl_queue");
const InternedName sycl_usm_array_interface("__sycl_usm_array_interface__");
const InternedName type("type");
const InternedName view("view");

}  // namespace names

void InternedName::intern_all() {
  for (const InternedName* name = first_; name != nullptr; name = name->next_) {
    name->string_ = PyUnicode_InternFromString(name->text_);
    if (name->string_ == nullptr) throw pybind11::error_already_set();
  }
}

}  // namespace arrowdl::python
