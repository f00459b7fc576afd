# Compiles kernels into one fat binary and writes a C file that embeds it: SYMBOL, a gpu_image. Run by the build (facts_kernel_image):
#   cmake -DSYMBOL=NAME "-DWHOSE=the math backend" -DOUT=FILE.c -DNVCC=PATH -DSOURCES=A.cu;B.cu -DREAD=every;file;they;read -DINCLUDE=DIRS -DARCHS=80;90
#         -DSTORE=FOLDER -DSTRICT=ON [-DEACH=ON: each architecture from its own front end] -P make_image.cmake
#
# What has been compiled is kept in STORE under a key of everything that goes into it, so that build trees share it. Without an nvcc the image is
# empty and its text says why; so it is when kernels do not compile, but with STRICT, when that, and each warning, is an error.

cmake_minimum_required(VERSION 3.25)
set(FLAGS -fatbin -std=c++17 -O3 --threads 2 -allow-unsupported-compiler)

# The C file. The image is copied beside it: the store may lose what is old.
function(write_image about kept)
  set(bytes 0)
  set(embed "static const unsigned char ${SYMBOL}_data[] = { 0 };")
  string(REGEX REPLACE "\\.c$" ".fatbin" image ${OUT})
  file(REMOVE ${image})
  if(kept)
    file(COPY_FILE ${kept} ${image})
    file(SIZE ${image} bytes)
    string(REPLACE "\\" "\\\\" literal "${image}")
    string(REPLACE "\"" "\\\"" literal "${literal}")
    set(embed "extern const unsigned char ${SYMBOL}_data[];
__asm__(\".pushsection .rodata\\n.balign 64\\n.globl ${SYMBOL}_data\\n.hidden ${SYMBOL}_data\\n\"
        \"${SYMBOL}_data:\\n.incbin \\\"${literal}\\\"\\n.popsection\\n\");")
  endif()
  string(REPLACE "\\" "\\\\" about "${about}")
  string(REPLACE "\"" "\\\"" about "${about}")
  file(WRITE ${OUT} "/* Made by lib/gpu/make_image.cmake. */
#include <gpu/gpu_module.h>

${embed}
extern const gpu_image ${SYMBOL};
const gpu_image ${SYMBOL} = { ${SYMBOL}_data, ${bytes}, \"${about}\" };
")
endfunction()

function(no_image why)
  message(STATUS "${WHOSE} is built without kernels: ${why}")
  write_image("${why}" "")
endfunction()

if(NOT SOURCES)
  no_image("there are none")
  return()
elseif(NOT NVCC OR NOT EXISTS ${NVCC})
  no_image("there was no nvcc")
  return()
endif()

# An nvcc that cannot do it is an environment, not an error: too old for one of the architectures, or without a C++ preprocessor of the host's.
execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE version ERROR_VARIABLE version RESULT_VARIABLE failed)
string(REGEX MATCH "V([0-9]+\\.[0-9]+\\.[0-9]+)" version "${version}")
set(version ${CMAKE_MATCH_1})
if(failed OR NOT version)
  no_image("${NVCC} does not run")
  return()
elseif(version VERSION_LESS 12.8)
  no_image("nvcc ${version} is older than 12.8")
  return()
endif()

# The kernels use nothing that the oldest architecture lacks: its PTX is made once, every cubin from it (half the time of a front end for each), and
# it is kept, so that a driver can compile it for what has no cubin here (sm_110, and what is not made yet).
list(GET ARCHS 0 oldest)
list(TRANSFORM ARCHS PREPEND sm_ OUTPUT_VARIABLE codes)
list(APPEND codes compute_${oldest})
list(JOIN codes "," list)
set(targets "--generate-code=arch=compute_${oldest},code=[${list}]")
if(EACH)
  set(targets --generate-code=arch=compute_${oldest},code=compute_${oldest})
  foreach(arch ${ARCHS})
    list(APPEND targets --generate-code=arch=compute_${arch},code=sm_${arch})
  endforeach()
endif()
list(JOIN codes " " list)
set(about "nvcc ${version}: ${list}")
if(version VERSION_GREATER_EQUAL 13.0) # an eighth of the size; drivers of CUDA 12 need not know it
  list(APPEND FLAGS --compress-mode=size)
endif()

# glibc 2.42 declares an rsqrt of its own for _GNU_SOURCE, which g++ defines; nvcc 13.0 has another one. The kernels need neither.
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE glibc ERROR_QUIET)
if(glibc MATCHES "glibc ([0-9.]+)")
  if(CMAKE_MATCH_1 VERSION_GREATER_EQUAL 2.42)
    list(APPEND FLAGS -U_GNU_SOURCE)
  endif()
endif()

set(key "${version} ${FLAGS} ${targets}")
foreach(file ${SOURCES} ${READ})
  file(SHA256 ${file} hash)
  get_filename_component(name ${file} NAME)
  string(APPEND key " ${name} ${hash}")
endforeach()
string(SHA256 key "${key}")
string(SUBSTRING ${key} 0 24 key)
set(image ${STORE}/${key}.fatbin)

if(NOT EXISTS ${image})
  file(MAKE_DIRECTORY ${STORE})
  string(RANDOM LENGTH 8 mark)
  set(unity ${OUT}.${mark}.cu)
  set(text)
  foreach(source ${SOURCES})
    string(APPEND text "#include \"${source}\"\n")
  endforeach()
  file(WRITE ${unity} "${text}")
  set(include)
  foreach(folder ${INCLUDE})
    list(APPEND include "-I${folder}")
  endforeach()
  string(TIMESTAMP start %s)
  execute_process(COMMAND ${NVCC} ${FLAGS} -Werror all-warnings ${targets} ${include} -MD -MF ${unity}.d -o ${image}.${mark} ${unity} RESULT_VARIABLE failed ERROR_VARIABLE said OUTPUT_VARIABLE said)
  if(failed)
    file(REMOVE ${unity} ${unity}.d ${image}.${mark})
    if(said MATCHES "cc1plus|gcc: No such file|Failed to preprocess host compiler|Cannot find compiler")
      no_image("nvcc ${version} needs g++, and there was none")
      return()
    endif()
    message(NOTICE "${said}")
    if(STRICT)
      message(FATAL_ERROR "The kernels of ${WHOSE} do not compile.")
    endif()
    no_image("nvcc ${version} does not compile them, or warns")
    return()
  endif()
  # A header of ours that is not part of the key would leave an old image in use.
  file(READ ${unity}.d read)
  file(REMOVE ${unity} ${unity}.d)
  string(REGEX REPLACE "^[^:]*:" "" read "${read}")
  string(REGEX MATCHALL "[^ \n\\]+" read "${read}")
  list(REMOVE_ITEM read ${unity} ${SOURCES} ${READ})
  foreach(folder ${INCLUDE})
    foreach(file ${read})
      string(FIND "${file}" "${folder}/" at)
      if(at EQUAL 0)
        file(REMOVE ${image}.${mark})
        message(FATAL_ERROR "${file} is read by the kernels of ${WHOSE} but is not in READ: see where make_image.cmake is called")
      endif()
    endforeach()
  endforeach()
  file(RENAME ${image}.${mark} ${image})
  string(TIMESTAMP end %s)
  math(EXPR seconds "${end} - ${start}")
  message(STATUS "Kernels of ${WHOSE}, ${about}: ${seconds} s")
endif()
write_image("${about}" ${image})
