#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds kubeconform into the cache, and schemas of all kinds that the chart may render, for the oldest and the
# newest Kubernetes that it is for: made of Kubernetes' own OpenAPI, and of the kinds of Prometheus Operator
# and OpenShift. Prints the folder: kubeconform, and schemas/VERSION/ for each. 25 CPU seconds and 1 GB with
# nothing cached; 20 MB stay. What uses them needs no network.
# usage: tests/testbed/build-kubeconform.sh
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/../../tools/common.sh"

kubernetes=(v1.31.14 v1.36.3)
# Modules that contain CustomResourceDefinitions, and which.
others=(
  "github.com/prometheus-operator/prometheus-operator@v0.85.0 example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"
  "github.com/openshift/api@v0.0.0-20250602203052-b29811a290c7 payload-manifests/crds/0000_03_config-operator_01_securitycontextconstraints.crd.yaml"
)

key=$(printf '%s\n' "${kubernetes[@]}" "${others[@]}" | cat - "$here"/kubeconform/* | sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/kubeconform-$key
finish() {
  echo "$out"
  exit 0
}
[ ! -e "$out/complete" ] || finish

go=$RAILHEAD_CACHE/go-kubeconform
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-modcacherw GOMODCACHE=$go/modules GOCACHE=$go/packages
log=$RAILHEAD_CACHE/logs/kubeconform.log
mkdir -p "$RAILHEAD_CACHE/logs"

# Those who come while a build runs wait for it, and use it.
exec 9> "$RAILHEAD_CACHE/kubeconform.lock"
flock -w 3600 9 || die "another build-kubeconform.sh has been at it for an hour: end it"
[ ! -e "$out/complete" ] || finish
mkdir -p "$go"
cd "$here/kubeconform"
: > "$log"

# folder_of MODULE : its sources, downloaded. Outside of this module, which could have one version of each.
folder_of() {
  (cd / && timeout --foreground 1800 go mod download -json "$1") 2>> "$log" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}
downloaded() {
  local folder
  folder=$(folder_of "$1")
  [ -n "$folder" ] ||
    die "$1 could not be downloaded (log: $log): mend the network or set GOPROXY (now $(go env GOPROXY)) and HTTPS_PROXY, then run this again"
  echo "$folder"
}

say "compiling kubeconform, making schemas" >&2
rm -rf "$out"
mkdir -p "$out"
go build -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags "-s -w" -o "$out/kubeconform" \
  github.com/yannh/kubeconform/cmd/kubeconform >> "$log" 2>&1 ||
  { tail -n 15 "$log" >&2; die "kubeconform did not compile (whole log: $log)"; }
crds=()
for other in "${others[@]}"; do
  read -r module files <<< "$other"
  folder=$(downloaded "$module")
  for file in $files; do crds+=("$folder/$file"); done
done
for version in "${kubernetes[@]}"; do
  folder=$(downloaded "k8s.io/kubernetes@$version")
  mkdir -p "$out/swagger"
  cp "$folder/api/openapi-spec/swagger.json" "$out/swagger/$version.json"
  /usr/bin/python3 schemas.py "$out/schemas/$version" "$out/swagger/$version.json" "${crds[@]}"
done
touch "$out/complete"
# Removing so many files takes a minute on a busy disk: nobody waits for it.
mv "$go" "$go.$$"
setsid rm -rf "$go".* > /dev/null 2>&1 9>&- &
finish
