#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Loads the network plugin for NCCL in every version of its table, and listens; for systems with little else.

usage: load.py LIBRARY
"""

import sys

from net_abi import VERSIONS, Plugin


def main():
    for version in VERSIONS:
        plugin = Plugin(sys.argv[1], version)
        plugin.init()
        if plugin.devices() < 1 or not plugin.properties(0).name:
            sys.exit(f"load.py: v{version}: no device")
        listener, handle = plugin.listen()
        if plugin.accept(listener) is not None:
            sys.exit(f"load.py: v{version}: a connection without a sender")
        comm = plugin.connect(handle)
        plugin.close("send", comm)
        plugin.close("listen", listener)
        plugin.finalize()


if __name__ == "__main__":
    main()
