# Installs the program and all that it reads as one tree, lib/facts, which may be moved. Variables FACTS_* are set by the install script.
if(NOT EXISTS "${FACTS_BUILD}/bin/facts-worker")
  message(STATUS "The program facts is not built: the library is installed without it")
  return()
endif()

set(tree "${CMAKE_INSTALL_PREFIX}/lib/facts")
function(facts_part folder)
  file(INSTALL ${ARGN} DESTINATION "${tree}/${folder}" USE_SOURCE_PERMISSIONS PATTERN "__pycache__" EXCLUDE)
endfunction()

facts_part(bin "${FACTS_BUILD}/bin/facts" "${FACTS_BUILD}/bin/facts-worker" "${FACTS_BUILD}/bin/facts-self")
facts_part(bin/nulldriver "${FACTS_BUILD}/bin/nulldriver/libcuda.so.1")
facts_part(. "${FACTS_SOURCE}/cases" "${FACTS_SOURCE}/lib/devices" "${FACTS_SOURCE}/harness/attention/repro" "${FACTS_SOURCE}/LICENSE")
facts_part(cases/known "${FACTS_BUILD}/known/known.jsonl") # the build made it of cases/known
facts_part(cases/claims "${FACTS_BUILD}/claims/claims.jsonl") # of cases/claims
facts_part(ci "${FACTS_SOURCE}/ci/cudnn.lock" "${FACTS_SOURCE}/ci/cudnn-aarch64.lock" "${FACTS_SOURCE}/ci/cudnn_lock.py" "${FACTS_SOURCE}/ci/cudnn_install.py")
facts_part(reports "${FACTS_SOURCE}/reports/facts_reports")
file(MAKE_DIRECTORY "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin")
file(CREATE_LINK ../lib/facts/bin/facts "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/facts" SYMBOLIC)
