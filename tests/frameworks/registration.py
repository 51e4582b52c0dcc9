# SPDX-License-Identifier: Apache-2.0
"""Prints the class that serves a backend's name, after an all-reduce of one rank. usage: registration.py BACKEND"""

import sys

import torch
import torch.distributed as dist

dist.init_process_group(sys.argv[1])
tensor = torch.ones(4)
dist.all_reduce(tensor)
print(dist.group.WORLD._get_backend(torch.device("cpu")).name(), dist.get_backend(), tensor[0].item())
dist.destroy_process_group()
