#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the benchmarks and writes their tables, with machine, date and versions, to docs/.
# usage: tools/bench.sh [node-agent|reduce|allreduce]...     without a part: all of them
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p docs

# about: the lines under a table's title.
about() {
  local cpu
  cpu=$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)
  echo "$(date -u +%F), $(nproc) cores of $cpu, Linux $(uname -r), $(c++ --version | head -n 1)."
  echo "Commit $(git rev-parse --short HEAD), release build. Made by \`make bench\`."
}

# page NAME TITLE COMMAND: docs/bench-NAME.md, with what the command prints. A command that fails
# leaves the last page as it was.
page() {
  local file=docs/bench-$1.md
  {
    echo "# $2"
    echo
    about
    "$3"
  } > "$file.new"
  mv "$file.new" "$file"
  cat "$file"
}

node_agent() {
  echo "The program itself against a kubelet of the tests, on the tree of a DGX H100."
  echo
  build/release/device-plugin/railhead_device_plugin_bench \
    build/release/device-plugin/railhead-device-plugin 2>/dev/null
}

reduce() {
  echo "Highway $(dpkg-query -W -f '${Version}' libhwy-dev)."
  echo
  build/release/runtime/railhead_reduce_bench
}

allreduce() {
  echo
  /usr/bin/python3 tests/bench/peers/run.py
}

[ $# -gt 0 ] || set -- node-agent reduce allreduce
for part in "$@"; do
  case $part in
    node-agent) page "$part" "What the node agent costs its node" node_agent ;;
    reduce) page "$part" "How fast reductions are" reduce ;;
    allreduce)
      tools/install-needs.sh bench
      page "$part" "All-reduce beside Open MPI, MPICH and gloo" allreduce
      ;;
    *)
      echo "unknown part '$part': node-agent, reduce or allreduce" >&2
      exit 2
      ;;
  esac
done
