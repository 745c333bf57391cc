# Target _core: the extension arrowdl._core, of pybind11.

if(NOT pybind11_DIR)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
                  OUTPUT_VARIABLE pybind11_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_package(pybind11 3.1 CONFIG REQUIRED)
file(GLOB_RECURSE ARROWDL_BINDING_SOURCES CONFIGURE_DEPENDS cpp/bindings/*.cpp)
pybind11_add_module(_core MODULE ${ARROWDL_BINDING_SOURCES})
arrowdl_target(_core)
# Each unit with pybind11.h takes four seconds for pybind11's own code. So there are two in every build:
# what defines Python's names, and what that calls. Without CMAKE_UNITY_BUILD, the other files are
# compiled one by one, and test_layers.py sees which symbols each needs.
arrowdl_compile_as_one(_core python "/(classes|functions)/|/module.cpp$")
arrowdl_compile_as_one(_core objects "/(export|import|support)/")
if(NOT CMAKE_UNITY_BUILD)
  set_target_properties(_core PROPERTIES UNITY_BUILD ON)
  foreach(source IN LISTS ARROWDL_BINDING_SOURCES)
    file(STRINGS "${source}" includes REGEX "^#include <pybind11/pybind11.h>" LIMIT_COUNT 1)
    if(NOT includes)
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endif()
target_include_directories(_core PRIVATE cpp/bindings cpp/src)
target_link_libraries(_core PRIVATE arrowdl_core)
# Of -O3 it needs nothing: loops over values are the core's, where casts and stacked columns take 2.5 to
# 3.5 times as long at -O2 (GCC 12 vectorises few loops there).
target_compile_options(_core PRIVATE $<$<AND:$<CONFIG:Release>,$<NOT:$<BOOL:${MSVC}>>>:-O2>
                                     ${ARROWDL_NOT_FUZZED})
if(ARROWDL_SANITIZE MATCHES "undefined")
  # UndefinedBehaviorSanitizer doubles the time to compile pybind11's templates, and the arithmetic is
  # in the core. Without it GCC 12 warns about pybind11's own variables.
  target_compile_options(_core PRIVATE -fno-sanitize=undefined
                                       $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # The module exports PyInit__core alone, whatever a static library exports.
  set(ARROWDL_EXPORTS "${PROJECT_SOURCE_DIR}/cmake/exports.map")
  target_link_options(_core PRIVATE "LINKER:--version-script=${ARROWDL_EXPORTS}"
                      LINKER:--exclude-libs,ALL LINKER:--gc-sections)
  set_property(TARGET _core APPEND PROPERTY LINK_DEPENDS "${ARROWDL_EXPORTS}")
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")  # 32 bits: another routine
    target_compile_definitions(_core PRIVATE ARROWDL_HAS_OWN_PERSONALITY)
    target_link_options(_core PRIVATE LINKER:--wrap=__gxx_personality_v0)
  endif()
endif()
# Otherwise the file keeps the length of the build's path.
set_target_properties(_core PROPERTIES SKIP_BUILD_RPATH ON)
install(TARGETS _core DESTINATION . COMPONENT python)
