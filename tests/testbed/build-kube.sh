#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a real Kubernetes (control plane, kubelet, kube-proxy, kubectl), containerd, CoreDNS, Helm
# and kubeconform from their Go modules into the cache, and prints the folder with the programs.
# 10 to 25 minutes on 2 cores with nothing cached, nothing to do after that.
# usage: tests/testbed/build-kube.sh
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/../../tools/common.sh"
# shellcheck source=tests/testbed/versions.env
. "$here/versions.env"

export CGO_ENABLED=0 GOFLAGS=-buildvcs=false
out=$RAILHEAD_CACHE/kube-$(hash_of "$here/versions.env" "$here/build-kube.sh")
mkdir -p "$out"
if [ -e "$out/complete" ]; then
  echo "$out"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build NAME PACKAGE LDFLAGS [GO_BUILD_FLAG...] : one program, unless it is there from a build that
# was interrupted later on.
build() {
  local name=$1 package=$2 ldflags=$3
  shift 3
  [ -e "$out/$name" ] && return
  say "building $name" >&2
  go build -trimpath "$@" -ldflags "-s -w $ldflags" -o "$out/$name.part" "$package"
  mv "$out/$name.part" "$out/$name"
}

# k8s.io/kubernetes replaces its staging modules by relative paths. As a dependency those paths do
# not exist, so the same modules are pinned here by version.
kubernetes() {
  local programs="kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl"
  mkdir -p "$work/kubernetes"
  cd "$work/kubernetes"
  local gomod version=k8s.io/component-base/version program
  gomod=$(go mod download -json "k8s.io/kubernetes@$KUBERNETES" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
  {
    printf 'module testbed\ngo %s.0\nrequire k8s.io/kubernetes %s\nreplace (\n' "$GO_MINIMUM" "$KUBERNETES"
    grep -oE 'k8s\.io/[^ ]+ => \./staging' "$gomod" |
      awk -v v="$KUBERNETES_STAGING" '{print "\t" $1 " => " $1 " " v}'
    printf ')\ntool (\n'
    for program in $programs; do printf '\tk8s.io/kubernetes/cmd/%s\n' "$program"; done
    printf ')\n'
  } > go.mod
  go mod tidy 2> "$work/tidy.log" || { cat "$work/tidy.log" >&2; exit 1; }
  local minor=${KUBERNETES#v*.}
  for program in $programs; do
    build "$program" "k8s.io/kubernetes/cmd/$program" \
      "-X $version.gitVersion=$KUBERNETES -X $version.gitMajor=1 -X $version.gitMinor=${minor%.*}"
  done
}

# module NAME MODULE VERSION : an empty module that requires MODULE.
module() {
  mkdir -p "$work/$1"
  cd "$work/$1"
  printf 'module testbed\ngo %s.0\n' "$GO_MINIMUM" > go.mod
  go get "$2@$3" 2> "$work/get.log" || { cat "$work/get.log" >&2; exit 1; }
}

containerd() {
  local module=github.com/containerd/containerd/v2 program
  module containerd $module "$CONTAINERD"
  for program in containerd ctr containerd-shim-runc-v2; do
    go get "$module/cmd/$program@$CONTAINERD" 2> "$work/get.log" || { cat "$work/get.log" >&2; exit 1; }
    build "$program" "$module/cmd/$program" "-X $module/version.Version=$CONTAINERD" -tags no_btrfs
  done
}

# tool NAME PACKAGE VERSION : a program that builds as a main module of its own.
tool() {
  [ -e "$out/$1" ] && return
  say "building $1" >&2
  GOBIN=$work/bin go install -trimpath -ldflags "-s -w" "$2@$3" 2> "$work/tool.log" ||
    { cat "$work/tool.log" >&2; exit 1; }
  mv "$work/bin/$1" "$out/$1"
}

kubernetes
containerd
tool helm helm.sh/helm/v4/cmd/helm "$HELM"
tool kubeconform github.com/yannh/kubeconform/cmd/kubeconform "$KUBECONFORM"
tool coredns github.com/coredns/coredns "$COREDNS"
touch "$out/complete"
echo "$out"
