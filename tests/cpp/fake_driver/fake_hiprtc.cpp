// A test double of AMD's run-time compiler: what it makes is a list of the kernels in the source,
// which the fake driver runs.
#include <cstddef>
#include <cstring>
#include <regex>
#include <string>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidInput = 3;
constexpr int kCompilation = 6;

struct Program {
  std::string source;
  std::string code;
};

/// The names of the kernels.
std::string list_kernels(const std::string& source) {
  std::string code = ".version fake\n";
  const std::regex kernel(R"(__global__ void (\w+)\()");
  for (std::sregex_iterator at(source.begin(), source.end(), kernel), end; at != end; ++at) {
    code += ".entry " + (*at)[1].str() + "(\n";
  }
  return code;
}

}  // namespace

FAKE_EXPORT int hiprtcCreateProgram(void** made, const char* source, const char*, int headers,
                                    const char**, const char**) {
  if (headers != 0) return kInvalidInput;
  *made = new Program{source, {}};
  return kSuccess;
}
FAKE_EXPORT int hiprtcCompileProgram(void* handle, int options, const char**) {
  auto& program = *static_cast<Program*>(handle);
  if (options != 0) return kInvalidInput;
  if (program.source.find("#include") != std::string::npos) return kCompilation;
  program.code = list_kernels(program.source);
  return kSuccess;
}
FAKE_EXPORT int hiprtcGetCodeSize(void* handle, std::size_t* size) {
  *size = static_cast<Program*>(handle)->code.size() + 1;
  return kSuccess;
}
FAKE_EXPORT int hiprtcGetCode(void* handle, char* code) {
  const std::string& made = static_cast<Program*>(handle)->code;
  std::memcpy(code, made.c_str(), made.size() + 1);
  return kSuccess;
}
FAKE_EXPORT int hiprtcDestroyProgram(void** handle) {
  delete static_cast<Program*>(*handle);
  *handle = nullptr;
  return kSuccess;
}
