#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Multus and CNI plugins into the cache, for scenes about networks of pods, and prints the folder:
# bin.img, a disk with the programs, and multus.yaml, the manifest of Multus. cni/go.mod has their versions.
# 130 CPU seconds with nothing cached, nothing to do after that.
#
# They are a module of their own: `make demo`, which builds kube/, would have to wait for programs that it does
# not run.
# usage: tests/testbed/build-cni.sh [--download]
#   --download   only fetch the sources, which needs no CPU: beside a compiler, for the build later on
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/../../tools/common.sh"

plugins=github.com/containernetworking/plugins/plugins/main
multus=gopkg.in/k8snetworkplumbingwg/multus-cni.v4
# Name and package.
programs=(
  "multus-daemon $multus/cmd/multus-daemon"
  "multus-shim $multus/cmd/multus-shim"
  "macvlan $plugins/macvlan"
  "ipvlan $plugins/ipvlan"
  "host-device $plugins/host-device"
)
# As in build-kube.sh: no debugger is used, and nothing in generated code is worth inlining.
flags=(-trimpath -buildvcs=false -gcflags=all=-dwarf=false)
for generated in k8s.io/{api,client-go/{applyconfigurations,informers,kubernetes,listers}}; do
  flags+=("-gcflags=$generated/...=-dwarf=false -l")
done

only_download=false
case ${1-} in
  "") ;;
  --download) only_download=true ;;
  *) die "unknown option '$1': build-cni.sh [--download]" ;;
esac

key=$(printf '%s\n' "${programs[@]}" "${flags[@]}" | cat - "$here"/cni/go.* | sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/cni-$key
finish() {
  if [ $only_download = false ]; then echo "$out"; fi
  exit 0
}
[ ! -e "$out/complete" ] || finish

go=$RAILHEAD_CACHE/go-cni
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-modcacherw GOMODCACHE=$go/modules GOCACHE=$go/packages
log=$RAILHEAD_CACHE/logs/cni.log
mkdir -p "$RAILHEAD_CACHE/logs"

# Those who come while a build runs wait for it, and use it.
exec 9> "$RAILHEAD_CACHE/cni.lock"
flock -w 3600 9 || die "another build-cni.sh has been at it for an hour: end it"
[ ! -e "$out/complete" ] || finish
mkdir -p "$go"
cd "$here/cni"

say "downloading the sources of Multus and CNI plugins" >&2
timeout --foreground 1800 go list -deps tool > /dev/null 2> "$log" ||
  die "Go's modules could not be downloaded: $(grep -v '^go: downloading' "$log" | tail -n 1) (log: $log): mend the network or set GOPROXY (now $(go env GOPROXY)) and HTTPS_PROXY, then run this again, it goes on from there"
[ $only_download = false ] || finish

say "compiling Multus and CNI plugins" >&2
rm -rf "$out"
mkdir -p "$out"
for program in "${programs[@]}"; do
  read -r name package <<< "$program"
  go build "${flags[@]}" -ldflags "-s -w" -o "$out/bin/$name" "$package" >> "$log" 2>&1 ||
    { tail -n 15 "$log" >&2; die "$package did not compile (whole log: $log)"; }
done
cp "$(go list -m -f '{{.Dir}}' $multus)/deployments/multus-daemonset-thick.yml" "$out/multus.yaml"
truncate -s "$(($(du -sm "$out/bin" | cut -f1) + 16))M" "$out/bin.img"
mke2fs -q -t ext4 -d "$out/bin" "$out/bin.img"
rm -r "${out:?}/bin"
touch "$out/complete"
# Removing so many files takes a minute on a busy disk: nobody waits for it.
mv "$go" "$go.$$"
setsid rm -rf "$go".* > /dev/null 2>&1 9>&- &
finish
