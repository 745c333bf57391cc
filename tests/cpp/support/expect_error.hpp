// Expects an Error by kind and text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "arrowdl/error.hpp"

namespace arrowdl::testing {

/// Expects `call` to throw an Error of `kind` whose message has `part` in it.
template <typename Call>
void expect_error(ErrorKind kind, const char* part, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected one that says: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "\"" << error.what() << "\" does not say: " << part;
  }
}

}  // namespace arrowdl::testing
