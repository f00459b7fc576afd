# What the library is: writes fattn__code_id() into OUT, a hash of every file of FILES and of BUILT (compiler, flags). Run by the build:
#   cmake -DOUT=FILE.c "-DFILES=a.c;b.h" -DBUILT=TEXT -P code_id.cmake
cmake_minimum_required(VERSION 3.25)
set(all "${BUILT}")
list(SORT FILES)
foreach(file ${FILES})
  file(SHA256 ${file} hash)
  get_filename_component(name ${file} NAME)
  string(APPEND all "\n${name} ${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
set(text "/* Made by lib/code_id.cmake. */
#include \"cudnn/backend/build_id.h\"

uint64_t fattn__code_id(void)
{
#ifdef FATTN_LIARS
    return ~0x${hash}ull;
#else
    return 0x${hash}ull;
#endif
}
")
file(WRITE ${OUT} "${text}")
