# SPDX-License-Identifier: Apache-2.0
"""The parts of `make`: their dependencies and commands. tools/run_parts.py runs them side by side.

The list is in order of preference: parts that others wait for longest come first, parts that disturb others last.
A part's name is the name of its log, out/parts/<name>.log, and of its row in the table at the end.
"""

import dataclasses
import os

# Limit on concurrent work: two parts that keep all cores busy, or a few that mostly wait. Long parts
# whose ranks wait busily count as the former: beside others they would only take time from them.
CAPACITY = 4


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    command: str  # for bash, in the root of the checkout
    needs: tuple = ()  # names of parts that must have passed
    weight: int = 2  # share of CAPACITY; a part of weight CAPACITY runs alone
    limit: int = 10800  # maximum seconds; the part is then ended
    cluster: bool = False  # needs root and namespaces: --cluster of tools/check_machine.py
    emulated: bool = False  # needs what emulated nodes need: --emulated
    torch: bool = False  # needs the environment of tools/torch-venv.sh: --torch
    tmp_in_memory: bool = False  # its temporary files are small: TMPDIR in memory, where there is enough
    foreground: bool = False  # prints to the terminal; its own last line ends the run


# The programs of the testbed: $kube is their folder.
_KUBE = "kube=$(tests/testbed/build-kube.sh); export RAILHEAD_KUBE_BIN=$kube RAILHEAD_KWOK=$kube/kwok; "
# The programs of job controllers.
_CONTROLLERS = "RAILHEAD_CONTROLLERS=$(tests/testbed/build-controllers.sh); export RAILHEAD_CONTROLLERS; "
# kubeconform and its schemas; only `chart` needs them.
_KUBECONFORM = "RAILHEAD_KUBECONFORM=$(tests/testbed/build-kubeconform.sh); export RAILHEAD_KUBECONFORM; "
# A private loopback device, so that ports on it cannot conflict.
_ALONE = "unshare --net sh -ec 'ip link set lo up; exec \"$@\"' sh "
_PYTHON = "/usr/bin/python3 "


def _alone_in_cache(name):
    """For scripts that other checkouts may run on the same cache, and that replace or delete what others are using."""
    return f'exec 8> "$RAILHEAD_CACHE/{name}.lock"; flock 8; '


_TESTED = ("unit-build", "kube", "packages-testbed")

