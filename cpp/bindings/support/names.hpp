// The names that are looked up on every call, as interned strings.
//
// They are made when the module is initialised. A static variable of a function would be made by
// the first call, under a lock of the C++ runtime that knows no interpreter: a thread that waits
// for it with an attached thread state stops the garbage collector of a free-threaded Python.
#pragma once

#include <Python.h>

namespace arrowdl::python {

/// A string that lives as long as the process. Only for variables of a namespace: before
/// `intern_all` it is null.
class InternedName {
 public:
  explicit InternedName(const char* text) noexcept : text_(text), next_(first_) { first_ = this; }
  InternedName(const InternedName&) = delete;
  InternedName& operator=(const InternedName&) = delete;

  operator PyObject*() const noexcept { return string_; }

  /// Makes the strings of all names. Raises MemoryError.
  static void intern_all();

 private:
  inline static const InternedName* first_ = nullptr;
  const char* text_;
  const InternedName* next_;
  mutable PyObject* string_ = nullptr;  // of `intern_all`
};

namespace names {

extern const InternedName arrow_c_array;
extern const InternedName arrow_c_device_array;
extern const InternedName arrow_c_device_stream;
extern const InternedName arrow_c_schema;
extern const InternedName arrow_c_stream;
extern const InternedName cuda_array_interface;
extern const InternedName dataframe;
extern const InternedName dlpack;
extern const InternedName dlpack_c_exchange_api;
extern const InternedName dlpack_device;
extern const InternedName dtype;
extern const InternedName equals;
extern const InternedName export_to_c_device;
extern const InternedName is_conj;
extern const InternedName is_deleted;
extern const InternedName is_neg;
extern const InternedName is_nested;
extern const InternedName items;
extern const InternedName mask;
extern const InternedName requires_grad;
extern const InternedName schema;
extern const InternedName sycl_queue;
extern const InternedName sycl_usm_array_interface;
extern const InternedName type;
extern const InternedName view;

}  // namespace names
}  // namespace arrowdl::python
