# Compiler flags of our own targets. Third-party headers are SYSTEM and third-party sources have
# their own targets, so these flags do not apply to them.

function(arrowdl_target target)
  target_compile_features(${target} PUBLIC cxx_std_17)
  set_target_properties(
    ${target}
    PROPERTIES CXX_EXTENSIONS OFF
               POSITION_INDEPENDENT_CODE ON
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON)
  if(MSVC)
    target_compile_options(${target} PRIVATE /W4 $<$<BOOL:${ARROWDL_WERROR}>:/WX>)
  else()
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion
                                             $<$<BOOL:${ARROWDL_WERROR}>:-Werror>)
  endif()
endfunction()

# With CMAKE_UNITY_BUILD, compiles the files of a target whose paths match a pattern as one: names of
# their anonymous namespaces differ.
function(arrowdl_compile_as_one target group pattern)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "${pattern}")
  set_source_files_properties(${sources} PROPERTIES UNITY_GROUP ${group})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# Sanitizers instrument the whole build, nanoarrow included: they see no errors in other code.
if(ARROWDL_SANITIZE)
  add_compile_options(-fsanitize=${ARROWDL_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${ARROWDL_SANITIZE})
endif()

# For targets that no fuzzer runs: counting how often their lines run takes as long as the lines.
set(ARROWDL_NOT_FUZZED "")
if(ARROWDL_FUZZERS)
  set(ARROWDL_NOT_FUZZED -fno-sanitize=fuzzer-no-link)
endif()
