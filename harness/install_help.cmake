# Installs the man page and the completion of bash, as the program prints them. Variables FACTS_* are set by the install script.
set(FACTS_PROGRAM "${FACTS_BUILD}/bin/facts")
if(NOT EXISTS "${FACTS_PROGRAM}")
  message(STATUS "The program facts is not built: no man page, no shell completion")
  return()
endif()

function(facts_help_file file form)
  get_filename_component(folder "${FACTS_SHARE}/${file}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  execute_process(COMMAND ${FACTS_EMULATOR} "${FACTS_PROGRAM}" help ${form} OUTPUT_FILE "${FACTS_SHARE}/${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

facts_help_file(man/man1/facts.1 man)
facts_help_file(bash-completion/completions/facts bash)
