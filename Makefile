# SPDX-License-Identifier: Apache-2.0
# What people type. Everything real is in CMake, tests/ and tools/: tools/parts.py has what each target
# runs and needs.
PYTHON := /usr/bin/python3
PARTS := $(PYTHON) tools/run_parts.py
export PYTHONDONTWRITEBYTECODE := 1
# Everything slow that does not depend on the checkout is kept here; a clean clone starts warm.
export RAILHEAD_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/railhead
# ccache sees paths relative to the checkout, so that clones in other folders share its results.
export CCACHE_DIR ?= $(RAILHEAD_CACHE)/ccache
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
# Parts run side by side by themselves; `make -j` adds nothing.
.NOTPARALLEL:

.PHONY: help demo demo-down build portable portable-test portable-aarch64 portable-aarch64-test wheel wheel-aarch64 wheel-test frameworks framework-pods torch-suite mpi launchers nccl-net rccl nccl training gpu test unit rails rails-slow programs discovery fuzz sanitize bench bench-nccl chart kube node soak e2e \
  lint lint-stamps format check python clean fuzz-more test-loaded

help:            ## list of targets
	@grep -hE '^[a-z0-9-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 24

demo: python     ## the main job: two RDMA nodes, the chart, and an all-reduce over all rails
	@$(PARTS) demo

demo-down:       ## stop the cluster that `KEEP=1 make demo` left running
	@$(PYTHON) tests/e2e/demo.py down

build: python    ## build the programs, in build/release
	@$(PARTS) programs

portable: python ## librailhead.so for any Linux with glibc 2.28 or newer, in out/portable
	@$(PARTS) portable

portable-test: python ## test it in Debian and Ubuntu roots, and together with other libraries
	@$(PARTS) portable-test

portable-aarch64: python ## librailhead.so for aarch64, in out/portable-aarch64
	@$(PARTS) portable-aarch64

portable-aarch64-test: python ## test it in Debian roots of aarch64, on an emulated CPU
	@$(PARTS) portable-aarch64-test

wheel: python    ## the Python package, in out/wheel; TORCH="2.9 2.15": with backends for these versions
	@$(PARTS) wheel

wheel-aarch64: python ## the same for aarch64, in out/wheel-aarch64
	@$(PARTS) wheel-aarch64

wheel-test: python ## test the installed package: types, failures, old Python versions
	@$(PARTS) wheel-test

gpu:             ## on a machine with an NVIDIA GPU: all kinds of GPU memory, CUDA tensors, streams; ONLY=bench
	@python3 tests/gpu/run.py $(ONLY)

frameworks: python ## test the PyTorch backend, compared with gloo; TORCH=2.9: another version
	@$(PARTS) frameworks

launchers: python ## torchrun, mpirun and shells start programs on the C API and libmpi
	@$(PARTS) launchers

torch-suite: python ## torch's own tests of backends, with 2 to 4 ranks (frameworks: with 3)
	@$(PARTS) torch-suite

mpi: python      ## test JAX, MLX and mpi4py, unchanged, over the wheel's libmpi.so.40
	@$(PARTS) mpi

nccl-net: python ## test the network plugin for NCCL in every version of its interface; OUTAGES=1000 SEED=1: more
	@$(PARTS) nccl-net

rccl: python     ## Debian's RCCL with emulated GPUs over the plugin
	@$(PARTS) rccl

nccl: python     ## NVIDIA's stock NCCL with emulated GPUs over the plugin; ALL=1: all versions; CUTS=200: more cuts
	@$(PARTS) nccl

framework-pods: python ## test PyTorch, JAX and MLX in pods with two rails; FRAMEWORKS="keras mxnet": others
	@$(PARTS) framework-pods

training: python ## test Keras, TensorFlow and MXNet: results of several ranks equal those of one; and in pods
	@$(PARTS) training
	@FRAMEWORKS="keras mxnet" $(PARTS) framework-pods

test: python     ## all tests that must pass; CI runs this
	@$(PARTS) test

test-loaded: python ## run the tests RUNS=20 times under full CPU load; ONLY="unit chart": some parts
	@tools/test_loaded.sh "$(or $(RUNS),20)" $(ONLY)

check: python    ## check whether this machine can run everything
	@tools/check_machine.py --emulated --torch

lint: python     ## formatting, clang-tidy, shellcheck, SPDX lines
	@$(PARTS) lint

lint-stamps: python ## lint, and record in tools/tidy-clean.txt which files clang-tidy need not check again
	@$(PARTS) lint-stamps

unit: python     ## unit tests, with the release build of the code under test
	@$(PARTS) unit

rails: python    ## TCP rails that fail during use, between two network namespaces
	@$(PARTS) rails

programs: python ## random programs with faults, beside a reference; COUNT=2000 SEED=1 KINDS=kill=1,rail=1 LANES=8
	@$(PARTS) random-programs

rails-slow: python ## networks and ranks that are silent for long
	@$(PARTS) rails-slow

discovery: python ## discovery of fabrics and wiring errors with real lldpd and ibnetdiscover
	@$(PARTS) discovery

fuzz: python     ## replay the fuzzers' corpora under AddressSanitizer and UBSan
	@$(PARTS) fuzz

fuzz-more: python ## run each fuzzer for MINUTES=1 with clang, and report findings
	@$(PARTS) fuzz-more

sanitize: python ## unit tests under AddressSanitizer, UBSan and ThreadSanitizer
	@$(PARTS) sanitize

bench: python    ## run the benchmarks and write their tables to docs/
	@$(PARTS) bench-build wheel
	@tools/bench.sh

bench-nccl: python ## what the plugin's profiler costs NVIDIA's stock NCCL, in percent: docs/bench-nccl.md
	@$(PARTS) bench-build
	@tools/bench.sh nccl

chart: python    ## the chart: lint, invalid values, rights, and the operator at a real API server
	@$(PARTS) chart

kube: python     ## the Kubernetes client against a real API server that restarts and loses state
	@$(PARTS) kube-client

node: python     ## the node agent against a real kubelet on this machine
	@$(PARTS) node

soak: python     ## long tests, for a night: full matrices, random programs, 256 ranks, a large cluster, bad days, every alert and fault
	@$(PARTS) soak

e2e: python      ## the main job, and its possible failures, on the testbed
	@$(PARTS) e2e

format: python   ## reformat the C++ code
	@tools/install-needs.sh build lint
	@bash -c '. tools/common.sh; sources "*.cc" "*.h" | \
	  xargs -r "$$(venv_of lint tools/requirements-lint.txt)/bin/clang-format" -i'

python:
	@[ -x $(PYTHON) ] || tools/install-needs.sh python

clean:           ## remove the build outputs of this checkout (the cache stays)
	@rm -rf build out
