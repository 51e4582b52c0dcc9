# SPDX-License-Identifier: Apache-2.0
# How every part of Railhead is compiled: one place for the language, the warnings, the hardening,
# and the functions that declare libraries, programs, tests, fuzz tests and benchmarks.
#
# Targets that collect others:
#   railhead_programs      what is installed: the images need this alone
#   railhead_tests         the unit tests, and the programs that tests/ runs
#   railhead_fuzz_tests    the replay of all corpora, or with RAILHEAD_FUZZ the fuzzers
#   railhead_benches       the benchmarks
#   railhead_generated     generated headers: what clang-tidy needs before it can read our sources
# `all` is programs and tests.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

set(RAILHEAD_SANITIZE "" CACHE STRING "Sanitizers to build with: 'address,undefined' or 'thread'")
option(RAILHEAD_PLAIN_REDUCTIONS "Compile the reductions without sanitizers, which take minutes; no fuzzer reaches them" OFF)
option(RAILHEAD_FUZZ "Make the fuzz tests fuzzers (libFuzzer with sanitizers; needs clang)" OFF)
if(RAILHEAD_FUZZ AND (RAILHEAD_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang"))
  message(FATAL_ERROR "RAILHEAD_FUZZ brings its own sanitizers and needs clang: configure a folder of "
    "its own with -DCMAKE_CXX_COMPILER=clang++ -DRAILHEAD_FUZZ=ON, and without RAILHEAD_SANITIZE")
endif()

# Warnings are errors for the compilers of `make test`. Newer ones warn of the C++ library's own headers, which must
# not end the build of a newcomer.
set(RAILHEAD_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  list(REMOVE_ITEM RAILHEAD_WARNINGS -Werror)
endif()
add_library(railhead_options INTERFACE)
target_compile_options(railhead_options INTERFACE
  ${RAILHEAD_WARNINGS}
  -fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|i.86)$")
  target_compile_options(railhead_options INTERFACE -fcf-protection)
endif()
option(RAILHEAD_UNITY "Compile up to 16 files of a target at once, which takes a third of the time" OFF)
if(RAILHEAD_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Such a build includes our files into one, and GCC takes them for headers.
  target_compile_options(railhead_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
target_link_options(railhead_options INTERFACE -Wl,-z,relro,-z,now -Wl,--as-needed)
target_include_directories(railhead_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_compile_definitions(railhead_options INTERFACE RAILHEAD_VERSION="${PROJECT_VERSION}")
if(RAILHEAD_SANITIZE)
  target_compile_options(railhead_options INTERFACE -fsanitize=${RAILHEAD_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all
    -Wno-restrict)  # GCC 12 sees overlaps in std::string's assignments that are none
  if(RAILHEAD_SANITIZE STREQUAL thread)
    # It does not know fences. Ours order a store before a look, and publish nothing.
    target_compile_options(railhead_options INTERFACE -Wno-tsan)
  endif()
  target_link_options(railhead_options INTERFACE -fsanitize=${RAILHEAD_SANITIZE})
elseif(RAILHEAD_FUZZ)
  target_compile_options(railhead_options INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(railhead_options INTERFACE -fsanitize=address,undefined)
else()
  # glibc's checks need an optimiser, which tests do without (below).
  target_compile_definitions(railhead_options INTERFACE
    $<$<NOT:$<OR:$<CONFIG:Debug>,$<BOOL:$<TARGET_PROPERTY:RAILHEAD_NOT_OPTIMISED>>>>:_FORTIFY_SOURCE=2>)
endif()

find_package(absl REQUIRED)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)
include(GoogleTest)

add_custom_target(railhead_programs)
add_custom_target(railhead_tests)
add_custom_target(railhead_fuzz_tests)
add_custom_target(railhead_benches)
add_custom_target(railhead_generated)

# railhead_unity(TARGET): compiles several of the target's files at once where RAILHEAD_UNITY is ON.
function(railhead_unity target)
  set_property(GLOBAL APPEND PROPERTY railhead_unity_targets ${target})
endfunction()

# railhead_unity_sources(): does so; called once, when all targets and properties of files are known.
# CMake's own unity builds name files by absolute paths, which __FILE__ then has and ccache sees: clones
# in other folders would share nothing.
function(railhead_unity_sources)
  get_property(targets GLOBAL PROPERTY railhead_unity_targets)
  if(NOT RAILHEAD_UNITY)
    return()
  endif()
  foreach(target IN LISTS targets)
    get_target_property(folder ${target} SOURCE_DIR)
    get_target_property(binary ${target} BINARY_DIR)
    get_target_property(sources ${target} SOURCES)
    set(alone)
    set(together)
    foreach(source IN LISTS sources)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE OUTPUT_VARIABLE path)
      set(own_flags)
      foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS)
        get_source_file_property(value ${path} TARGET_DIRECTORY ${target} ${property})
        if(value)
          list(APPEND own_flags ${value})
        endif()
      endforeach()
      if(source MATCHES "\\.cc$" AND NOT source MATCHES "\\$<" AND NOT own_flags)
        cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
        list(APPEND together ${path})
      else()
        list(APPEND alone ${source})
      endif()
    endforeach()
    # Batches of one size: the compilers that run side by side end together.
    list(LENGTH together count)
    math(EXPR batches "(${count} + 15) / 16")
    set(begin 0)
    while(begin LESS count)
      math(EXPR size "(${count} - ${begin} + ${batches} - 1) / ${batches}")
      list(SUBLIST together ${begin} ${size} batch)
      list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"")
      list(JOIN batch "\n" batch)
      set(file ${binary}/unity/${target}_${begin}.cc)
      file(CONFIGURE OUTPUT ${file} CONTENT "@batch@\n" @ONLY)
      list(APPEND alone ${file})
      math(EXPR begin "${begin} + ${size}")
      math(EXPR batches "${batches} - 1")
    endwhile()
    set_target_properties(${target} PROPERTIES SOURCES "${alone}")
  endforeach()
endfunction()

# railhead_library(NAME SRCS a.cc ... [DEPS target ...]): a static library that sees the repository
# root as its include path, so that headers are named by their folder ("fabric/inventory.h").
function(railhead_library name)
  cmake_parse_arguments(arg "" "" "SRCS;DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SRCS})
  target_link_libraries(${name} PUBLIC railhead_options ${arg_DEPS})
  railhead_unity(${name})
endfunction()

# railhead_program(NAME SRCS main.cc ... [DEPS target ...]): an installed program.
function(railhead_program name)
  cmake_parse_arguments(arg "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${arg_SRCS})
  target_link_libraries(${name} PRIVATE railhead_options ${arg_DEPS})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${name})
  add_dependencies(railhead_programs ${name})
endfunction()

# railhead_not_optimised(TARGET): compiles a target of a release build without optimisation, which
# takes half as long. For tests; the code under test is optimised, as users run it.
function(railhead_not_optimised target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  set_target_properties(${target} PROPERTIES RAILHEAD_NOT_OPTIMISED $<CONFIG:Release>)
endfunction()

# railhead_busy_tests(a_test.cc ... [OPTIONS option ...]): optimises these files of a release build
# nevertheless. For tests that simulate or compute for seconds.
function(railhead_busy_tests)
  cmake_parse_arguments(arg "" "" "OPTIONS" ${ARGN})
  set_source_files_properties(${arg_UNPARSED_ARGUMENTS} PROPERTIES
    COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>;${arg_OPTIONS}")
endfunction()

# railhead_test_library(NAME SRCS a.cc ... [DEPS target ...]): a library that tests share.
function(railhead_test_library name)
  railhead_library(${name} ${ARGN})
  railhead_not_optimised(${name})
  set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
endfunction()

# railhead_test(NAME SRCS a_test.cc ... [DEPS target ...] [TIMEOUT seconds] [LABELS label]): a
# GoogleTest program; each TEST is one ctest case with a deadline of its own. A folder that sets
# RAILHEAD_UNITY_TESTS to OFF has its test files compiled one by one.
function(railhead_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;LABELS" "SRCS;DEPS" ${ARGN})
  if(NOT arg_TIMEOUT)
    # The slowest take 20 s alone. Beside the other parts of `make test`, on a machine that others use, they may take
    # ten times that.
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SRCS})
  target_link_libraries(${name} PRIVATE railhead_options ${arg_DEPS} GTest::gmock GTest::gtest_main)
  railhead_not_optimised(${name})
  if(NOT DEFINED RAILHEAD_UNITY_TESTS OR RAILHEAD_UNITY_TESTS)
    railhead_unity(${name})
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
  add_dependencies(railhead_tests ${name})
endfunction()

# railhead_test_program(NAME SRCS a.cc ... [DEPS target ...]): a program that tests start.
function(railhead_test_program name)
  cmake_parse_arguments(arg "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${arg_SRCS})
  target_link_libraries(${name} PRIVATE railhead_options ${arg_DEPS})
  add_dependencies(railhead_tests ${name})
endfunction()

# railhead_bench(NAME SRCS a_bench.cc ... [DEPS target ...]): a benchmark of `make bench`.
function(railhead_bench name)
  cmake_parse_arguments(arg "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SRCS})
  target_link_libraries(${name} PRIVATE railhead_options ${arg_DEPS})
  add_dependencies(railhead_benches ${name})
endfunction()

# railhead_fuzz_test(NAME SRCS a_fuzz.cc CORPUS folder [DEPS target ...]): a file that defines
# LLVMFuzzerTestOneInput, and one ctest case that calls it with each file of the corpus. One program
# holds all of them, each under its own name. With RAILHEAD_FUZZ each is a fuzzer: NAME CORPUS
# searches for inputs that break it.
# A release build has none of them: they are for sanitizers.
function(railhead_fuzz_test name)
  cmake_parse_arguments(arg "" "CORPUS" "SRCS;DEPS" ${ARGN})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${arg_CORPUS})
  if(RAILHEAD_FUZZ)
    add_executable(${name} EXCLUDE_FROM_ALL ${arg_SRCS})
    target_link_libraries(${name} PRIVATE railhead_options ${arg_DEPS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(railhead_fuzz_tests ${name})
    add_test(NAME ${name} COMMAND ${name} -runs=0 ${corpus})
  elseif(CMAKE_BUILD_TYPE STREQUAL Release)
    return()
  else()
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${arg_SRCS})
    target_link_libraries(${name} PRIVATE railhead_options ${arg_DEPS})
    target_compile_definitions(${name} PRIVATE LLVMFuzzerTestOneInput=${name})
    set_property(GLOBAL APPEND PROPERTY railhead_fuzz_targets ${name})
    set_property(GLOBAL APPEND PROPERTY railhead_fuzz_deps ${arg_DEPS})
    add_test(NAME ${name} COMMAND railhead_fuzz_replay ${name} ${corpus})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 LABELS fuzz)
endfunction()

# railhead_fuzz_replay(): the program with every fuzz test. Called once, after all of them.
function(railhead_fuzz_replay)
  get_property(targets GLOBAL PROPERTY railhead_fuzz_targets)
  if(NOT targets)
    return()
  endif()
  get_property(deps GLOBAL PROPERTY railhead_fuzz_deps)
  list(REMOVE_DUPLICATES deps)
  list(TRANSFORM targets REPLACE "(.+)" "RAILHEAD_FUZZ_TARGET(\\1)" OUTPUT_VARIABLE table)
  list(JOIN table "\n" table)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/fuzz/targets.inc CONTENT "@table@\n" @ONLY)
  add_executable(railhead_fuzz_replay ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc)
  target_include_directories(railhead_fuzz_replay PRIVATE ${CMAKE_BINARY_DIR}/fuzz)
  list(TRANSFORM targets REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  target_sources(railhead_fuzz_replay PRIVATE ${targets})
  target_link_libraries(railhead_fuzz_replay PRIVATE railhead_options ${deps})
  add_dependencies(railhead_fuzz_tests railhead_fuzz_replay)
endfunction()
