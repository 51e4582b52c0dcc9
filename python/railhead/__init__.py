# SPDX-License-Identifier: Apache-2.0
"""Collectives over all RDMA rails of a job's pods, over TCP or shared memory where there is no RDMA.

    import numpy as np
    import railhead

    with railhead.init() as comm:      # RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
        gradients = np.ones(1 << 20, np.float32)
        comm.all_reduce(gradients, op=railhead.AVG)     # in place

A collective takes anything with `__array_interface__`, DLPack or the buffer protocol whose elements lie in
memory of the CPU or of a CUDA device one after the other: arrays and tensors of NumPy, torch, CuPy, JAX,
MLX and TensorFlow. Nothing is copied here. Errors are exceptions (railhead.Error) with the rank, the rail and the cause.

PyTorch jobs need none of this: torch.distributed.init_process_group("railhead") (docs/frameworks.md).
"""

from ._api import DataType
from ._memory import Memory, memory
from .communicator import (AVG, BAND, BOR, BXOR, MAX, MIN, PROD, SUM, Communicator, Config, Info, Rail, RedOp, group,
                           init, unique_id)
from .errors import Error, InternalError, InvalidArgumentError, InvalidUsageError, RemoteError, SystemError

__all__ = ["AVG", "BAND", "BOR", "BXOR", "Communicator", "Config", "DataType", "Error", "Info", "InternalError",
           "InvalidArgumentError", "InvalidUsageError", "MAX", "MIN", "Memory", "PROD", "Rail", "RedOp", "RemoteError",
           "SUM", "SystemError", "group", "init", "memory", "unique_id"]
