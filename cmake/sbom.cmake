# Writes arrowdl.cdx.json: what is compiled into the library and the extension, in CycloneDX's format.
# It has no time and no serial number, so that equal builds have equal files.

# Appends a component to ARROWDL_SBOM_COMPONENTS. `license` is SPDX's name, `hash` may be empty.
function(arrowdl_sbom_component name version license purl hash)
  if(hash)
    set(hashes ",\n      \"hashes\": [{ \"alg\": \"SHA-256\", \"content\": \"${hash}\" }]")
  endif()
  list(APPEND ARROWDL_SBOM_COMPONENTS "    {
      \"type\": \"library\",
      \"bom-ref\": \"${name}\",
      \"name\": \"${name}\",
      \"version\": \"${version}\",
      \"purl\": \"${purl}@${version}\",
      \"licenses\": [{ \"license\": { \"id\": \"${license}\" } }]${hashes}
    }")
  list(APPEND ARROWDL_SBOM_REFS "\"${name}\"")
  set(ARROWDL_SBOM_COMPONENTS "${ARROWDL_SBOM_COMPONENTS}" PARENT_SCOPE)
  set(ARROWDL_SBOM_REFS "${ARROWDL_SBOM_REFS}" PARENT_SCOPE)
endfunction()

if(nanoarrow_FOUND)
  arrowdl_sbom_component(nanoarrow "${nanoarrow_VERSION}" Apache-2.0 pkg:generic/nanoarrow "")
elseif(FETCHCONTENT_SOURCE_DIR_NANOARROW)
  arrowdl_sbom_component(nanoarrow "${NANOARROW_VERSION}" Apache-2.0 pkg:generic/nanoarrow "")
else()
  file(READ "${ARROWDL_NANOARROW_PIN}" pin)
  string(REGEX MATCH "sha256:([0-9a-f]+)" _ "${pin}")
  arrowdl_sbom_component(nanoarrow "${NANOARROW_VERSION}" Apache-2.0 pkg:pypi/nanoarrow
                         "${CMAKE_MATCH_1}")
endif()
file(SHA256 "${ARROWDL_DLPACK_HEADER}" hash)
arrowdl_sbom_component(dlpack "${ARROWDL_DLPACK_VERSION}" Apache-2.0 pkg:generic/dlpack "${hash}")
if(ARROWDL_PYTHON)
  arrowdl_sbom_component(pybind11 "${pybind11_VERSION}" BSD-3-Clause pkg:pypi/pybind11 "")
endif()
list(JOIN ARROWDL_SBOM_COMPONENTS ",\n" ARROWDL_SBOM_COMPONENTS)
list(JOIN ARROWDL_SBOM_REFS ", " ARROWDL_SBOM_REFS)

set(ARROWDL_SBOM "${CMAKE_CURRENT_BINARY_DIR}/arrowdl.cdx.json")
configure_file(cmake/sbom.cdx.json.in "${ARROWDL_SBOM}" @ONLY)
