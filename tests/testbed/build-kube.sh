#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the testbed's Go programs into the cache and prints the folder with them: a real Kubernetes
# (control plane, kubelet, kube-proxy, kubectl), containerd, CoreDNS, Helm and KWOK. kube/go.mod has their
# versions. 5 to 10 minutes on 2 cores with nothing cached, nothing to do after that.
# usage: tests/testbed/build-kube.sh [--download]
#   --download   only fetch the sources, which needs no CPU: beside a compiler, for the build later on
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/../../tools/common.sh"

# All but CoreDNS and the shim are one program, see kube/main.go.
links="kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl helm kwok"
links+=" containerd ctr"
# No debugger is used on them. Most of Kubernetes' API is generated, long, and run rarely: nothing in it is
# worth inlining, and the compiler is done sooner.
flags=(-trimpath -buildvcs=false -tags "grpcnotrace no_btrfs no_devmapper no_zfs"
  -gcflags=all=-dwarf=false)
for generated in k8s.io/{api,client-go/{applyconfigurations,informers,kubernetes,listers}} \
  k8s.io/kubernetes/pkg/{apis,generated}; do
  flags+=("-gcflags=$generated/...=-dwarf=false -l")
done

only_download=false
case ${1-} in
  "") ;;
  --download) only_download=true ;;
  *) die "unknown option '$1': build-kube.sh [--download]" ;;
esac

key=$(printf '%s\n' "$links" "${flags[@]}" |
  cat - "$here"/kube/go.* "$here"/kube/*.go "$here"/kube/*/*.go | sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/kube-$key
finish() {
  if [ $only_download = false ]; then echo "$out"; fi
  exit 0
}
[ ! -e "$out/complete" ] || finish

# Sources and compiled packages are 4 GB that nobody needs after the build; before it ends they are what an
# interrupted one goes on from.
go=$RAILHEAD_CACHE/go-work
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-modcacherw GOMODCACHE=$go/modules GOCACHE=$go/packages
log=$RAILHEAD_CACHE/logs/kube.log
mkdir -p "$RAILHEAD_CACHE/logs" "$go"
cd "$here/kube"

# Those who come while a build runs wait for it, and use it.
exec 9> "$RAILHEAD_CACHE/kube.lock"
flock -w 3600 9 || die "another build-kube.sh has been at it for an hour: end it"
[ ! -e "$out/complete" ] || finish

say "downloading the sources of Kubernetes, containerd, Helm" >&2
: > "$log"
timeout --foreground 1800 go list -deps ./... 2>> "$log" > /dev/null || {
  code=$?
  [ $code != 124 ] || die "Go's modules did not arrive within 30 minutes (log: $log): run this again, it goes on from there"
  cause=$(grep -v '^go: downloading' "$log" | tail -n 1)
  die "Go's modules could not be downloaded: ${cause:-exit code $code} (log: $log): mend the network or set GOPROXY (now $(go env GOPROXY)) and HTTPS_PROXY, then run this again, it goes on from there"
}
[ $only_download = false ] || finish

say "compiling Kubernetes, containerd, Helm" >&2
version_of() { go list -m -f '{{.Version}}' "$1"; }
kubernetes=$(version_of k8s.io/kubernetes)
minor=${kubernetes#v*.}
versions="-X k8s.io/component-base/version.gitVersion=$kubernetes"
versions+=" -X k8s.io/component-base/version.gitMajor=1"
versions+=" -X k8s.io/component-base/version.gitMinor=${minor%.*}"
containerd=github.com/containerd/containerd/v2
versions+=" -X $containerd/version.Version=$(version_of $containerd)"
versions+=" -X helm.sh/helm/v4/internal/version.version=$(version_of helm.sh/helm/v4)"
versions+=" -X sigs.k8s.io/kwok/pkg/consts.Version=$(version_of sigs.k8s.io/kwok)"
rm -rf "$out"
mkdir -p "$out"
go build "${flags[@]}" -ldflags "-s -w $versions" -o "$out/" ./... >> "$log" 2>&1 ||
  { tail -n 15 "$log" >&2; die "Kubernetes did not compile (whole log: $log)"; }
for name in $links; do ln -s testbed "$out/$name"; done
touch "$out/complete"
# Removing so many files takes a minute on a busy disk: nobody waits for it.
mv "$go" "$go.$$"
setsid rm -rf "$go".* > /dev/null 2>&1 9>&- &
finish
