#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the container images of Railhead from a finished CMake build, without a container daemon.
set -euo pipefail
shopt -s inherit_errexit

usage() {
  cat <<'USAGE'
usage: images/build.sh [--pause] BUILD_DIR OUT_DIR BASE
       images/build.sh --base-only
       images/build.sh --inject WHEEL OUT_DIR

  BUILD_DIR  a CMake build folder in which the programs are built
  OUT_DIR    gets device-plugin.tar, operator.tar, runtime.tar (docker-archive, with the names
             docker.io/railhead/NAME:VERSION)
  BASE       the image to build on: a Debian 12 image by its digest, as
             docker.io/library/debian@sha256:..., since a tag may name another one tomorrow; or "local" for a
             Debian 12 root made here with mmdebstrap, which needs no registry: apt checks the signed hash of
             each package
  --pause    also build pause.tar, the sandbox image of the testbed's nodes
  --base-only
             make the root of "local" and end: it takes a minute and needs no programs
  --inject   build inject.tar alone, for spec.inject of RailProfiles: the libraries of the wheel that
             `make wheel` has put into out/wheel

Needs root, buildah and cmake; mmdebstrap for "local"; gcc for --pause.
RAILHEAD_CACHE names the folder for the base root and buildah's storage (default ~/.cache/railhead).
An image whose inputs did not change since it was last written to OUT_DIR is not built again.
USAGE
}

die() { printf 'images/build.sh: %s\n' "$*" >&2; exit 1; }
say() { printf 'images [%3ds] %s\n' "$SECONDS" "$*"; }
need() { command -v "$1" >/dev/null || die "$1 is missing: apt-get install $2"; }

readonly components=(device-plugin operator runtime)
# A small root: the usrmerge and recommended packages would bring a whole perl, and nobody reads
# manual pages and translations in a container.
readonly debootstrap_options=(
  --variant=apt --format=tar --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr
  --aptopt='APT::Install-Recommends "false"'
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright'
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/info/*'
  --dpkgopt='path-exclude=/usr/share/locale/*')

with_pause=false
base_only=false
inject=false
arguments=()
for argument in "$@"; do
  case $argument in
    -h | --help) usage; exit 0 ;;
    --pause) with_pause=true ;;
    --base-only) base_only=true ;;
    --inject) inject=true ;;
    -*) usage >&2; die "unknown option $argument" ;;
    *) arguments+=("$argument") ;;
  esac
done
if [ $base_only = true ]; then
  [ ${#arguments[@]} = 0 ] || { usage >&2; die "--base-only takes no arguments"; }
  base=local
elif [ $inject = true ]; then
  [ ${#arguments[@]} = 2 ] || { usage >&2; die "--inject needs WHEEL and OUT_DIR"; }
  wheel=${arguments[0]} out=${arguments[1]} base=scratch
else
  [ ${#arguments[@]} = 3 ] || { usage >&2; die "needs BUILD_DIR, OUT_DIR and BASE"; }
  build=${arguments[0]} out=${arguments[1]} base=${arguments[2]}
  [ "$base" = local ] || [[ $base =~ @sha256:[0-9a-f]{64}$ ]] ||
    die "BASE is '$base': name the image by its digest (IMAGE@sha256:...), or say local"
fi

[ "$(id -u)" = 0 ] || die "must run as root: buildah mounts and chroots"
need buildah buildah
need cmake cmake
[ "$base" != local ] || need mmdebstrap mmdebstrap
[ $with_pause = false ] || need gcc gcc
here=$(cd "$(dirname "$0")" && pwd)
if [ $inject = true ]; then
  need g++ g++
  [ -f "$wheel" ] || die "there is no $wheel: run make wheel"
  version=$(basename "$wheel" | cut -d- -f2)
  out=$(mkdir -p "$out" && cd "$out" && pwd)
elif [ $base_only = false ]; then
  [ -f "$build/CMakeCache.txt" ] || die "$build is no CMake build folder: run cmake --preset release"
  version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
  [ -n "$version" ] || die "$build/CMakeCache.txt names no project version: configure it again"
  build=$(cd "$build" && pwd)
  out=$(mkdir -p "$out" && cd "$out" && pwd)
fi
cache=${RAILHEAD_CACHE:-$HOME/.cache/railhead}/images
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

# One build at a time per cache: two would write the same base root.
exec 9>"$cache/lock"
flock -n 9 || { say "waiting for another build that uses $cache"; flock 9; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=${out:-$cache}/build.log
: >"$log"

# quietly WHAT COMMAND...: the command's words go to the log; its last ones are shown if it fails.
quietly() {
  local what=$1
  shift
  if ! "$@" >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "$what failed; the full log is $log"
  fi
}

# Storage of our own, so that the images of whoever runs this are left alone.
store() { buildah --root "$cache/storage" --runroot "$cache/run" "$@"; }

# tree_hash FOLDER: one hash of every path, mode, link target and byte below it.
tree_hash() {
  (
    cd "$1"
    { find . -printf '%P %m %y %l\n' | LC_ALL=C sort
      find . -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum; } | sha256sum | cut -d' ' -f1
  )
}

# Makes the local base image unless it is there; sets base and base_key.
local_base() {
  local packages root
  packages=$(sed 's/#.*//' "$here"/*/packages.txt | xargs -n1 | LC_ALL=C sort -u | paste -sd,)
  base_key=$(printf '%s\n' bookworm "$packages" "${debootstrap_options[@]}" | sha256sum |
    cut -c1-16)
  base=localhost/railhead-base:$base_key
  root=$cache/base-$base_key.tar
  if [ ! -f "$root" ]; then
    say "making a Debian 12 root with mmdebstrap (about a minute)"
    quietly mmdebstrap \
      mmdebstrap "${debootstrap_options[@]}" --include="$packages" bookworm "$root.part"
    mv "$root.part" "$root"
  fi
  if ! store inspect --type image "$base" >/dev/null 2>&1; then
    say "importing the root as $base"
    ln "$root" "$work/root.tar" 2>/dev/null || cp "$root" "$work/root.tar"
    printf 'FROM scratch\nADD root.tar /\nCMD ["/bin/bash"]\n' >"$work/Containerfile.base"
    quietly "importing the base root" store build --isolation chroot --timestamp 0 \
      --identity-label=false --tag "$base" --file "$work/Containerfile.base" "$work"
    rm "$work/root.tar"
  fi
}

