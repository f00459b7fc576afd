# The kernels as C++, against the oracle in C: needs a C++ compiler, no GPU. Fibers and sanitizers do not go together.
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER AND NOT FACTS_SANITIZE AND NOT FACTS_COVERAGE)
  enable_language(CXX)
  add_library(fref_emulated STATIC EXCLUDE_FROM_ALL cuda/test/emulated.cpp)
  set_source_files_properties(cuda/test/emulated.cpp PROPERTIES OBJECT_DEPENDS "${FREF_KERNELS};${FREF_KERNEL_HEADERS}")
  target_include_directories(fref_emulated PRIVATE include)
  target_compile_features(fref_emulated PRIVATE cxx_std_17)
  target_compile_options(fref_emulated PRIVATE -O2 -ffp-contract=off -fno-strict-aliasing -U_FORTIFY_SOURCE -Wno-unknown-pragmas) # a checked longjmp stays on its stack
  target_link_options(fref_emulated INTERFACE -static-libstdc++)
  facts_test(reference_test_gpu_emulated SOURCES cuda/test/test_gpu_emulated.c LIBRARIES fref_emulated fref_comparison fref_testing fref_gpu fref OpenMP::OpenMP_C)
  set_target_properties(reference_test_gpu_emulated PROPERTIES LINKER_LANGUAGE CXX)
endif()
