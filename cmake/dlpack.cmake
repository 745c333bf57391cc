# Target arrowdl_dlpack: dlpack.h, 1.3 or later (the C exchange API).
#
# -DARROWDL_DLPACK_INCLUDE_DIR=DIR names a folder with dlpack/dlpack.h. By default the header of
# the package apache-tvm-ffi is used.

if(NOT ARROWDL_DLPACK_INCLUDE_DIR)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -m tvm_ffi.config --dlpack-includedir
    OUTPUT_VARIABLE ARROWDL_DLPACK_FOUND_DIR
    RESULT_VARIABLE ARROWDL_DLPACK_RESULT
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT ARROWDL_DLPACK_RESULT EQUAL 0)
    message(FATAL_ERROR "No dlpack.h: `pip install 'apache-tvm-ffi>=0.1.9'` for "
                        "${Python_EXECUTABLE}, or give -DARROWDL_DLPACK_INCLUDE_DIR=DIR, "
                        "where DIR holds dlpack/dlpack.h of DLPack 1.3 or later.")
  endif()
  file(TO_CMAKE_PATH "${ARROWDL_DLPACK_FOUND_DIR}" ARROWDL_DLPACK_FOUND_DIR)
else()
  set(ARROWDL_DLPACK_FOUND_DIR "${ARROWDL_DLPACK_INCLUDE_DIR}")
endif()

set(ARROWDL_DLPACK_HEADER "${ARROWDL_DLPACK_FOUND_DIR}/dlpack/dlpack.h")
file(STRINGS "${ARROWDL_DLPACK_HEADER}" ARROWDL_DLPACK_VERSION
     REGEX "^#define DLPACK_(MAJOR|MINOR)_VERSION [0-9]+")
list(TRANSFORM ARROWDL_DLPACK_VERSION REPLACE "^.* ([0-9]+)$" "\\1")
list(JOIN ARROWDL_DLPACK_VERSION "." ARROWDL_DLPACK_VERSION)
if(ARROWDL_DLPACK_VERSION VERSION_LESS 1.3 OR ARROWDL_DLPACK_VERSION VERSION_GREATER_EQUAL 2)
  message(FATAL_ERROR "${ARROWDL_DLPACK_HEADER} is DLPack ${ARROWDL_DLPACK_VERSION}; "
                      "arrowdl needs 1.3 or a later 1.x.")
endif()

# Copied to its own folder: apache-tvm-ffi's include folder has other headers too.
configure_file("${ARROWDL_DLPACK_HEADER}"
               "${CMAKE_CURRENT_BINARY_DIR}/dlpack/include/dlpack/dlpack.h" COPYONLY)
add_library(arrowdl_dlpack INTERFACE)
target_include_directories(
  arrowdl_dlpack SYSTEM INTERFACE "$<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/dlpack/include>"
                                  "$<INSTALL_INTERFACE:include>")