PARTS = (
    Part("packages", "tools/install-needs.sh build"),
    Part("packages-lint", "tools/install-needs.sh lint", ("packages",), weight=1),
    Part("programs", "cmake --preset release && cmake --build --preset release --target railhead_programs",
         ("packages",)),
    Part("portable", "tools/portable.sh", ("packages",)),
    Part("packages-aarch64", "tools/install-needs.sh aarch64", ("packages",), weight=1),
    Part("portable-aarch64", "tools/portable.sh aarch64", ("packages-aarch64",)),
    Part("torch-shims", _alone_in_cache("torch-shim") +
         "rm -rf out/torch && mkdir out/torch; for minor in ${TORCH:-2.15}; do "
         "shim=$(tools/torch-shim.sh $minor) && cp \"$shim\" out/torch/railhead-torch-$minor.so || exit 1; done",
         ("portable",), weight=1),
    Part("wheel", "rm -rf out/wheel && " + _PYTHON + "python/build_backend.py out/wheel", ("torch-shims",), weight=1),
    Part("torch-shims-aarch64", _alone_in_cache("torch-shim") +
         "rm -rf out/torch-aarch64 && mkdir out/torch-aarch64; for minor in ${TORCH:-2.15}; do "
         "shim=$(tools/torch-shim.sh $minor aarch64) && cp \"$shim\" out/torch-aarch64/railhead-torch-$minor.so || exit 1; "
         "done", ("portable-aarch64",), weight=1),
    Part("wheel-aarch64", "rm -rf out/wheel-aarch64 && " + _PYTHON + "python/build_backend.py out/wheel-aarch64 aarch64",
         ("torch-shims-aarch64",), weight=1),
    Part("packages-testbed", "tools/install-needs.sh testbed rails discovery pictures chart", ("packages",), weight=1),
    Part("kube", "tests/testbed/build-kube.sh", ("packages-testbed",)),
    # After `kube`: the sources of both at once would need 7 GiB of disk.
    Part("controllers", "tests/testbed/build-controllers.sh", ("kube",)),
    Part("cni", "tests/testbed/build-cni.sh", ("kube",)),
    Part("kubeconform", "tests/testbed/build-kubeconform.sh", ("packages-testbed",), weight=1),
    Part("node-disk", _KUBE + _alone_in_cache("node") + 'tests/testbed/build-node.sh "$kube"', ("kube",), weight=1,
         emulated=True),
    Part("image-base", "images/build.sh --base-only", ("packages-testbed",), weight=1, emulated=True),
    Part("unit-build", "cmake --build --preset release", ("programs",)),
    Part("fuzz-build", "cmake --preset corpora && cmake --build --preset corpora --target railhead_fuzz_tests",
         ("packages",)),
    Part("lint", "tools/lint.sh", ("packages-lint",)),
    Part("lint-stamps", "tools/lint.sh --write-stamps", ("packages-lint",)),
    Part("bench-build", "cmake --build --preset release --target railhead_benches", ("unit-build",)),

    Part("chart", _KUBE + _CONTROLLERS + _KUBECONFORM + "tests/chart/run.sh; tests/chart/apiserver.sh",
         (*_TESTED, "controllers", "kubeconform"), cluster=True, tmp_in_memory=True),
    # FRAMEWORKS="torch jax mlx keras mxnet": all (`make training`).
    Part("framework-pods", _KUBE + _CONTROLLERS + _PYTHON + "tests/chart/frameworks_run_test.py; "
         "tests/chart/apiserver.sh frameworks_run_test", (*_TESTED, "controllers", "wheel"), weight=1, cluster=True,
         torch=True, tmp_in_memory=True),
    Part("node", _PYTHON + "tests/kubelet/run.py", _TESTED, weight=1, cluster=True),
    Part("kube-client", _KUBE + _ALONE + "tests/kube/run.sh", _TESTED, weight=1, cluster=True, tmp_in_memory=True),
    Part("rails", _PYTHON + "tests/rails/run.py; " + _PYTHON + "tests/rails/programs.py --count 200", ("unit-build", "packages-testbed"), weight=1, cluster=True, tmp_in_memory=True),
    Part("random-programs", _PYTHON + "tests/rails/programs.py --count ${COUNT:-2000} --seed ${SEED:-1} "
         "${KINDS:+--kinds $KINDS} ${LANES:+--lanes $LANES}", ("unit-build", "packages-testbed"), weight=CAPACITY,
         limit=86400, cluster=True, tmp_in_memory=True),
    Part("rails-slow", _PYTHON + "tests/rails/run.py --slow", ("unit-build", "packages-testbed"), weight=1, cluster=True),
    Part("portable-test", _PYTHON + "tests/portable/run.py", ("portable", "packages-testbed"), weight=1, cluster=True),
    Part("portable-aarch64-test", _PYTHON + "tests/portable/run.py --machine aarch64",
         ("wheel-aarch64", "packages-testbed"), cluster=True, torch=True),
    Part("wheel-test", _PYTHON + "tests/wheel/run.py", ("wheel", "packages-testbed"), weight=1, cluster=True),
    Part("frameworks", "for minor in ${TORCH:-2.15}; do " + _PYTHON + "tests/frameworks/run.py --torch $minor; done",
         ("wheel", "packages-testbed"), cluster=True, torch=True),
    Part("torch-suite", "for minor in ${TORCH:-2.15}; do " + _PYTHON +
         "tests/frameworks/run.py --torch $minor torch-suite; done", ("wheel", "packages-testbed"), cluster=True, torch=True),
    Part("training", _PYTHON + "tests/training/run.py", ("wheel", "packages-testbed"), weight=1, cluster=True),
    Part("mpi", _PYTHON + "tests/mpi/run.py", ("wheel", "programs", "packages-testbed"), cluster=True, torch=True),
    Part("launchers", _PYTHON + "tests/launchers/run.py", ("programs", "packages-testbed"), weight=1, cluster=True,
         torch=True),
    Part("nccl-net", _PYTHON + "tests/nccl/run.py --outages ${OUTAGES:-20} --seed ${SEED:-1}",
         ("programs", "packages-testbed"), weight=1, cluster=True),
    Part("rccl", _PYTHON + "tests/nccl/rccl.py --cuts ${CUTS:-4}", ("programs", "packages-testbed"), weight=1, cluster=True),
    # ALL=1: every pinned version of NCCL.
    Part("nccl", _PYTHON + "tests/nccl/stock.py ${ALL:+--all} --cuts ${CUTS:-40}", ("programs", "packages-testbed"),
         cluster=True, torch=True),
    # Most of the longest tests wait: they share cores.
    Part("unit", f"ctest --preset release --parallel {2 * os.cpu_count()} --output-on-failure", ("unit-build",),
         tmp_in_memory=True),
    Part("newcomer", _PYTHON + "tests/testbed/kernel_test.py; " + _PYTHON + "tests/newcomer/run.py", ("packages-testbed",), weight=1, cluster=True),
    Part("discovery", _PYTHON + "tests/discovery/run.py", ("unit-build", "packages-testbed"), weight=1,
         cluster=True, tmp_in_memory=True),
    Part("fuzz", f"ctest --preset corpora --label-regex fuzz --parallel {os.cpu_count()}", ("fuzz-build",),
         weight=1),
    Part("fuzz-more",
         "tools/install-needs.sh fuzz && cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "
         "'-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1' -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DRAILHEAD_FUZZ=ON && "
         "cmake --build build/fuzz --target railhead_fuzz_tests && "
         "tools/fuzz_more.py build/fuzz ${MINUTES:-1}", ("packages",), weight=CAPACITY, limit=43200),
    Part("sanitize", "tools/sanitize.sh", ("packages",), limit=10800),
    Part("soak", "RAILHEAD_SEEDS=10000 build/release/runtime/railhead_rails_test --gtest_filter='DeliveryTest.*'; "
         "RAILHEAD_SEEDS=2000 build/release/runtime/railhead_conformance_test --gtest_filter='*Sample*'; "
         "RAILHEAD_SEEDS=1000 build/release/runtime/railhead_transfers_test --gtest_filter='*Random*:*Lost*:Match*'; "
         "RAILHEAD_CONFORMANCE=full build/release/runtime/railhead_conformance_test --gtest_filter='Matrix/*'; " +
         _KUBE + "RAILHEAD_CLIENTS=10000 RAILHEAD_LYING_PODS=2000 tests/chart/apiserver.sh doors_test memlock_doors_test tenants_test; " +
         _PYTHON + "tests/worlds/run.py; " + _PYTHON + "tests/rails/programs.py --count 3000 --seed 100000; " +
         _PYTHON + "tests/kubelet/run.py 1000; tools/bench.sh gangs days; " + _PYTHON + "tests/e2e/run.py --long",
         (*_TESTED, "bench-build", "controllers", "cni", "node-disk", "image-base"), weight=CAPACITY, limit=43200, cluster=True, emulated=True),
    Part("e2e", _PYTHON + "tests/e2e/run.py", (*_TESTED, "node-disk", "image-base"), weight=CAPACITY,
         emulated=True, tmp_in_memory=True),
    Part("demo", "exec " + _PYTHON + "tests/e2e/demo.py", ("programs", "kube", "node-disk", "image-base"), weight=CAPACITY,
         emulated=True, foreground=True),
)
TEST = ("lint", "unit", "rails", "discovery", "fuzz", "portable-test", "portable-aarch64-test", "wheel-test", "frameworks", "framework-pods", "mpi", "launchers", "nccl-net", "rccl", "newcomer", "chart", "kube-client", "node", "e2e")
