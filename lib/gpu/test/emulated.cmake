# facts_emulated(NAME ENTRIES header KERNELS .cu... [INCLUDE folder...] [OPTIONS compiler option...]): the library NAME, CUDA kernels as C++ behind
# emulated_driver(). ENTRIES lists them (emulated_driver.h) and is compiled after them. Needs a C++ compiler and no GPU: FACTS_EMULATION is OFF where there is
# none. Fibers and sanitizers do not go together.
include(CheckLanguage)
check_language(CXX)
set(FACTS_EMULATION OFF)
if(CMAKE_CXX_COMPILER AND NOT FACTS_SANITIZE AND NOT FACTS_COVERAGE)
  set(FACTS_EMULATION ON)
  enable_language(CXX)
endif()
set(FACTS_EMULATION_FOLDER ${CMAKE_CURRENT_LIST_DIR})

function(facts_emulated name)
  cmake_parse_arguments(ARG "" "ENTRIES" "KERNELS;INCLUDE;OPTIONS" ${ARGN})
  set(unity ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  set(text "#include \"emulate.h\"\n#include \"emulated_driver.h\"\n")
  foreach(source ${ARG_KERNELS} ${ARG_ENTRIES})
    string(APPEND text "#include \"${source}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${unity} CONTENT "${text}" @ONLY)
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${unity} ${FACTS_EMULATION_FOLDER}/emulation.cpp)
  target_include_directories(${name} PUBLIC ${FACTS_EMULATION_FOLDER} PRIVATE ${ARG_INCLUDE})
  target_compile_features(${name} PRIVATE cxx_std_17)
  target_compile_options(${name} PRIVATE -O2 -fno-strict-aliasing -U_FORTIFY_SOURCE -Wno-unknown-pragmas ${ARG_OPTIONS}) # a checked longjmp stays on its stack
  target_link_options(${name} INTERFACE -static-libstdc++)
  target_link_libraries(${name} PUBLIC gpu)
endfunction()

# facts_emulated_test(NAME SOURCES... LIBRARIES...): facts_test with a library of facts_emulated.
function(facts_emulated_test name)
  facts_test(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()
