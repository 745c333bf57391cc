# The component "devel": headers, static libraries, a CMake package and a file of pkg-config.
# find_package(arrowdl) accepts the folder of the Python package and site-packages as a prefix.

include(CMakePackageConfigHelpers)
set(ARROWDL_CMAKE_DIR lib/cmake/arrowdl)

set(ARROWDL_EXPORTED arrowdl_core arrowdl_nanoarrow arrowdl_dlpack)
set_target_properties(arrowdl_core PROPERTIES EXPORT_NAME arrowdl)
set_target_properties(arrowdl_nanoarrow PROPERTIES EXPORT_NAME nanoarrow)
set_target_properties(arrowdl_dlpack PROPERTIES EXPORT_NAME dlpack)
install(TARGETS ${ARROWDL_EXPORTED} EXPORT arrowdl ARCHIVE DESTINATION lib COMPONENT devel)
install(EXPORT arrowdl NAMESPACE arrowdl:: FILE arrowdlTargets.cmake
        DESTINATION ${ARROWDL_CMAKE_DIR} COMPONENT devel)

configure_package_config_file(
  cmake/arrowdlConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/arrowdlConfig.cmake"
  INSTALL_DESTINATION ${ARROWDL_CMAKE_DIR})
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/arrowdlConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/arrowdlConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/arrowdlConfigVersion.cmake"
        DESTINATION ${ARROWDL_CMAKE_DIR} COMPONENT devel)

install(DIRECTORY cpp/include/arrowdl "${ARROWDL_GENERATED}/arrowdl" DESTINATION include
        COMPONENT devel FILES_MATCHING PATTERN "*.hpp")
# Our headers include these two, so users get the versions that the library was built with.
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/dlpack/include/dlpack/dlpack.h"
        DESTINATION include/dlpack COMPONENT devel)
if(ARROWDL_BUNDLES_NANOARROW)
  # A nanoarrow of the system has no such file that ours could name.
  list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE ARROWDL_DL_LIBS)
  configure_file(cmake/arrowdl.pc.in "${CMAKE_CURRENT_BINARY_DIR}/arrowdl.pc" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/arrowdl.pc" DESTINATION lib/pkgconfig COMPONENT devel)
  install(FILES "${ARROWDL_NANOARROW_GENERATED}/nanoarrow/nanoarrow_config.h"
                "${ARROWDL_NANOARROW_SOURCES}/nanoarrow.h"
                "${ARROWDL_NANOARROW_SOURCES}/nanoarrow.hpp"
                "${ARROWDL_NANOARROW_SOURCES}/nanoarrow_device.h"
                "${ARROWDL_NANOARROW_SOURCES}/nanoarrow_device.hpp"
          DESTINATION include/nanoarrow COMPONENT devel)
  install(DIRECTORY "${ARROWDL_NANOARROW_SOURCES}/common" "${ARROWDL_NANOARROW_SOURCES}/hpp"
          DESTINATION include/nanoarrow COMPONENT devel
          FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
endif()

# A wheel has the licences and the SBOM among its metadata: PEP 639 and PEP 770.
if(SKBUILD_STATE STREQUAL "wheel")
  install(FILES "${ARROWDL_SBOM}" DESTINATION "${SKBUILD_METADATA_DIR}/sboms" COMPONENT python)
elseif(NOT SKBUILD_STATE STREQUAL "editable")
  install(FILES LICENSE NOTICE "${ARROWDL_SBOM}" DESTINATION share/licenses/arrowdl
          COMPONENT devel)
  install(FILES LICENSE-pybind11 DESTINATION share/licenses/arrowdl COMPONENT python)
endif()
