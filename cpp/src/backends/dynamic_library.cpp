#include "dynamic_library.hpp"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace arrowdl {
namespace {

#ifdef _WIN32
void* find_loaded(const char* name) noexcept {
  HMODULE module = nullptr;
  GetModuleHandleExA(0, name, &module);  // counts, as LoadLibrary does
  return module;
}
void* load(const char* name) noexcept {
  return LoadLibraryExA(name, nullptr, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
}
LibraryFunction find_function(void* library, const char* symbol) noexcept {
  return reinterpret_cast<LibraryFunction>(GetProcAddress(static_cast<HMODULE>(library), symbol));
}
void close(void* library) noexcept { FreeLibrary(static_cast<HMODULE>(library)); }
#else
void* find_loaded(const char* name) noexcept {
  return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}
void* load(const char* name) noexcept { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
LibraryFunction find_function(void* library, const char* symbol) noexcept {
  return reinterpret_cast<LibraryFunction>(dlsym(library, symbol));
}
void close(void* library) noexcept { dlclose(library); }
#endif

}  // namespace

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) close(handle_);
}

DynamicLibrary DynamicLibrary::open(const std::vector<const char*>& names) {
  for (auto* find : {find_loaded, load}) {
    for (const char* name : names) {
      if (void* handle = find(name)) return DynamicLibrary(handle, name);
    }
  }
  return {};
}

bool DynamicLibrary::is_loaded(const char* name) {
  return static_cast<bool>(DynamicLibrary(find_loaded(name), name));
}

LibraryFunction DynamicLibrary::find(const char* symbol) const noexcept {
  return find_function(handle_, symbol);
}

}  // namespace arrowdl
