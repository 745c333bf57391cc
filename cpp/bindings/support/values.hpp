// Makes objects of pybind11's classes from C++ values, safely if memory runs out.
//
// pybind11 3.1 registers an instance after it holds its value. If that fails for lack of memory, it
// frees the value without its destructor, deletes the object of a std::unique_ptr that still owns
// it, and lets std::bad_alloc pass from a constructor into C.
#pragma once

#include <pybind11/cast.h>

#include <utility>

namespace arrowdl::python {

/// The caster of a class whose default value holds nothing: it registers a default value, and moves
/// `value` in when nothing can fail.
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

}  // namespace arrowdl::python

/// Must be visible wherever a `T` is returned to Python.
#define ARROWDL_CAST_BY_VALUE(T)                                                 \
  namespace pybind11::detail {                                                   \
  template <>                                                                    \
  class type_caster<T> : public arrowdl::python::ValueCaster<T> {}; /* NOLINT */ \
  }
