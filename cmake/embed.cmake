# arrowdl_embed(HEADER SYMBOL TEXT): writes a header with the text as the constant char array SYMBOL.
#
# The text stands as numbers: a literal has a greatest length that differs among compilers, and none
# may contain the delimiter of a raw string.

function(arrowdl_embed header symbol text)
  string(HEX "${text}" numbers)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," numbers "${numbers}")
  string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" numbers
                       "${numbers}")
  file(CONFIGURE OUTPUT "${header}" CONTENT "// Made by the build (cmake/embed.cmake): do not edit.
#pragma once

#include \"arrowdl/namespace.hpp\"

ARROWDL_BEGIN_NAMESPACE
inline constexpr char ${symbol}[] = {
${numbers}0};
ARROWDL_END_NAMESPACE
" @ONLY)
endfunction()

# The kernels: their PTX for the driver of CUDA, and their source, which ROCm compiles at run time.
# That is one string, so that each file goes without what makes it a file of its own.
function(arrowdl_embed_kernels folder)
  set(kernels "${PROJECT_SOURCE_DIR}/cpp/src/backends/kernels")
  # Shared code first: threads.cuh before rows.cuh, which needs it.
  set(files "${kernels}/threads.cuh" "${kernels}/rows.cuh")
  file(GLOB sources CONFIGURE_DEPENDS "${kernels}/*.cu")
  list(APPEND files ${sources})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files} "${kernels}/kernels.ptx")
  set(source "")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    string(REGEX REPLACE "#(include|pragma once)[^\n]*" "" text "${text}")
    string(APPEND source "${text}")
  endforeach()
  arrowdl_embed("${folder}/backends/kernels_source.hpp" kKernelsSource "${source}")
  file(READ "${kernels}/kernels.ptx" ptx)
  arrowdl_embed("${folder}/backends/kernels_ptx.hpp" kKernelsPtx "${ptx}")
endfunction()