# build_image NAME CONTAINERFILE CONTEXT [BUILDAH_OPTION...]: builds one image into
# OUT_DIR/NAME.tar, unless the one that is there was made of the same inputs.
build_image() {
  local name=$1 containerfile=$2 context=$3 reference inputs
  shift 3
  reference=docker.io/railhead/$name:$version
  inputs=$({ printf '%s\n' "$reference" "$@"; cat "$containerfile"; tree_hash "$context"; } |
    sha256sum | cut -d' ' -f1)
  if [ -f "$out/$name.tar" ] && [ "$(cat "$out/$name.inputs" 2>/dev/null)" = "$inputs" ]; then
    say "$name: unchanged"
    return
  fi
  say "$name: building $reference"
  rm -f "$out/$name.inputs" "$out/$name.tar"
  quietly "building $name" store build --isolation chroot --timestamp 0 --identity-label=false \
    --build-arg "VERSION=$version" "$@" --tag "$reference" --file "$containerfile" "$context"
  quietly "writing $name.tar" \
    store push "$reference" "docker-archive:$out/$name.tar.part:$reference"
  mv "$out/$name.tar.part" "$out/$name.tar"
  echo "$inputs" >"$out/$name.inputs"
  # The archive is what counts; keeping every build would fill the cache.
  quietly "tidying up after $name" store rmi --force "$reference"
  quietly "tidying up after $name" store rmi --prune
}

# stage NAME: lays out the build context of one image in $work/NAME.
stage() {
  local name=$1 component program
  local context=$work/$name
  mkdir -p "$context/root"
  case $name in
    runtime) set -- railhead-perf railhead ;;
    *) set -- "railhead-$name" ;;
  esac
  for component in "$@"; do
    quietly "installing $component (is it built?)" \
      cmake --install "$build" --component "$component" --prefix "$context/root/usr" --strip
  done
  program=$1
  [ -x "$context/root/usr/bin/$program" ] ||
    die "$build has no $program: build it first (cmake --build $build --target $program)"
  cp "$here/$name/packages.txt" "$here/install-packages.sh" "$here/check-libraries.sh" \
    "$here/../LICENSE" "$context/"
}

if [ $base_only = true ]; then
  local_base
  exit
fi
if [ $inject = true ]; then
  mkdir "$work/inject"
  quietly "laying out the libraries" "$here/inject/stage.sh" "$wheel" "$work/inject/root"
  cp "$here/../LICENSE" "$work/inject/"
  build_image inject "$here/inject/Containerfile" "$work/inject"
  say "done: $out"
  exit
fi
for name in "${components[@]}"; do stage "$name"; done
pull=false
if [ "$base" = local ]; then
  local_base
  pull=never
fi
for name in "${components[@]}"; do
  build_image "$name" "$here/$name/Containerfile" "$work/$name" \
    --pull="$pull" --build-arg "BASE=$base"
done
if [ $with_pause = true ]; then
  pause=$here/../tests/testbed/pause
  mkdir "$work/pause"
  quietly "compiling pause" gcc -static -Os -s -Wall -Werror -o "$work/pause/pause" "$pause/pause.c"
  build_image pause "$pause/Containerfile" "$work/pause"
fi
say "done: $out"
