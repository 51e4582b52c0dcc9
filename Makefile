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

.PHONY: help demo demo-down build portable portable-test portable-aarch64 portable-aarch64-test wheel wheel-test frameworks framework-pods torch-suite mpi training gpu test unit rails discovery fuzz sanitize bench chart kube node soak e2e \
  lint lint-stamps format check python clean fuzz-more test-loaded

help:            ## this list
	@grep -hE '^[a-z0-9-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

demo: python     ## the main job: two RDMA nodes, one chart, one all-reduce over every rail
	@$(PARTS) demo

demo-down:       ## end what `KEEP=1 make demo` left up
	@$(PYTHON) tests/e2e/demo.py down

build: python    ## the programs, in build/release
	@$(PARTS) programs

portable: python ## librailhead.so for any Linux with glibc 2.28, in out/portable
	@$(PARTS) portable

portable-test: python ## the same, loaded in Debian and Ubuntu roots and beside other libraries
	@$(PARTS) portable-test

portable-aarch64: python ## the same for aarch64, in out/portable-aarch64; on any machine
	@$(PARTS) portable-aarch64

portable-aarch64-test: python ## this one, loaded in Debian roots of aarch64, on an emulated CPU
	@$(PARTS) portable-aarch64-test

wheel: python    ## the Python package, in out/wheel; TORCH="2.9 2.15": with backends of these
	@$(PARTS) wheel

wheel-test: python ## the same, installed and used: types, failures, old Pythons
	@$(PARTS) wheel-test

gpu:             ## on a machine with an NVIDIA GPU: every kind of its memory, CUDA tensors, streams; ONLY=bench
	@python3 tests/gpu/run.py $(ONLY)

frameworks: python ## PyTorch with the wheel's backend, beside gloo; TORCH=2.9: another version of it
	@$(PARTS) frameworks

torch-suite: python ## torch's own tests of such backends, with 2 to 4 ranks; frameworks runs them with 3
	@$(PARTS) torch-suite

mpi: python      ## JAX, MLX and mpi4py, unchanged, over the wheel's libmpi.so.40
	@$(PARTS) mpi

framework-pods: python ## PyTorch, JAX and MLX as pods whose gradients go over two rails; FRAMEWORKS="keras mxnet": others
	@$(PARTS) framework-pods

training: python ## Keras, TensorFlow and MXNet with the wheel: results of several ranks beside those of one; and as pods
	@$(PARTS) training
	@FRAMEWORKS="keras mxnet" $(PARTS) framework-pods

test: python     ## everything that must pass: what CI runs
	@$(PARTS) test

test-loaded: python ## RUNS=20 times the same, with every core kept busy; or parts of it: ONLY="unit chart"
	@tools/test_loaded.sh "$(or $(RUNS),20)" $(ONLY)

check: python    ## whether this machine can do all of it
	@tools/check_machine.py --emulated --torch

lint: python     ## formatting, clang-tidy, shellcheck, SPDX lines
	@$(PARTS) lint

lint-stamps: python ## the same, and write tools/tidy-clean.txt: what clang-tidy need not check again
	@$(PARTS) lint-stamps

unit: python     ## unit tests; the code under test as users run it
	@$(PARTS) unit

rails: python    ## TCP rails that fail in use, between two network namespaces
	@$(PARTS) rails

discovery: python ## fabrics found by real lldpd and ibnetdiscover, and what is wired wrong in them
	@$(PARTS) discovery

fuzz: python     ## what fuzzers have found and been given, under AddressSanitizer and UBSan
	@$(PARTS) fuzz

fuzz-more: python ## each fuzzer anew for MINUTES=1, with clang; what it has done, and what it has found
	@$(PARTS) fuzz-more

sanitize: python ## unit tests under AddressSanitizer, UBSan and ThreadSanitizer
	@$(PARTS) sanitize

bench: python    ## the benchmarks; their tables go to docs/
	@$(PARTS) bench-build wheel
	@tools/bench.sh

chart: python    ## the chart: lint, refusals, rights, and the operator at a real API server
	@$(PARTS) chart

kube: python     ## the Kubernetes client core against a real API server that dies and forgets
	@$(PARTS) kube-client

node: python     ## the node agent against a real kubelet on this machine
	@$(PARTS) node

soak: python     ## for a night: all of the collectives' matrix, random programs, 256 ranks, a large cluster, every alert and fault on the testbed
	@$(PARTS) soak

e2e: python      ## the main job and what may go wrong with it, on the testbed
	@$(PARTS) e2e

format: python   ## rewrite the C++ in the house style
	@tools/install-needs.sh build lint
	@bash -c '. tools/common.sh; sources "*.cc" "*.h" | \
	  xargs -r "$$(venv_of lint tools/requirements-lint.txt)/bin/clang-format" -i'

python:
	@[ -x $(PYTHON) ] || tools/install-needs.sh python

clean:           ## remove what was built in this checkout (the cache stays)
	@rm -rf build out
