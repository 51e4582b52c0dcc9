#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a kernel module for a Debian kernel, from the source and the headers that Debian has of the same version.
# Prints the module's path, in the cache.
#   siw           iWARP in software, which Debian's kernel comes without
#   rxe-in-pods   rdma_rxe that, like a NIC, sends from interfaces in any network namespace, see its patch
# usage: tests/testbed/build-module.sh NAME KERNEL VERSION     such as siw 6.1.0-56-amd64 6.1.192-2
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/../../tools/common.sh"
# shellcheck source=tests/testbed/versions.env
. "$here/versions.env"

name=$1
kernel=$2
version=$3
patch=/dev/null
case $name in
  siw) driver=siw option=CONFIG_RDMA_SIW module=siw ;;
  rxe-in-pods) driver=rxe option=CONFIG_RDMA_RXE module=rdma_rxe patch=$here/rxe-in-pods.patch ;;
  *) die "no module is called '$name': siw, rxe-in-pods" ;;
esac
series=${kernel%%-*}   # 6.1.0
series=${series%.*}    # 6.1
key=$(printf '%s' "$kernel $version" | cat - "$here/build-module.sh" "$patch" | sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/$name-$key.ko
if [ -e "$out" ]; then
  echo "$out"
  exit 0
fi
work=$(mktemp -d -p "$RAILHEAD_CACHE")
trap 'rm -rf "$work"' EXIT
cd "$work"

say "building $name for Debian's kernel $kernel ($version)" >&2
log=$RAILHEAD_CACHE/logs/$name.log
mkdir -p "$RAILHEAD_CACHE/logs"
common=linux-headers-${kernel%-*}-common   # linux-headers-6.1.0-56-common
packages=("linux-source-$series=$version" "linux-headers-$kernel=$version" "$common=$version"
  "linux-kbuild-$series=$version")
fetch() { apt-get -o APT::Sandbox::User=root download "${packages[@]}" >> "$log" 2>&1; }
: > "$log"
# The nodes' kernel is the mirror's newest, which lists of packages from another day do not know.
fetch || { apt-get -o DPkg::Lock::Timeout=300 update >> "$log" 2>&1 && fetch; } || {
  tail -n 5 "$log" >&2
  die "Debian's packages of kernel $version could not be fetched (log: $log): see that apt-get update works (network, proxy, nobody else holding apt's lock) and that apt's sources are $DEBIAN, then run this again"
}
mkdir headers
for package in linux-headers-* linux-kbuild-*; do dpkg-deb -x "$package" headers; done
mkdir source
dpkg-deb --fsys-tarfile linux-source-*.deb | tar -xO "./usr/src/linux-source-$series.tar.xz" |
  tar -xJ -C source "linux-source-$series/drivers/infiniband/sw/$driver" \
    "linux-source-$series/include/uapi/rdma/siw-abi.h"
# The packages name each other by absolute paths.
build=$work/headers/usr/src/linux-headers-$kernel
sed -i "s|/usr/src/|$work/headers/usr/src/|; s|/usr/lib/|$work/headers/usr/lib/|" "$build/Makefile"
for link in "$build/scripts" "$build/tools" "$work/headers/usr/src/$common/scripts" \
  "$work/headers/usr/src/$common/tools"; do
  [ -L "$link" ] && ln -sfn "$work/headers/usr/lib/linux-kbuild-$series/$(basename "$link")" "$link"
done
sources=$work/source/linux-source-$series/drivers/infiniband/sw/$driver
if [ -s "$patch" ]; then
  patch -s -p1 -d "$sources" < "$patch" >> "$log" 2>&1 ||
    { tail -n 15 "$log" >&2; die "$patch does not fit Debian's kernel $version (whole log: $log): adapt it"; }
fi
make -C "$build" M="$sources" "$option=m" \
  KCFLAGS="-I$work/source/linux-source-$series/include/uapi" modules >> "$log" 2>&1 ||
  { tail -n 15 "$log" >&2; die "$name did not compile (whole log: $log)"; }
strip -g "$sources/$module.ko"
mv "$sources/$module.ko" "$out"
echo "$out"
