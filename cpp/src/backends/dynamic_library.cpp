// Opens shared libraries at run time, on Linux, macOS and Windows.
#include "backends/dynamic_library.hpp"

#include <functional>
#include <mutex>
#include <set>
#include <string_view>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif
#ifdef __linux__
#include <link.h>
#endif

ARROWDL_BEGIN_NAMESPACE
namespace {

#ifdef _WIN32
void* find_by_name(const char* name) noexcept {
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
void* find_by_name(const char* name) noexcept {
  return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}
void* load(const char* name) noexcept { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
LibraryFunction find_function(void* library, const char* symbol) noexcept {
  return reinterpret_cast<LibraryFunction>(dlsym(library, symbol));
}
void close(void* library) noexcept { dlclose(library); }
#endif

#ifdef __linux__
std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Whether `file` is a wheel's copy of the library `name`: libx-0123abcd.so.1.2 for libx.so.1.
bool is_bundled(std::string_view file, std::string_view name) {
  constexpr std::size_t kHash = 8;
  const std::string_view stem = name.substr(0, name.find(".so"));
  if (file.size() <= stem.size() + 1 + kHash || file.substr(0, stem.size()) != stem) return false;
  const std::string_view hash = file.substr(stem.size() + 1, kHash);
  return file[stem.size()] == '-' && file.substr(stem.size() + 1 + kHash, 3) == ".so" &&
         hash.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The path of a wheel's copy of `name` that the process has loaded, or nothing.
std::string find_bundled(const char* name) {
  struct Search {
    const char* name;
    std::string path;
  };
  Search search{name, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto* const wanted = static_cast<Search*>(data);
        if (!is_bundled(file_of(info->dlpi_name), wanted->name)) return 0;
        wanted->path = info->dlpi_name;
        return 1;
      },
      &search);
  return search.path;
}
#endif

/// Searches the system for `name` once: a search is slow, and each use of a device without a
/// library would repeat it. A library that is loaded later is found without a search.
void* search(const char* name) {
  static auto* const mutex = new std::mutex;  // never freed: libraries are opened at exit, too
  static auto* const missing = new std::set<std::string, std::less<>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (missing->count(std::string_view(name)) != 0) return nullptr;
  void* const handle = load(name);
  if (handle == nullptr) missing->insert(name);
  return handle;
}

}  // namespace

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) close(handle_);
}

DynamicLibrary DynamicLibrary::open(const std::vector<const char*>& names) {
  for (const char* name : names) {
    if (DynamicLibrary loaded = find_loaded(name)) return loaded;
  }
  for (const char* name : names) {
    if (void* handle = search(name)) return DynamicLibrary(handle, name);
  }
  return {};
}

DynamicLibrary DynamicLibrary::find_loaded(const char* name) {
  if (void* handle = find_by_name(name)) return DynamicLibrary(handle, name);
#ifdef __linux__
  if (const std::string path = find_bundled(name); !path.empty()) {
    if (void* handle = find_by_name(path.c_str())) {
      return DynamicLibrary(handle, std::string(file_of(path)));
    }
  }
#endif
  return {};
}

LibraryFunction DynamicLibrary::find(const char* symbol) const noexcept {
  return find_function(handle_, symbol);
}

ARROWDL_END_NAMESPACE
