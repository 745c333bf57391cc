// A schema of every type, for tests that run for each.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "support/values.hpp"

namespace arrowdl::testing {

/// A name for the test's output, and the type.
struct NamedSchema {
  std::string name;
  OwnedSchema (*make)();
};

inline std::ostream& operator<<(std::ostream& out, const NamedSchema& type) {
  return out << type.name;
}

inline std::vector<NamedSchema> every_type() {
  return {
      {"null", [] { return field("n"); }},
      {"bool", [] { return field("b"); }},
      {"int8", [] { return field("c"); }},
      {"int16", [] { return field("s"); }},
      {"float32", [] { return field("f"); }},
      {"timestamp", [] { return field("tsu:UTC"); }},
      {"month_day_nano", [] { return field("tin"); }},
      {"decimal128", [] { return field("d:20,3"); }},
      {"decimal256", [] { return field("d:50,3,256"); }},
      {"fixed_size_binary", [] { return field("w:3"); }},
      {"string", [] { return field("u"); }},
      {"large_binary", [] { return field("Z"); }},
      {"string_view", [] { return field("vu"); }},
      {"binary_view", [] { return field("vz"); }},
      {"list", [] { return field("+l", field("i")); }},
      {"list_of_list", [] { return field("+l", field("+l", field("u"))); }},
      {"large_list", [] { return field("+L", field("b")); }},
      {"map", [] { return map(field("u"), field("i")); }},
      {"list_view", [] { return field("+vl", field("i")); }},
      {"large_list_view", [] { return field("+vL", field("vu")); }},
      {"fixed_size_list", [] { return field("+w:3", field("f")); }},
      {"fixed_size_list_nested", [] { return field("+w:2", field("+w:2", field("b"))); }},
      {"fixed_size_list_empty", [] { return field("+w:0", field("i")); }},
      {"struct", [] { return field("+s", field("i"), field("u"), field("b")); }},
      {"struct_empty", [] { return field("+s"); }},
      {"struct_nested", [] { return field("+s", field("+s", field("+l", field("i")))); }},
      {"sparse_union", [] { return field("+us:3,0", field("i"), field("u")); }},
      {"dense_union", [] { return field("+ud:5,7,1", field("i"), field("u"), field("b")); }},
      {"dense_union_of_lists",
       [] { return field("+ud:0,1", field("+l", field("i")), field("n")); }},
      {"dictionary", [] { return dictionary("i", field("u")); }},
      {"dictionary_uint8", [] { return dictionary("C", field("l")); }},
      {"dictionary_bool", [] { return dictionary("c", field("b")); }},
      {"dictionary_view", [] { return dictionary("s", field("vu")); }},
      {"dictionary_of_lists", [] { return dictionary("i", field("+l", field("i"))); }},
      {"dictionary_of_structs",
       [] { return dictionary("l", field("+s", field("u"), dictionary("c", field("w:2")))); }},
      {"dictionary_of_unions",
       [] { return dictionary("i", field("+ud:0,1", field("i"), field("+vl", field("u")))); }},
      {"list_of_dictionary", [] { return field("+l", dictionary("i", field("u"))); }},
      {"run_end_16", [] { return field("+r", field("s"), field("i")); }},
      {"run_end_32", [] { return field("+r", field("i"), field("u")); }},
      {"run_end_64", [] { return field("+r", field("l"), field("+l", field("b"))); }},
      {"run_end_bool", [] { return field("+r", field("i"), field("b")); }},
      {"run_end_decimal", [] { return field("+r", field("i"), field("d:20,3")); }},
      {"run_end_null", [] { return field("+r", field("i"), field("n")); }},
      {"run_end_union", [] { return field("+r", field("i"), field("+ud:0", field("i"))); }},
      {"run_end_dictionary", [] { return field("+r", field("i"), dictionary("c", field("u"))); }},
      {"list_of_run_end", [] { return field("+l", field("+r", field("i"), field("f"))); }},
      {"struct_of_all",
       [] {
         return field("+s", field("+vl", dictionary("c", field("u"))), field("+us:0", field("vz")),
                      field("+w:2", field("+r", field("s"), field("u"))));
       }},
  };
}

}  // namespace arrowdl::testing
