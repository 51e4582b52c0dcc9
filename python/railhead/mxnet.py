# SPDX-License-Identifier: Apache-2.0
"""Apache MXNet: the key-value store "railhead", for Gluon's Trainer.

    import railhead.mxnet
    trainer = mxnet.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore="railhead")

Ranks come from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Pass trainer.step(batch_size) the batch size of all
ranks together: the store sums gradients, as MXNet's own stores do. In their first step() all ranks get rank 0's
parameters, but the gradients of that step are those of each rank's own parameters: use the same seed on all ranks.
"""

from __future__ import annotations

from typing import Any, List

import mxnet

from .communicator import Communicator, init


class _Shared:
    """Gives an NDArray DLPack's protocol. MXNet 1 only creates capsules."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack_device__(self) -> Any:
        if self._array.context.device_type not in ("cpu", "cpu_pinned", "cpu_shared"):
            raise TypeError(f"the store railhead has no path to memory of {self._array.context}: use mxnet.cpu()")
        return 1, 0  # kDLCPU

    def __dlpack__(self, **_: Any) -> Any:
        return self._array.to_dlpack_for_write()  # waits for pending work on the array


def _list(arrays: Any) -> List[Any]:
    return list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]


@mxnet.kvstore.KVStoreBase.register
class Railhead(mxnet.kvstore.KVStoreBase):
    """Sums over all ranks. All ranks must use the same keys in the same order, as Trainer does."""

    def __init__(self, comm: Any = None) -> None:
        self._comm: Communicator = init() if comm is None else comm

    @property
    def type(self) -> str:
        return "railhead"

    @property
    def rank(self) -> int:
        return self._comm.rank

    @property
    def num_workers(self) -> int:
        return self._comm.size

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Returns whether the store runs the optimizer. It does not; Trainer does."""
        if capability.lower() == mxnet.kvstore.KVStoreBase.OPTIMIZER:
            return False
        raise mxnet.MXNetError(f"Unknown capability: {capability}")

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copies rank 0's value to `out` of all ranks."""
        [whole, *_] = _list(value)
        self._comm.broadcast(_Shared(whole))
        for target in _list(out):
            if target is not whole:
                whole.copyto(target)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """`out`, or `value` if there is no `out`, becomes the sum over all arrays of all ranks."""
        values = _list(value)
        whole = values[0]
        for other in values[1:]:
            whole += other.as_in_context(whole.context)
        self._comm.all_reduce(_Shared(whole))
        for target in _list(value if out is None else out):
            if target is not whole:
                whole.copyto(target)

    def set_optimizer(self, optimizer: Any) -> None:
        raise NotImplementedError("the store railhead runs no optimizer: leave update_on_kvstore unset")

    def save_optimizer_states(self, fname: str, dump_optimizer: bool = False) -> None:
        raise NotImplementedError("the store railhead has no optimizer: Trainer saves its states")

    def load_optimizer_states(self, fname: str) -> None:
        raise NotImplementedError("the store railhead has no optimizer: Trainer loads its states")
