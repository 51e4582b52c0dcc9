#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the benchmarks and writes their tables, with machine, date and versions, to docs/.
# usage: tools/bench.sh [PART]...     without a part: all of them. The parts:
#        node-agent cache placement planner verdict admission scale reduce start family world idle stream metrics auth
#        allreduce (with all collectives) transfers rails verbs torch (make wheel must have run)
#        collectives (the second half of allreduce)
#        gangs (half an hour), days (two hours): not among all of them, but in make soak
#        nccl (downloads NVIDIA's wheel): not among all of them
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p docs

# about: the lines under a table's title.
about() {
  local cpu commit
  cpu=$(sed -n 's/^model name\s*: //p' /proc/cpuinfo | head -n 1)
  echo "$(date -u +%F), $(nproc) cores of $cpu, Linux $(uname -r), $(c++ --version | head -n 1)."
  commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
  # The tables that were just made are no change of what is measured.
  [ -z "$(git status --porcelain -- . ':!docs' 2>/dev/null)" ] || commit+=" with changes"
  echo "Commit $commit, release build. Made by \`make bench\`."
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

cache() {
  echo "Nodes and pods in one process, with a made-up API server in it: its memory is in the figures."
  echo
  build/release/kube/railhead_kube_cache_bench
}

placement() {
  cat <<'EOT'

Clusters of two levels (8 x 8, 16 x 16 and 32 x 32 leaves of 16 nodes with 8 GPUs and 8 HCAs), whose
nodes are in use or free at random, more in some leaves than in others. Each row: means over 100
clusters, **ours** / best fit (the tightest spine that holds the gang, in it the fullest leaves first,
at last the tightest leaf). Ring edges are counted between neighbouring ranks. The column after it
counts the spines that could still take such a gang afterwards. "Fewer domains" is the share of clusters
where best fit uses more leaves or spines. Times are of one thread, with other work on the machine.

EOT
  build/release/placement/railhead_placement_bench
}

planner() {
  cat <<'EOT'

CPU time of one round of the gangs' machine, with other work on this one: which of 500 waiting gangs go where.
Two nodes of each leaf of 16 are free, 64 of each spine of 512; half of the gangs need 16 nodes of one
leaf, and half 96 of one spine, so all of them wait. Two pods of each node need no devices. A later round is
one in which 8 of the running pods are other ones; its time is the mean of ten. Kinds of pods differ in their
requests. Room is kept free for the gang that has waited longest. A reason is worked out in full: what
would make the gang fit. The fabric is built anew, before a first round, when a node moves or a rail dies.

EOT
  build/release/operator/railhead_planner_bench
}

verdict() {
  cat <<'EOT'

Pods with 8 rails each, all of which report. Memory is what malloc has given.

EOT
  build/release/operator/railhead_verdict_bench
}

# A real control plane, for those that need no node.
control_plane() {
  local kube
  kube=$(tests/testbed/build-kube.sh)
  PATH=$kube:$PATH
  echo "Kubernetes $(kube-apiserver --version | sed 's/^Kubernetes v//'), $(etcd --version | head -n 1)."
  echo
}

admission() {
  control_plane
  /usr/bin/python3 tests/bench/operator/admission.py
}

scale() {
  control_plane
  /usr/bin/python3 tests/bench/operator/scale.py
}

gangs() {
  control_plane
  RAILHEAD_KWOK=$(command -v kwok)
  export RAILHEAD_KWOK
  "$RAILHEAD_KWOK" --version
  echo
  /usr/bin/python3 tests/bench/operator/gangs.py
}

days() {
  control_plane
  RAILHEAD_KWOK=$(command -v kwok)
  RAILHEAD_CONTROLLERS=$(tests/testbed/build-controllers.sh)
  export RAILHEAD_KWOK RAILHEAD_CONTROLLERS
  /usr/bin/python3 tests/bench/operator/days.py "${DAYS:-1000}"
}

reduce() {
  echo "Highway $(dpkg-query -W -f '${Version}' libhwy-dev)."
  echo
  build/release/runtime/railhead_reduce_bench
}

start() {
  echo "From the start of the first process to the readiness of the last. Each loads its libraries anew;"
  echo "starting the processes is part of it."
  echo
  build/release/runtime/railhead_start_bench
}

world() {
  cat <<'EOT'
Ranks are simulated in one process, with the real tree, statements and decisions: 8 rails for each rank,
8 ranks in each pod, IPv6 addresses. The table counts the bytes that a rank sends and receives from the
rendezvous until it is connected. Three things grow with the world: rank 0 keeps all reports; the ranks
next to it in the tree forward the reports of those below them; and every rank keeps which ranks share
memory, and the address at which each rank listens, because after a loss there may be no rank left to
query. All other addresses are requested along the tree when they are needed.

EOT
  build/release/runtime/railhead_world_bench
}

family() {
  cat <<'EOT'
300 communicators of all ranks, made one after the other by rhCommSplit; each does one all-reduce of 8 B, and
all stay. Figures are per communicator, of the rank that spent most. Memory that ranks share counts for
each of them. The goal for descriptors is 2. Over TCP a communicator has an epoll, and for each rank with which
it exchanges data a connection over each rail; the connections for failures and hangs are shared.

EOT
  build/release/runtime/railhead_family_bench
}

idle() {
  cat <<'EOT'
Two TCP rails on the loopback device, ranks that are processes of this machine and all connected. Rounds of
2000 messages of both jobs take turns.

EOT
  build/release/runtime/railhead_pingpong_bench
}

stream() {
  cat <<'EOT'
One TCP rail on the loopback device carries messages one after the other from one process to another; a
bare socket does the same with plain `send` and `recv`. Rounds of 256 MiB take turns. A bare sender is
done with a message when the kernel has taken it; ours when the receiver has, since a message may have
to go again over another rail. With answers, a bare receiver confirms each message with one byte, for which
the sender waits before the next one: this separates the cost of the wait from that of Railhead.

EOT
  build/release/runtime/railhead_stream_bench
}

auth() {
  cat <<'EOT'

One TCP rail on the loopback device carries messages from one process to another, one after the other, with each value
of RAILHEAD_AUTH. A bare socket and TLS do the same, and the receiver confirms each message there, too. Both ranks sign,
check, encrypt and decrypt on the thread that moves the data, and on this device that thread is what limits the
bandwidth. The CPU time includes waits that spin. The start times in
[bench-start](bench-start.md) include the handshake, since jobs have a secret there. Verbs has no step of it on its data path.

`encrypt` takes AES-256-GCM if all ranks' CPUs have instructions for it. libsodium on one core of this kind of machine, in
pieces of 256 KiB, by hand on 2026-11-26: Poly1305, which signs, 5.1 GB/s; AES-256-GCM 2.5 GB/s to encrypt and 2.0 to
decrypt; ChaCha20-Poly1305 1.7 GB/s. OpenSSL's AES-256-GCM: 5.8 GB/s.

EOT
  echo "libsodium $(dpkg-query -W -f '${Version}' libsodium-dev), $(openssl version | cut -d ' ' -f 1,2)."
  echo
  build/release/runtime/railhead_auth_bench
}

metrics() {
  echo
  cat <<'EOF'
Rounds of a second, in turn: by a job without metrics, and by one whose ranks' pages are each
scraped in the middle of it, from this machine. The difference is the median of the rounds' ratios.
If it is less than its spread, it only excludes a large cost; the cost of metrics is then
what is counted directly: for an operation, two readings of the clock (which the flight recorder
needs as well) and the counters; for a scrape, the time of a rank's process, all threads together.

EOF
  build/release/runtime/railhead_metrics_bench
  echo
  echo "The profiler of the plugin for NCCL. NCCL reports a step for each chunk of up to 1 MiB:"
  echo
  build/release/plugins/nccl/railhead_nccl_profiler_bench
}

allreduce() {
  echo
  /usr/bin/python3 tests/bench/peers/run.py all_reduce
}

collectives() {
  echo
  /usr/bin/python3 tests/bench/peers/run.py collectives
}

transfers() {
  echo
  /usr/bin/python3 tests/bench/transfers/run.py
}

rails() {
  echo
  /usr/bin/python3 tests/bench/rails/run.py
}

verbs() {
  echo
  /usr/bin/python3 tests/bench/verbs/run.py
}

nccl() {
  echo
  /usr/bin/python3 tests/bench/nccl/run.py
}

torch() {
  echo
  /usr/bin/python3 tests/bench/torch/run.py
}

[ $# -gt 0 ] || set -- node-agent cache placement planner verdict admission scale reduce start family world idle stream metrics auth allreduce transfers rails verbs torch
# What is measured is what the stamp says, also when a part is run by hand.
cmake --build --preset release --target railhead_programs railhead_benches > /dev/null
for part in "$@"; do
  case $part in
    node-agent) page "$part" "What the node agent costs its node" node_agent ;;
    cache) page "$part" "What caches of a large cluster cost" cache ;;
    placement) page "$part" "Placement beside best fit" placement ;;
    planner) page "$part" "What planning costs where many gangs wait" planner ;;
    verdict) page "$part" "What judging jobs costs" verdict ;;
    admission)
      tools/install-needs.sh testbed
      page "$part" "How long admission takes" admission
      ;;
    scale)
      tools/install-needs.sh testbed
      page "$part" "What the operator costs at a large cluster" scale
      ;;
    gangs)
      tools/install-needs.sh testbed
      page "$part" "Gangs at a large cluster" gangs
      ;;
    days)
      tools/install-needs.sh testbed
      page "$part" "Gangs of real controllers on bad days" days
      ;;
    reduce) page "$part" "How fast reductions are" reduce ;;
    start) page "$part" "How long a job takes to start" start ;;
    family) page "$part" "What a further communicator costs" family ;;
    world) page "$part" "What a rank of a large world takes" world ;;
    idle) page "$part" "Small messages beside idle ranks" idle ;;
    stream) page "$part" "One TCP rail beside a bare socket" stream ;;
    auth) page "$part" "What authentication costs" auth ;;
    metrics) page "$part" "What metrics cost" metrics ;;
    allreduce | collectives)
      tools/install-needs.sh bench
      [ "$part" = collectives ] || page allreduce "All-reduce beside Open MPI, MPICH and gloo" allreduce
      page collectives "Collectives beside Open MPI, MPICH and gloo" collectives
      ;;
    transfers)
      tools/install-needs.sh bench
      page "$part" "Transfers beside Open MPI, MPICH and gloo" transfers
      ;;
    rails)
      tools/install-needs.sh bench rails
      page "$part" "Several TCP rails, and rails that fail" rails
      ;;
    verbs)
      tools/install-needs.sh bench rails testbed
      page "$part" "RDMA rails beside perftest and Open MPI with UCX" verbs
      ;;
    nccl)
      cmake --build --preset release --target railhead_nccl > /dev/null
      page "$part" "What the profiler costs NCCL" nccl
      ;;
    torch)
      tools/install-needs.sh rails
      page "$part" "PyTorch over railhead beside gloo" torch
      ;;
    *)
      echo "unknown part '$part': see the list at the head of $0" >&2
      exit 2
      ;;
  esac
done
