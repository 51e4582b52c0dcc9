#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes what librailhead.so is built with so that it runs on any Linux with glibc 2.28 or newer: clang
# with that C library's symbols and a static C++ library (PyPI: ziglang), and static libraries from the
# sources of Debian's packages. Prints the folder. Some minutes with nothing cached.
# usage: tools/portable-deps.sh [MACHINE]     x86_64 or aarch64; this machine's if not said
# docs/portable.md says why it is done this way.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/common.sh"

machine=${1:-$(uname -m)}
glibc=2.28
sources=(abseil libsodium prometheus-cpp)
key=$(printf '%s\n' "$machine" | cat - "$0" "$here/requirements-portable.txt" \
  "$here/../cmake/portable-toolchain.cmake" | sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/portable-$machine-$key
mkdir -p "$RAILHEAD_CACHE/logs"
exec 9> "$RAILHEAD_CACHE/portable.lock"
flock 9
if [ -e "$out/complete" ]; then
  echo "$out"
  exit 0
fi
log=$RAILHEAD_CACHE/logs/portable.log
: > "$log"

# quietly WHAT COMMAND...: the command's words go to the log; its last ones are shown if it fails.
quietly() {
  local what=$1
  shift
  "$@" >> "$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "$what failed (whole log: $log)"
  }
}

venv=$(venv_of portable "$here/requirements-portable.txt")
if [ ! -e "$venv/complete" ]; then
  say "installing clang with C libraries (PyPI): $(grep -v '^#' "$here/requirements-portable.txt")" >&2
  quietly "making $venv" /usr/bin/python3 -m venv --clear "$venv"
  quietly "PyPI" timeout 900 "$venv/bin/python" -m pip install -r "$here/requirements-portable.txt"
  touch "$venv/complete"
fi
zig=$(echo "$venv"/lib/python3*/site-packages/ziglang/zig)

rm -rf "$out"
mkdir -p "$out"/{bin,include,lib/cmake}
work=$(mktemp -d -p "$RAILHEAD_CACHE")
trap 'rm -rf "$work"' EXIT
echo "$machine" > "$out/machine"
# CMake and ccache know what a program with these names is.
for tool in clang:cc clang++:c++ ar:ar ranlib:ranlib; do
  target=
  [[ $tool != clang* ]] || target=" -target $machine-linux-gnu.$glibc -fno-sanitize=undefined"
  cat > "$out/bin/${tool%:*}" << END
