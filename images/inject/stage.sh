#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Lays out the root of the image docker.io/railhead/inject: the unpacked wheel, the libraries where
# LD_LIBRARY_PATH and NCCL look for them, and the program that copies both.
# usage: images/inject/stage.sh WHEEL FOLDER
set -euo pipefail
here=$(dirname "$(realpath "$0")")
wheel=$(realpath "$1")
mkdir -p "$2/railhead/python"
cd "$2"
/usr/bin/python3 -m zipfile -e "$wheel" railhead/python
# zipfile does not keep modes.
find railhead -name '*.so*' -exec chmod 755 {} +
ln -s python/railhead/lib/librailhead.so.0 python/railhead/lib/railhead-mpi python/railhead/lib/nccl-net railhead/
g++ -std=c++20 -Os -s -static -Wall -Wextra -Werror -o railhead-copy "$here/copy.cc"
