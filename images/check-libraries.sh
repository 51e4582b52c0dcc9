#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: check-libraries.sh FILE...
# Fails when a program or library needs a shared library that this image does not have: better here
# than as a crash loop in a cluster.
set -eu
for file in "$@"; do
  needs=$(ldd "$file")
  if missing=$(echo "$needs" | grep 'not found'); then
    echo "$file needs libraries that no package of packages.txt brings:" >&2
    echo "$missing" >&2
    exit 1
  fi
done
