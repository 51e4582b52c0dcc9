#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the nodes' kernel in a root that mmdebstrap makes, and fetches what builds modules for it: a hook of
# mmdebstrap, so that all of it comes from one state of the archive.
# Writes to OUT: `kernel` (name and version), headers/ and source/; or, where the archive does not have all of them,
# the reason in `missing` instead.
# usage: mmdebstrap --customize-hook='tests/testbed/fetch-kernel.sh "$1" OUT' ...
set -euo pipefail
here=$(dirname "$(realpath "$0")")
root=$1
out=$2
export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG
mkdir -p "$out"

architecture=$(dpkg --print-architecture)
apt-cache pkgnames linux- | xargs apt-cache madison |
  "$here/choose_kernel.py" "$architecture" > "$out/chosen" 2> "$out/missing" || { cat "$out/missing" >&2; exit 1; }
read -r kernel version packages < "$out/chosen"
echo "$kernel $version" > "$out/kernel"
into=("DPkg::Chroot-Directory=$root")
if [ "$MMDEBSTRAP_MODE" = chrootless ]; then
  into=("DPkg::Options::=--root=$root" "DPkg::Options::=--log=$root/var/log/dpkg.log")
fi
apt-get --yes "${into[@]/#/-o}" install "linux-image-$kernel=$version"
[ -n "$packages" ] || exit 0
rm "$out/missing"

work=$(mktemp -d -p "$out")
cd "$work"
# shellcheck disable=SC2086  # names without spaces
apt-get download -o APT::Sandbox::User=root $packages
mkdir "$out/headers" "$out/source"
for package in linux-headers-* linux-kbuild-*; do dpkg-deb -x "$package" "$out/headers"; done
dpkg-deb --fsys-tarfile linux-source-*.deb > source.tar
archive=$(tar -tf source.tar | grep '/linux-source-[0-9.]*\.tar\.xz$')
tar -xOf source.tar "$archive" | tar -xJ -C "$out/source" --strip-components=1 --wildcards \
  '*/drivers/infiniband/sw' '*/include/uapi/rdma/siw-abi.h'
cd /
rm -rf "$work"
