// Compiles the kernels for AMD's GPUs.
#include "backends/hiprtc.hpp"

#include <cstddef>

#include "backends/kernels_source.hpp"
#include "backends/symbol_table.hpp"

// hiprtc's API is declared from its documentation, so that no build needs ROCm.

ARROWDL_BEGIN_NAMESPACE
namespace {

struct HiprtcCalls {
  Call<void**, const char*, const char*, int, const char**, const char**> create_program;
  Call<void*, int, const char**> compile_program;
  Call<void*, std::size_t*> get_code_size;
  Call<void*, char*> get_code;
  Call<void**> destroy_program;
};

template <auto Member>
constexpr Symbol<HiprtcCalls> row(const char* name) {
  return {name, find_slot<HiprtcCalls, Member>};
}

constexpr Symbol<HiprtcCalls> kSymbols[] = {
    row<&HiprtcCalls::create_program>("hiprtcCreateProgram"),
    row<&HiprtcCalls::compile_program>("hiprtcCompileProgram"),
    row<&HiprtcCalls::get_code_size>("hiprtcGetCodeSize"),
    row<&HiprtcCalls::get_code>("hiprtcGetCode"),
    row<&HiprtcCalls::destroy_program>("hiprtcDestroyProgram"),
};

DynamicLibrary open_compiler() {
#ifdef _WIN32
  return DynamicLibrary::open({"hiprtc0700.dll", "hiprtc0602.dll", "hiprtc.dll"});
#else
  return DynamicLibrary::open(
      {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so"});
#endif
}

/// The code of a program without options: hiprtc compiles for the current device then.
/// Source: RTCProgram::findIsa of ROCm's hiprtc.
std::string compile(const HiprtcCalls& calls, void* program) {
  if (calls.compile_program(program, 0, nullptr) != 0) return {};
  std::size_t size = 0;
  if (calls.get_code_size(program, &size) != 0) return {};
  std::string code(size, '\0');
  if (calls.get_code(program, code.data()) != 0) return {};
  return code;
}

}  // namespace

std::string compile_for_current_device() {
  DynamicLibrary library = open_compiler();
  HiprtcCalls calls;
  if (!library || find_missing(library, kSymbols, calls) != nullptr) return {};
  library.keep();  // the compiler has threads and destructors of its own
  void* program = nullptr;
  if (calls.create_program(&program, kKernelsSource, "arrowdl.cu", 0, nullptr, nullptr) != 0) {
    return {};
  }
  std::string code = compile(calls, program);
  calls.destroy_program(&program);
  return code;
}

ARROWDL_END_NAMESPACE
