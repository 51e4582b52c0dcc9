#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a kernel module for the nodes' kernel. Prints the module's path, in the cache.
#   siw           iWARP in software, which Debian's kernel comes without
#   rxe-in-pods   rdma_rxe that, like a NIC, sends from interfaces in any network namespace, see its patch
# KERNEL_DIR is what fetch-kernel.sh has written: the kernel's name, its headers and its source.
# usage: tests/testbed/build-module.sh NAME KERNEL_DIR
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/../../tools/common.sh"

name=$1
from=$(realpath "$2")
patch=/dev/null
case $name in
  siw) driver=siw option=CONFIG_RDMA_SIW module=siw ;;
  rxe-in-pods) driver=rxe option=CONFIG_RDMA_RXE module=rdma_rxe patch=$here/rxe-in-pods.patch ;;
  *) die "no module is called '$name': siw, rxe-in-pods" ;;
esac
read -r kernel version < "$from/kernel"
[ ! -e "$from/missing" ] || die "module $name: $(tail -n 1 "$from/missing"); run this again when the archive has them"
series=$(printf '%s' "$kernel" | grep -o '^[0-9]*\.[0-9]*')   # 6.1
common=linux-headers-${kernel%-*}-common                     # linux-headers-6.1.0-56-common
key=$(printf '%s' "$kernel $version" | cat - "$here/build-module.sh" "$patch" | sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/$name-$key.ko
if [ -e "$out" ]; then
  echo "$out"
  exit 0
fi
work=$(mktemp -d -p "$RAILHEAD_CACHE")
trap 'rm -rf "$work"' EXIT

say "building $name for Debian's kernel $kernel ($version)" >&2
log=$RAILHEAD_CACHE/logs/$name.log
mkdir -p "$RAILHEAD_CACHE/logs"
: > "$log"
cp -a "$from/headers" "$from/source" "$work"
# The packages name each other by absolute paths.
build=$work/headers/usr/src/linux-headers-$kernel
sed -i "s|/usr/src/|$work/headers/usr/src/|; s|/usr/lib/|$work/headers/usr/lib/|" "$build/Makefile"
for link in "$build/scripts" "$build/tools" "$work/headers/usr/src/$common/scripts" \
  "$work/headers/usr/src/$common/tools"; do
  [ -L "$link" ] && ln -sfn "$work/headers/usr/lib/linux-kbuild-$series/$(basename "$link")" "$link"
done
sources=$work/source/drivers/infiniband/sw/$driver
if [ -s "$patch" ]; then
  patch -s -p1 -d "$sources" < "$patch" >> "$log" 2>&1 ||
    { tail -n 15 "$log" >&2; die "$patch does not fit Debian's kernel $version (whole log: $log): adapt it"; }
fi
make -C "$build" M="$sources" "$option=m" KCFLAGS="-I$work/source/include/uapi" modules >> "$log" 2>&1 ||
  { tail -n 15 "$log" >&2; die "$name did not compile (whole log: $log)"; }
strip -g "$sources/$module.ko"
mv "$sources/$module.ko" "$out"
echo "$out"
