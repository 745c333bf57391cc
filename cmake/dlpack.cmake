# Target arrowdl_dlpack: dlpack.h, 1.3 or later (the C exchange API).
#
# Two routes, in this order:
#   -DARROWDL_DLPACK_INCLUDE_DIR=DIR   a folder with dlpack/dlpack.h
#   fetch_sources.py                   bundled in our sdist, or downloaded

set(ARROWDL_DLPACK_COPY "${CMAKE_CURRENT_BINARY_DIR}/dlpack/include")
set(ARROWDL_DLPACK_PINNED "${CMAKE_CURRENT_LIST_DIR}/dlpack_sources.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${ARROWDL_DLPACK_PINNED}")
set(ARROWDL_DLPACK_HEADER "${ARROWDL_DLPACK_COPY}/dlpack/dlpack.h")

if(ARROWDL_DLPACK_INCLUDE_DIR)
  # Copied: the folder may have other headers too.
  configure_file("${ARROWDL_DLPACK_INCLUDE_DIR}/dlpack/dlpack.h" "${ARROWDL_DLPACK_HEADER}" COPYONLY)
else()
  set(hash "")
  if(EXISTS "${ARROWDL_DLPACK_HEADER}")
    file(SHA256 "${ARROWDL_DLPACK_HEADER}" hash)
  endif()
  file(STRINGS "${ARROWDL_DLPACK_PINNED}" pinned REGEX "^${hash}  dlpack/dlpack.h$")
  if(NOT hash OR NOT pinned)
    execute_process(
      COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/fetch_sources.py" extract dlpack
              "${ARROWDL_DLPACK_COPY}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
endif()

file(STRINGS "${ARROWDL_DLPACK_HEADER}" ARROWDL_DLPACK_VERSION
     REGEX "^#define DLPACK_(MAJOR|MINOR)_VERSION [0-9]+")
list(TRANSFORM ARROWDL_DLPACK_VERSION REPLACE "^.* ([0-9]+)$" "\\1")
list(JOIN ARROWDL_DLPACK_VERSION "." ARROWDL_DLPACK_VERSION)
if(ARROWDL_DLPACK_VERSION VERSION_LESS 1.3 OR ARROWDL_DLPACK_VERSION VERSION_GREATER_EQUAL 2)
  message(FATAL_ERROR "${ARROWDL_DLPACK_INCLUDE_DIR}/dlpack/dlpack.h is DLPack "
                      "${ARROWDL_DLPACK_VERSION}; arrowdl needs 1.3 or a later 1.x.")
endif()

add_library(arrowdl_dlpack INTERFACE)
target_include_directories(
  arrowdl_dlpack SYSTEM INTERFACE "$<BUILD_INTERFACE:${ARROWDL_DLPACK_COPY}>"
                                  "$<INSTALL_INTERFACE:include>")
