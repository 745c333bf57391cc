# How all targets are compiled: the build type, ccache. The level of optimisation is CMake's, -O3.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(NOT DEFINED CMAKE_INTERPROCEDURAL_OPTIMIZATION)
  # Otherwise pybind11 turns it on, which makes each relink slow. Off in all builds: benchmarks
  # measure what is shipped.
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
endif()
# Nothing is a C++20 module: looking for them would run a scanner on each file.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(ARROWDL_CCACHE ccache)
if(ARROWDL_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${ARROWDL_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${ARROWDL_CCACHE}")
endif()
