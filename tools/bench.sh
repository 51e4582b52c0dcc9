#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the benchmarks and writes their tables, with machine, date and versions, to docs/.
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

{
  echo "# What the node agent costs its node"
  echo
  about
  echo "The program itself against a kubelet of the tests, on the tree of a DGX H100."
  echo
  build/release/device-plugin/railhead_device_plugin_bench \
    build/release/device-plugin/railhead-device-plugin 2>/dev/null
} > docs/bench-node-agent.md.new
mv docs/bench-node-agent.md.new docs/bench-node-agent.md
cat docs/bench-node-agent.md

{
  echo "# How fast reductions are"
  echo
  about
  echo "Highway $(dpkg-query -W -f '${Version}' libhwy-dev)."
  echo
  build/release/runtime/railhead_reduce_bench
} > docs/bench-reduce.md.new
mv docs/bench-reduce.md.new docs/bench-reduce.md
cat docs/bench-reduce.md
