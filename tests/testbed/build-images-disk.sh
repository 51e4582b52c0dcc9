#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the disk that a node mounts at /var/lib/containerd, with images already unpacked in it: an
# emulated CPU would spend minutes on that. Prints the disk's path, in the cache.
# usage: tests/testbed/build-images-disk.sh KUBE_BIN_DIR IMAGE.tar...
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/../../tools/common.sh"

bin=$(realpath "$1")
shift
[ $# -gt 0 ] || die "no image given"
for tar in "$@"; do [ -f "$tar" ] || die "$tar: no such image archive"; done
key=$(printf '%s' "$bin" | cat - "$here/build-images-disk.sh" "$@" | sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/images-$key.img
if [ -e "$out" ]; then
  echo "$out"
  exit 0
fi
# Each change of the code makes a new disk: keep only the newest few.
find "$RAILHEAD_CACHE" -maxdepth 1 -name 'images-*.img' -printf '%T@ %p\n' | sort -rn | tail -n +4 |
  cut -d' ' -f2- | xargs -r rm -f

work=$(mktemp -d -p "$RAILHEAD_CACHE")
pid=
clean() {
  if [ -n "$pid" ]; then kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; fi
  rm -rf "$work"
}
trap clean EXIT
mkdir "$work/store" "$work/state"
cat > "$work/config.toml" <<K
version = 3
root = '$work/store'
state = '$work/state'
disabled_plugins = ['io.containerd.grpc.v1.cri', 'io.containerd.cri.v1.images', 'io.containerd.cri.v1.runtime',
  'io.containerd.nri.v1.nri', 'io.containerd.internal.v1.opt', 'io.containerd.ttrpc.v1.otelttrpc']
[grpc]
  address = '$work/sock'
K
"$bin/containerd" --config "$work/config.toml" > "$work/containerd.log" 2>&1 &
pid=$!
ctr() { "$bin/ctr" --address "$work/sock" --namespace k8s.io "$@"; }
for _ in $(seq 100); do
  ctr version > /dev/null 2>&1 && break
  kill -0 $pid 2>/dev/null || { tail -n 15 "$work/containerd.log" >&2; die "containerd did not start"; }
  sleep 0.1
done
for tar in "$@"; do
  ctr images import "$tar" > "$work/import.log" 2>&1 || { tail -n 5 "$work/import.log" >&2; die "$tar: not imported"; }
done
kill "$pid"
wait "$pid" || true
pid=
# Room for what the containers write.
truncate -s "$(($(du -sm "$work/store" | cut -f1) + 1024))M" "$work/disk.img"
mke2fs -q -t ext4 -d "$work/store" "$work/disk.img"
mv "$work/disk.img" "$out"
echo "$out"
