# What `cmake --install` gives a user of the library: headers, libfattn.so, libfattn.a, the descriptions of GPUs, the driver without a device, and how
# CMake and pkg-config find them. Both forms of the library show the functions of its headers and nothing else: of what it is made of, jansson and
# xxHash included, no name is left to collide with a user's own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(FATTN_SOVERSION ${PROJECT_VERSION_MAJOR}) # structs carry their size and only grow: an older caller keeps working
set(packed ${CMAKE_BINARY_DIR}/package)
set(exports ${CMAKE_CURRENT_SOURCE_DIR}/package/exports.map)

# Everything as one object, its inner names made local; both forms are made of it. With FACTS_SHARED jansson and xxHash stay libraries of their own.
set(unpack)
set(parts)
if(NOT FACTS_SHARED)
  set(unpack COMMAND ${CMAKE_OBJCOPY} --redefine-sym stdin=fattn__no_stdin $<TARGET_FILE:jansson> ${packed}/jansson.a)
  set(parts ${packed}/jansson.a $<TARGET_FILE:xxhash>)
endif()
add_library(fattn_no_stdin OBJECT package/no_stdin.c)
target_link_libraries(fattn_no_stdin PRIVATE facts_options)
add_custom_command(OUTPUT ${packed}/fattn.o ${packed}/libfattn.a
  COMMAND ${CMAKE_COMMAND} -E make_directory ${packed}
  ${unpack}
  COMMAND ${CMAKE_LINKER} -r -o ${packed}/fattn.o $<TARGET_OBJECTS:fattn_no_stdin>
          --whole-archive $<TARGET_FILE:fattn> $<TARGET_FILE:gpu> --no-whole-archive ${parts}
  COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=fattn_[!_]*" ${packed}/fattn.o
  COMMAND ${CMAKE_COMMAND} -E rm -f ${packed}/libfattn.a
  COMMAND ${CMAKE_AR} rcs ${packed}/libfattn.a ${packed}/fattn.o
  DEPENDS fattn gpu fattn_no_stdin $<TARGET_OBJECTS:fattn_no_stdin> COMMAND_EXPAND_LISTS VERBATIM)

# OpenMP as a library of its own: a process should have one, and a program may use it too.
add_library(fattn_shared SHARED ${packed}/fattn.o)
target_link_libraries(fattn_shared PRIVATE ${OpenMP_C_FLAGS} m dl $<$<BOOL:${FACTS_SHARED}>:jansson> $<$<BOOL:${FACTS_SHARED}>:xxhash>)
# dlclose leaves it there: cuDNN calls its log function, and OpenMP's threads wait in a library that would go with it.
target_link_options(fattn_shared PRIVATE -Wl,--version-script=${exports} -Wl,--no-undefined -Wl,-z,nodelete)
set_target_properties(fattn_shared PROPERTIES OUTPUT_NAME fattn LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${FATTN_SOVERSION}
  LINK_DEPENDS ${exports} LIBRARY_OUTPUT_DIRECTORY ${packed}
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN") # a wheel has OpenMP beside the library

# What a program that links the archive needs beside it.
set(FATTN_STATIC_LIBRARIES ${OpenMP_C_LIB_NAMES} m dl pthread)
if(FACTS_SHARED)
  list(APPEND FATTN_STATIC_LIBRARIES jansson xxhash)
endif()
list(REMOVE_DUPLICATES FATTN_STATIC_LIBRARIES)
list(TRANSFORM FATTN_STATIC_LIBRARIES PREPEND -l OUTPUT_VARIABLE FATTN_LIBS_PRIVATE)
list(JOIN FATTN_LIBS_PRIVATE " " FATTN_LIBS_PRIVATE)
configure_package_config_file(package/fattnConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/fattnConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fattn PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/fattnConfigVersion.cmake VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
# From the folder of the .pc file to the prefix, so that what was installed may be moved.
file(RELATIVE_PATH FATTN_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" FATTN_PC_UP "${FATTN_PC_UP}")
configure_file(package/fattn.pc.in fattn.pc @ONLY)

install(DIRECTORY include/fattn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS fattn_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${packed}/libfattn.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS nullcuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/fattn/nulldriver NAMELINK_SKIP)
install(DIRECTORY devices DESTINATION ${CMAKE_INSTALL_DATADIR}/fattn FILES_MATCHING PATTERN "*.json")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fattnConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/fattnConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fattn)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/fattn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/fattn)
foreach(package libjansson-dev libxxhash-dev) # parts of both libraries
  install(FILES /usr/share/doc/${package}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/fattn/licences RENAME ${package} OPTIONAL)
endforeach()
