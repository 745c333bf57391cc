// C++ values as objects of pybind11's classes, where memory may run out on the way.
//
// pybind11 3.1 registers an instance when the value is already in it. Where there is no memory for
// that, it frees the value without its destructor, deletes what a std::unique_ptr still holds, and
// lets std::bad_alloc out of a constructor into C.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

namespace arrowdl::python {

/// The caster of a class whose default value holds nothing: that is registered, and `value` moves
/// in when nothing can fail any more.
template <typename T>
class ValueCaster : public pybind11::detail::type_caster_base<T> {
  using Base = pybind11::detail::type_caster_base<T>;

 public:
  using Base::cast;

  static pybind11::handle cast(T&& value, pybind11::return_value_policy, pybind11::handle parent) {
    static_assert(std::is_nothrow_move_assignable_v<T>);
    auto object = pybind11::reinterpret_steal<pybind11::object>(
        Base::cast(T(), pybind11::return_value_policy::move, parent));
    if (!object) throw pybind11::error_already_set();
    Base inside;
    inside.load(object, false);
    static_cast<T&>(inside) = std::move(value);
    return object.release();
  }
};

/// Lets `make`, a function of values, construct the objects of the class. pybind11's own
/// constructors end the process where there is no memory.
template <typename T, typename Make, typename... Extra>
void define_constructor(pybind11::class_<T>& type, Make make, const Extra&... extra) {
  type.def_static("__new__", make, pybind11::arg("cls"), extra...);
  reinterpret_cast<PyTypeObject*>(type.ptr())->tp_init = [](PyObject*, PyObject*, PyObject*) {
    return 0;
  };
}

}  // namespace arrowdl::python

/// Has to be seen wherever a `T` is returned to Python.
#define ARROWDL_CAST_BY_VALUE(T)                                                 \
  namespace pybind11::detail {                                                   \
  template <>                                                                    \
  class type_caster<T> : public arrowdl::python::ValueCaster<T> {}; /* NOLINT */ \
  }
