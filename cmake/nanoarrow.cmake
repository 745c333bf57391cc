# Target arrowdl_nanoarrow: nanoarrow's C library and its device extension.
#
# Three routes, in this order:
#   -DFETCHCONTENT_SOURCE_DIR_NANOARROW=DIR   a checkout or an unpacked source distribution
#   find_package(nanoarrow)                   the system's
#   fetch_sources.py                          bundled in our sdist, or downloaded

include(FetchContent)

set(ARROWDL_NANOARROW_PIN "${CMAKE_CURRENT_LIST_DIR}/nanoarrow.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${ARROWDL_NANOARROW_PIN}")
file(READ "${ARROWDL_NANOARROW_PIN}" NANOARROW_VERSION)
string(REGEX REPLACE "^nanoarrow==([^ ]+) .*" "\\1" NANOARROW_VERSION "${NANOARROW_VERSION}")

FetchContent_Declare(
  nanoarrow
  DOWNLOAD_COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/fetch_sources.py" extract
                   nanoarrow <SOURCE_DIR>
  # Upstream's own CMakeLists.txt needs a file that the source distribution lacks.
  SOURCE_SUBDIR unused
  FIND_PACKAGE_ARGS ${NANOARROW_VERSION} CONFIG)
FetchContent_MakeAvailable(nanoarrow)

if(nanoarrow_FOUND)
  if(NOT TARGET nanoarrow::nanoarrow_device_static)
    message(FATAL_ERROR "${nanoarrow_DIR} has no static device library: build nanoarrow with "
                        "-DNANOARROW_DEVICE=ON, or give -DCMAKE_DISABLE_FIND_PACKAGE_nanoarrow=ON.")
  endif()
  add_library(arrowdl_nanoarrow INTERFACE)
  target_link_libraries(arrowdl_nanoarrow INTERFACE nanoarrow::nanoarrow_device_static
                                                    nanoarrow::nanoarrow_static)
  set(ARROWDL_BUNDLES_NANOARROW OFF)
  return()
endif()

set(ARROWDL_BUNDLES_NANOARROW ON)
set(ARROWDL_NANOARROW_ROOT "${nanoarrow_SOURCE_DIR}")
if(EXISTS "${nanoarrow_SOURCE_DIR}/subprojects/arrow-nanoarrow")
  set(ARROWDL_NANOARROW_ROOT "${nanoarrow_SOURCE_DIR}/subprojects/arrow-nanoarrow")
endif()
set(ARROWDL_NANOARROW_SOURCES "${ARROWDL_NANOARROW_ROOT}/src/nanoarrow")
set(ARROWDL_NANOARROW_GENERATED "${CMAKE_CURRENT_BINARY_DIR}/nanoarrow/include")

# The prefix separates our symbols from other copies in the process, such as pyarrow's.
set(NANOARROW_NAMESPACE_DEFINE "#define NANOARROW_NAMESPACE arrowdl_")
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)\\.([0-9]+)" _ "${NANOARROW_VERSION}")
set(NANOARROW_VERSION_MAJOR "${CMAKE_MATCH_1}")
set(NANOARROW_VERSION_MINOR "${CMAKE_MATCH_2}")
set(NANOARROW_VERSION_PATCH "${CMAKE_MATCH_3}")
configure_file("${ARROWDL_NANOARROW_SOURCES}/nanoarrow_config.h.in"
               "${ARROWDL_NANOARROW_GENERATED}/nanoarrow/nanoarrow_config.h")

add_library(
  arrowdl_nanoarrow STATIC
  "${ARROWDL_NANOARROW_SOURCES}/common/array.c" "${ARROWDL_NANOARROW_SOURCES}/common/array_stream.c"
  "${ARROWDL_NANOARROW_SOURCES}/common/schema.c" "${ARROWDL_NANOARROW_SOURCES}/common/utils.c"
  "${ARROWDL_NANOARROW_SOURCES}/device/device.c")
target_include_directories(
  arrowdl_nanoarrow SYSTEM
  PUBLIC "$<BUILD_INTERFACE:${ARROWDL_NANOARROW_ROOT}/src>"
         "$<BUILD_INTERFACE:${ARROWDL_NANOARROW_GENERATED}>" "$<INSTALL_INTERFACE:include>")
# Empty: nanoarrow would otherwise mark every function as exported.
target_compile_definitions(arrowdl_nanoarrow PUBLIC NANOARROW_DLL=)
# As C23, the default of GCC 15, it would need functions of glibc 2.38.
set_target_properties(arrowdl_nanoarrow PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF
                                                   C_VISIBILITY_PRESET hidden C_STANDARD 99)
