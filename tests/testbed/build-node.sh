#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what an RDMA worker node boots from: kernel, initrd and a root disk with Debian, rdma_rxe, siw,
# perftest, containerd and kubelet. Prints the folder: vmlinuz, initrd.gz, root.img, and `missing` where a module could
# not be built: a line with its name and the reason. A later call tries again.
# About a minute with nothing cached, nothing to do after that.
# usage: tests/testbed/build-node.sh KUBE_BIN_DIR
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/../../tools/common.sh"
# shellcheck source=tests/testbed/versions.env
. "$here/versions.env"

bin=$(realpath "$1")
packages=busybox-static,ca-certificates,conntrack,containernetworking-plugins,ibverbs-providers
packages+=,iproute2,iputils-ping,kmod,nftables,perftest,procps,rdma-core,runc
inputs=$(printf '%s' "$packages $DEBIAN $bin" |
  cat - "$here"/{build-node.sh,build-module.sh,fetch-kernel.sh,choose_kernel.py,rxe-in-pods.patch} "$here"/node/* |
  sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/node-$inputs
if [ -e "$out/complete" ]; then
  echo "$out"
  exit 0
fi
mkdir -p "$out"
# Each change of the programs or of node/ makes new disks: keep only the newest few.
find "$RAILHEAD_CACHE" -maxdepth 1 -name 'node-????????????????' -printf '%T@ %p\n' | sort -rn |
  tail -n +4 | cut -d' ' -f2- | xargs -r rm -rf
work=$(mktemp -d -p "$RAILHEAD_CACHE")
trap 'rm -rf "$work"' EXIT
cd "$work"

# The Debian part changes rarely: it has a cache of its own. Emulated nodes have virtio devices only, and
# the other drivers would be most of the disk. Their initrd is made below, not by Debian.
options=(--dpkgopt=force-unsafe-io)
for path in /usr/share/{doc,man,locale} '/lib/modules/*/kernel/'{sound,drivers}; do
  options+=(--dpkgopt="path-exclude=$path/*")
done
for drivers in net block virtio infiniband char crypto md; do
  options+=(--dpkgopt="path-include=/lib/modules/*/kernel/drivers/$drivers/*")
done
for path in '/lib/modules/*/kernel/drivers/net/'{ethernet,wireless,usb,can}/'*' \
  /etc/kernel/postinst.d/initramfs-tools; do
  options+=(--dpkgopt="path-exclude=$path")
done
debian=$RAILHEAD_CACHE/node-debian-$(printf '%s\n' "$packages" "$DEBIAN" "${options[@]}" |
  cat - "$here"/{fetch-kernel.sh,choose_kernel.py} | sha256sum | cut -c1-16)
if [ ! -e "$debian" ]; then
  say "making a Debian $DEBIAN root for the nodes" >&2
  log=$RAILHEAD_CACHE/logs/node.log
  mkdir -p "$RAILHEAD_CACHE/logs" made
  mmdebstrap --variant=minbase --include="$packages" "${options[@]}" \
    --customize-hook="'$here/fetch-kernel.sh' \"\$1\" '$work/made'" "$DEBIAN" made/root.tar > "$log" 2>&1 || {
    tail -n 15 "$log" >&2
    die "mmdebstrap could not make the nodes' Debian root (whole log: $log): mend the network or Debian's mirror, with a proxy set http_proxy, then run this again"
  }
  if [ -e made/missing ]; then
    debian=$work/made  # not kept: the archive may have all of it in an hour
  else
    find "$RAILHEAD_CACHE" -maxdepth 1 -name 'node-debian-*' -exec rm -rf {} +
    mv made "$debian"
  fi
fi

mkdir root
tar -C root -xf "$debian/root.tar"
read -r kernel _ < "$debian/kernel"
cp root/boot/vmlinuz-"$kernel" "$out/vmlinuz"
rm -rf root/boot/* root/var/cache/apt/*
: > missing
# The nodes work without these modules; only the test cases that use them do not. node-rails loads rxe-in-pods by its
# path: modprobe must not take it for rdma_rxe.
declare -A folders=([siw]=lib/modules/$kernel/extra [rxe-in-pods]=usr/local/lib/modules)
for module in "${!folders[@]}"; do
  if built=$("$here/build-module.sh" "$module" "$debian" 2> trouble); then
    install -D -m 644 "$built" "root/${folders[$module]}/$module.ko"
  else
    cat trouble >&2
    echo "$module $(tail -n 1 trouble | sed "s/^error: module $module: //")" >> missing
  fi
done
depmod -b root "$kernel"

mkdir -p root/opt/cni root/etc/containerd root/etc/cni/net.d root/etc/kubernetes root/var/lib/containerd
# The programs are links to one, see kube/main.go.
cp -d "$bin"/{testbed,kubelet,kube-proxy,containerd,ctr,containerd-shim-runc-v2} root/usr/local/bin/
ln -sfn /usr/lib/cni root/opt/cni/bin
install -m 755 "$here/node/init" root/sbin/node-init
install -m 755 "$here/node/rails" root/sbin/node-rails

# The initrd only finds the root disk.
mkdir -p ird/{bin,mods,proc,sys,dev,mnt}
cp /bin/busybox ird/bin/
for applet in sh mount insmod switch_root; do ln -s busybox "ird/bin/$applet"; done
for module in virtio_pci virtio_blk ext4 crc32c_generic; do
  modprobe -d "$work/root" -S "$kernel" --show-depends $module | awk '/insmod/ {print $2}'
done | awk '!seen[$0]++' > modules
while read -r file; do cp "$file" ird/mods/; done < modules
{
  printf '#!/bin/sh\nmount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev\n'
  while read -r file; do printf 'insmod /mods/%s\n' "$(basename "$file")"; done < modules
  printf 'mount /dev/vda /mnt; mount --move /dev /mnt/dev; exec switch_root /mnt /sbin/node-init\n'
} > ird/init
chmod +x ird/init
(cd ird && find . | cpio --quiet -o -H newc | gzip -1) > "$out/initrd.gz"

rm -f "$out/root.img"
truncate -s 3G "$out/root.img"
mke2fs -q -t ext4 -d root "$out/root.img"
mv missing "$out/missing"
[ -s "$out/missing" ] || touch "$out/complete"
echo "$out"