#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR="$RAILHEAD_CACHE/zig" ZIG_LOCAL_CACHE_DIR="$RAILHEAD_CACHE/zig"
exec $zig ${tool#*:}$target "\$@"
END
  chmod +x "$out/bin/${tool%:*}"
done

# GCC's run-time library (cmake/portable-toolchain.cmake): this machine's, or Debian's for another one.
if [ "$machine" = "$(uname -m)" ]; then
  cp "$(gcc -print-libgcc-file-name)" "$out/lib/"
else
  [ "$machine" = aarch64 ] || die "no run-time library of GCC for $machine on $(uname -m)"
  (cd "$work" && quietly "apt-get download" apt-get -q download "libgcc-$(gcc -dumpversion)-dev-arm64-cross")
  dpkg-deb -x "$work"/libgcc-*-cross_*.deb "$work/libgcc"
  find "$work/libgcc" -name libgcc.a -exec cp {} "$out/lib/" \;
fi

# Sources, with Debian's corrections, from where this machine's packages come from; apt's own lists and
# settings are not touched.
say "fetching sources (Debian): ${sources[*]}" >&2
mkdir -p "$work"/apt/{lists,cache/archives}/partial "$work/src"
# shellcheck disable=SC2016  # apt expands it
apt-get indextargets --format 'deb-src $(SITE) $(RELEASE) $(COMPONENT)' \
  'Created-By: Packages' 'Origin: Debian' | sort -u > "$work/apt/sources.list"
[ -s "$work/apt/sources.list" ] || die "apt has no lists of Debian's packages: run apt-get update"
apt=(apt-get -q -o "Dir::Etc::sourcelist=$work/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State::lists=$work/apt/lists" -o "Dir::Cache=$work/apt/cache" -o APT::Sandbox::User=root)
quietly "apt-get update" "${apt[@]}" update
cd "$work/src"
quietly "apt-get source" "${apt[@]}" source "${sources[@]}"
grep -h '^Version:' ./*.dsc > /dev/null || die "apt-get source gave no .dsc"
for dsc in *.dsc; do echo "${dsc%.dsc}"; done > "$out/versions.txt"
for source in "${sources[@]}"; do mv "$source"-*/ "$source"; done

cmake_build() {  # NAME OPTION...
  local name=$1
  shift
  say "building $name" >&2
  quietly "configuring $name" cmake -G Ninja -S "$name" -B "$work/build-$name" \
    --toolchain "$here/../cmake/portable-toolchain.cmake" -DRAILHEAD_PORTABLE="$out" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE="-O2 -DNDEBUG" \
    -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" -DCMAKE_INSTALL_PREFIX="$out" -DCMAKE_INSTALL_LIBDIR=lib \
    -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF "$@"
  quietly "building $name" cmake --build "$work/build-$name" --target install
}
# Debian links libatomic for CPUs that need it, in a way that this linker does not know.
sed -i '/push-state/d' abseil/absl/copts/AbseilConfigureCopts.cmake
# This clang takes instructions of ARM by another option.
sed -i 's/-march=armv8-a+crypto/-mcpu=generic+crypto/' abseil/absl/copts/*
cmake_build abseil -DCMAKE_CXX_STANDARD=17 -DABSL_PROPAGATE_CXX_STD=ON
# For the text of the metrics page alone.
cmake_build prometheus-cpp -DENABLE_PUSH=OFF -DENABLE_PULL=OFF -DENABLE_COMPRESSION=OFF -DENABLE_TESTING=OFF \
  -DGENERATE_PKGCONFIG=OFF -DCMAKE_C_FLAGS=-Wno-date-time

# Debian's libsodium has no configure script; without one it takes what every C compiler can do. Code for
# instructions that not every x86 has is compiled beside it, and chosen when the library starts.
say "building libsodium" >&2
sodium=libsodium/src/libsodium
cp libsodium/builds/msvc/version.h "$sodium/include/sodium/"
mkdir "$work/build-libsodium"
instructions=
if [ "$machine" = x86_64 ]; then
  instructions="-DHAVE_CPUID -DHAVE_MMINTRIN_H -DHAVE_EMMINTRIN_H -DHAVE_PMMINTRIN_H -DHAVE_TMMINTRIN_H
    -DHAVE_SMMINTRIN_H -DHAVE_AVXINTRIN_H -DHAVE_AVX2INTRIN_H -DHAVE_AVX512FINTRIN_H -DHAVE_WMMINTRIN_H"
fi
cat > "$work/compile-sodium" << 'END'
# clang sodium-folder output-folder number file
case $5 in
  */sodium/runtime.c) more=-DHAVE_AVX_ASM ;;
  *-avx2.c) more=-mavx2 ;;
  *-avx512f.c) more=-mavx512f ;;
  *-ssse3.c) more=-mssse3 ;;
  *-sse41.c) more=-msse4.1 ;;
  */aesni/*) more="-mssse3 -maes -mpclmul" ;;
  *) more= ;;
esac
[ -n "$RAILHEAD_INSTRUCTIONS" ] || more=
# shellcheck disable=SC2086  # several words
exec "$1" -O2 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -w -DNDEBUG -DCONFIGURED=1 \
  -DSODIUM_STATIC $RAILHEAD_INSTRUCTIONS $more -I"$2/include" -I"$2/include/sodium" -c "$5" -o "$3/$4.o"
END
find "$sodium" -name '*.c' -print | nl -w 1 -s ' ' | RAILHEAD_INSTRUCTIONS=$instructions quietly "building libsodium" \
  xargs -P "$(nproc)" -L 1 sh -e "$work/compile-sodium" "$out/bin/clang" "$sodium" "$work/build-libsodium"
quietly "archiving libsodium" "$out/bin/ar" rcs "$out/lib/libsodium.a" "$work"/build-libsodium/*.o
cp -r "$sodium/include/sodium.h" "$sodium/include/sodium" "$out/include/"

# Headers alone; /usr/include itself would bring this machine's C library along.
for header in CLI hwy infiniband nlohmann rdma; do ln -s "/usr/include/$header" "$out/include/"; done
# package NAME TARGET... : what find_package(NAME) gives where only headers are used, or nothing is built.
package() {
  local target
  mkdir "$out/lib/cmake/$1"
  for target in "${@:2}"; do echo "add_library($target INTERFACE IMPORTED)"; done \
    > "$out/lib/cmake/$1/$1Config.cmake"
}
package CLI11 CLI11::CLI11
package hwy hwy::hwy
package nlohmann_json nlohmann_json::nlohmann_json
package GTest GTest::gmock GTest::gtest_main
package yaml-cpp yaml-cpp

# A new recipe makes a new folder: keep only the newest few.
find "$RAILHEAD_CACHE" -maxdepth 1 -name "portable-$machine-*" -printf '%T@ %p\n' | sort -rn |
  tail -n +3 | cut -d' ' -f2- | xargs -r rm -rf
touch "$out/complete"
echo "$out"
