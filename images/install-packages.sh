#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: install-packages.sh LIST
# Installs the Debian packages that LIST names (one a line, '#' starts a comment) and that are not
# there yet. A base that already has them all needs no network.
set -eu
missing=
# shellcheck disable=SC2013  # words are wanted: names, without the comments between them
for package in $(sed 's/#.*//' "$1"); do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=absent
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update
# shellcheck disable=SC2086  # a list of names: the splitting is wanted
apt-get install -y --no-install-recommends $missing
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
