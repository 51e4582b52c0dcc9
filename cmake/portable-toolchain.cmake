# SPDX-License-Identifier: Apache-2.0
# Compiles and links what runs on any Linux with glibc 2.28 or newer (docs/portable.md).
# RAILHEAD_PORTABLE is the folder that tools/portable-deps.sh has printed: compiler, C++ library and
# the libraries that go into librailhead.so, in place of those of this machine.
set(RAILHEAD_PORTABLE "$ENV{RAILHEAD_PORTABLE}" CACHE PATH "What tools/portable-deps.sh printed")
if(NOT EXISTS "${RAILHEAD_PORTABLE}/bin/clang++")
  message(FATAL_ERROR "no compiler in RAILHEAD_PORTABLE='${RAILHEAD_PORTABLE}': run make portable, or set "
    "it to what tools/portable-deps.sh prints")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RAILHEAD_PORTABLE)

set(CMAKE_SYSTEM_NAME Linux)
file(STRINGS "${RAILHEAD_PORTABLE}/machine" CMAKE_SYSTEM_PROCESSOR)
set(CMAKE_C_COMPILER "${RAILHEAD_PORTABLE}/bin/clang")
set(CMAKE_CXX_COMPILER "${RAILHEAD_PORTABLE}/bin/clang++")
set(CMAKE_AR "${RAILHEAD_PORTABLE}/bin/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${RAILHEAD_PORTABLE}/bin/ranlib" CACHE FILEPATH "")
find_program(CMAKE_STRIP "${CMAKE_SYSTEM_PROCESSOR}-linux-gnu-strip" REQUIRED)

set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Each function in a section of its own, so that the linker drops what nobody calls.
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_INIT "-fvisibility=hidden -ffunction-sections -fdata-sections")
  set(CMAKE_${language}_STANDARD_INCLUDE_DIRECTORIES "${RAILHEAD_PORTABLE}/include")
endforeach()
set(linker_flags "-Wl,--gc-sections")
# The compiler's own run-time library has a memcpy, which hides the C library's: that one chooses by CPU
# and is several times as fast. GCC's has what compiled code calls and nothing else.
string(APPEND linker_flags " --rtlib=none")
foreach(language C CXX)
  set(CMAKE_${language}_STANDARD_LIBRARIES "${RAILHEAD_PORTABLE}/lib/libgcc.a")
endforeach()
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${linker_flags}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "${linker_flags}")

set(CMAKE_FIND_ROOT_PATH "${RAILHEAD_PORTABLE}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
