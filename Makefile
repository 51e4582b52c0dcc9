# SPDX-License-Identifier: Apache-2.0
# What people type. Everything real is in CMake, tests/ and tools/.
PYTHON := /usr/bin/python3
export PYTHONDONTWRITEBYTECODE := 1
# Everything slow that does not depend on the checkout is kept here; a clean clone starts warm.
export RAILHEAD_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/railhead
# ccache sees paths relative to the checkout, so that clones in other folders share its results.
export CCACHE_DIR ?= $(RAILHEAD_CACHE)/ccache
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

.PHONY: help demo demo-down build test unit rails discovery fuzz sanitize bench chart kube node soak e2e lint format needs clean

help:            ## this list
	@grep -hE '^[a-z0-9-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

demo: needs      ## the main job: two RDMA nodes, one chart, one all-reduce over every rail
	@$(PYTHON) tests/e2e/demo.py

demo-down:       ## end what `KEEP=1 make demo` left up
	@$(PYTHON) tests/e2e/demo.py down

build: needs     ## the programs, in build/release
	@cmake --preset release
	@cmake --build --preset release

test: lint unit rails discovery fuzz chart kube node e2e  ## everything that must pass: what CI runs

lint: needs      ## formatting, clang-tidy, shellcheck, the chart
	@tools/lint.sh

unit: build      ## unit tests, as users run the code
	@ctest --preset release --parallel $$(nproc) --output-on-failure

rails: build     ## TCP rails that fail in use, between two network namespaces
	@tools/install-needs.sh rails
	@$(PYTHON) tests/rails/run.py

discovery: build ## fabrics found by real lldpd and ibnetdiscover, and what is wired wrong in them
	@tools/install-needs.sh discovery
	@$(PYTHON) tests/discovery/run.py

fuzz: needs      ## what fuzzers have found and been given, under AddressSanitizer and UBSan
	@cmake --preset asan > /dev/null
	@cmake --build --preset asan --target railhead_fuzz_tests
	@ctest --preset asan --label-regex fuzz

sanitize: needs  ## unit tests under AddressSanitizer, UBSan and ThreadSanitizer
	@tools/sanitize.sh

bench: build     ## the benchmarks; their tables go to docs/
	@tools/bench.sh

chart: build     ## the chart: lint, refusals, rights, and the operator at a real API server
	@RAILHEAD_KUBE_BIN=$$(tests/testbed/build-kube.sh) tests/chart/run.sh
	@RAILHEAD_KUBE_BIN=$$(tests/testbed/build-kube.sh) RAILHEAD_KWOK=$$(tests/testbed/build-kwok.sh) \
	  tests/chart/apiserver.sh

kube: build      ## the Kubernetes client core against a real API server that dies and forgets
	@RAILHEAD_KUBE_BIN=$$(tests/testbed/build-kube.sh) tests/kube/run.sh

node: build      ## the node agent against a real kubelet on this machine
	@$(PYTHON) tests/kubelet/run.py

soak: build      ## the same, through a thousand restarts and kills; gangs at a large cluster (to docs/)
	@$(PYTHON) tests/kubelet/run.py 1000
	@tools/bench.sh gangs

e2e: needs       ## the main job and what may go wrong with it, on the testbed
	@$(PYTHON) tests/e2e/run.py

format:          ## rewrite the C++ in the house style
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

needs:
	@tools/install-needs.sh build testbed

clean:           ## remove what was built in this checkout (the cache stays)
	@rm -rf build out
