# Replaces the object files of the static library `archive` by one, with each template once.

set(merged "${archive}.o")
execute_process(COMMAND "${CMAKE_LINKER}" -r -o "${merged}" --whole-archive "${archive}"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_STRIP}" --strip-unneeded --remove-section=.comment "${merged}"
                COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE "${archive}")
execute_process(COMMAND "${CMAKE_AR}" qcs "${archive}" "${merged}" COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE "${merged}")
