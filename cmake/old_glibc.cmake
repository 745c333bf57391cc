# ARROWDL_GLIBC=2.28 links the extension for that glibc and what was released with it, on a newer
# one. The object files are those of any build: only the versions of symbols differ.
# old_glibc_stubs.py writes what the extension is linked with, old_glibc.c has what an old glibc
# lacks. Needs GCC.

set(ARROWDL_GLIBC "" CACHE STRING "Link the extension for this version of glibc, such as 2.28")

function(arrowdl_link_old_glibc target)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "ARROWDL_GLIBC=${ARROWDL_GLIBC} needs GCC, not ${CMAKE_CXX_COMPILER_ID}.")
  endif()
  set(stubs "${CMAKE_CURRENT_BINARY_DIR}/glibc-${ARROWDL_GLIBC}")
  execute_process(
    COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/old_glibc_stubs.py"
            "${ARROWDL_GLIBC}" "${stubs}" --compiler "${CMAKE_CXX_COMPILER}" --readelf
            "${CMAKE_READELF}" COMMAND_ERROR_IS_FATAL ANY)
  # A target of its own: that of the extension precompiles a header of C++.
  add_library(arrowdl_old_glibc OBJECT "${PROJECT_SOURCE_DIR}/cmake/old_glibc.c")
  set_target_properties(arrowdl_old_glibc PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:arrowdl_old_glibc>)
  target_link_directories(${target} BEFORE PRIVATE "${stubs}")
endfunction()
