# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes with real RDMA nodes on one machine: see tests/testbed/README.md."""
