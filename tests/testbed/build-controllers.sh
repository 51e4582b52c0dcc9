#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the controllers of JobSet, LeaderWorkerSet, TrainJob, Kueue and Kubeflow's training operator into the
# cache and prints the folder with them: NAME-controller, and NAME.yaml with its kinds and webhooks as its
# module has them. controllers/go.mod has their versions: the last ones that compile with one Kubernetes (0.34)
# and one controller-runtime (0.22), so that it is compiled once. 190 CPU seconds with nothing cached, 80 of
# them for Kueue, nothing to do after that.
#
# They are a module of their own. In that of kube/ they would share the compiled client of Kubernetes, but
# do not compile: its controller-runtime (0.25) has another interface for webhooks than theirs (0.22). And
# `make demo`, which builds kube/, would have to wait for controllers that it does not run.
# usage: tests/testbed/build-controllers.sh
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/../../tools/common.sh"

# Name, package, and the files of its module with the kinds and the webhooks.
controllers=(
  "jobset sigs.k8s.io/jobset config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml config/components/webhook/manifests.yaml"
  "lws sigs.k8s.io/lws/cmd config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml config/webhook/manifests.yaml"
  "trainer github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml manifests/base/webhook/manifests.yaml"
  "kueue sigs.k8s.io/kueue/cmd/kueue config/components/crd/bases/*.yaml config/components/webhook/manifests.yaml"
  "training github.com/kubeflow/training-operator/cmd/training-operator.v1 manifests/base/crds/kubeflow.org_*.yaml"
)
# As in build-kube.sh: no debugger is used, and nothing in generated code is worth inlining.
flags=(-trimpath -buildvcs=false -gcflags=all=-dwarf=false)
for generated in k8s.io/{api,client-go/{applyconfigurations,informers,kubernetes,listers}}; do
  flags+=("-gcflags=$generated/...=-dwarf=false -l")
done

key=$(printf '%s\n' "${controllers[@]}" "${flags[@]}" | cat - "$here"/controllers/go.* | sha256sum | cut -c1-16)
out=$RAILHEAD_CACHE/controllers-$key
finish() {
  echo "$out"
  exit 0
}
[ ! -e "$out/complete" ] || finish

go=$RAILHEAD_CACHE/go-controllers
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-modcacherw GOMODCACHE=$go/modules GOCACHE=$go/packages
log=$RAILHEAD_CACHE/logs/controllers.log
mkdir -p "$RAILHEAD_CACHE/logs"

# Those who come while a build runs wait for it, and use it.
exec 9> "$RAILHEAD_CACHE/controllers.lock"
flock -w 3600 9 || die "another build-controllers.sh has been at it for an hour: end it"
[ ! -e "$out/complete" ] || finish
mkdir -p "$go"
cd "$here/controllers"

say "downloading the sources of the controllers of jobs" >&2
timeout --foreground 1800 go list -deps tool > /dev/null 2> "$log" ||
  die "Go's modules could not be downloaded: $(grep -v '^go: downloading' "$log" | tail -n 1) (log: $log): mend the network or set GOPROXY (now $(go env GOPROXY)) and HTTPS_PROXY, then run this again, it goes on from there"

say "compiling the controllers of jobs" >&2
rm -rf "$out"
mkdir -p "$out"
for controller in "${controllers[@]}"; do
  read -r name package files <<< "$controller"
  go build "${flags[@]}" -ldflags "-s -w" -o "$out/$name-controller" "$package" >> "$log" 2>&1 ||
    { tail -n 15 "$log" >&2; die "$package did not compile (whole log: $log)"; }
  module=$(go list -f '{{.Module.Dir}}' "$package")
  for pattern in $files; do
    for file in "$module"/$pattern; do
      echo ---
      cat "$file"
    done
  done > "$out/$name.yaml"
done
touch "$out/complete"
# Removing so many files takes a minute on a busy disk: nobody waits for it.
mv "$go" "$go.$$"
setsid rm -rf "$go".* > /dev/null 2>&1 9>&- &
finish
