#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds KWOK, which plays kubelets for nodes that exist in the API alone, from its Go module into the
# cache, and prints the program. Some minutes with nothing cached, nothing to do after that.
# usage: tests/testbed/build-kwok.sh
set -euo pipefail
# Its version is here, and not in versions.env: a change there builds Kubernetes anew.
KWOK=v0.8.0
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/../../tools/common.sh"

export CGO_ENABLED=0 GOFLAGS=-buildvcs=false
out=$RAILHEAD_CACHE/kwok-$(hash_of "$here/build-kwok.sh")
mkdir -p "$out"
if [ ! -e "$out/kwok" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  say "building kwok" >&2
  GOBIN=$work go install -trimpath -ldflags "-s -w" "sigs.k8s.io/kwok/cmd/kwok@$KWOK" 2> "$work/log" ||
    { cat "$work/log" >&2; exit 1; }
  mv "$work/kwok" "$out/kwok"
fi
echo "$out/kwok"
