# SPDX-License-Identifier: Apache-2.0
"""Collectives over all RDMA rails of a job's pods, or over TCP or shared memory if there is no RDMA.

    import numpy as np
    import railhead

    with railhead.init() as comm:      # RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
        gradients = np.ones(1 << 20, np.float32)
        comm.all_reduce(gradients, op=railhead.AVG)     # in place

Collectives accept objects with `__array_interface__`, DLPack or the buffer protocol: arrays and tensors of NumPy,
torch, CuPy, JAX, MLX and TensorFlow. Their elements must be contiguous, in memory of the CPU or of a CUDA device.
The package copies nothing. Errors are exceptions (railhead.Error) that name the rank, the rail and the cause.

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
