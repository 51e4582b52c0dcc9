# SPDX-License-Identifier: Apache-2.0
"""One rank of a group in which something fails. Prints the text of its exception.

usage: failures.py WHAT [DEVICE]     WHAT: a word below; DEVICE: cpu or cuda; with torchrun's variables
"""

import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

what, device = (sys.argv[1:] + ["cpu"])[:2]
# Seconds: the timeout of late ranks' groups; and how long a rank is late. On a busy machine ranks may wait for a CPU
# for seconds, which must neither exceed the first nor hide the second.
SHORT, LATE = 6, 25
dist.init_process_group("railhead", timeout=datetime.timedelta(seconds=300))
rank = dist.get_rank()
tensor = torch.ones(1000, device=device)
dist.all_reduce(tensor)
backend = dist.group.WORLD._get_backend(torch.device(device))
# Not from the start, since one rank may get here seconds after the other.
if what in ("late", "monitored", "recv-late", "send-late"):
    backend.set_timeout(datetime.timedelta(seconds=SHORT))


def say(*words):
    print(f"rank {rank}:", *words, flush=True)


try:
    if what == "killed":
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        for _ in range(3):
            dist.all_reduce(tensor)
    elif what == "late":  # alive, but does not call
        if rank == 1:
            time.sleep(LATE)
        for _ in range(2):  # rank 0 has begun the first
            dist.all_reduce(tensor)
    elif what == "monitored":
        if rank == 1:
            time.sleep(LATE)
        backend.monitored_barrier()
    elif what == "monitored-all":
        if rank == 0:
            backend.monitored_barrier(datetime.timedelta(seconds=1), wait_all_ranks=True)
        time.sleep(LATE)
    elif what == "abort":
        if rank == 0:
            work = dist.all_reduce(tensor, async_op=True)
            backend.abort()
            work.wait()
        time.sleep(LATE)
        for _ in range(2):  # rank 0 may have begun the first
            dist.all_reduce(tensor)
    elif what == "mismatch":
        dist.all_reduce(torch.ones(4 + rank, device=device))
        dist.all_reduce(torch.ones(4, device=device))
    elif what == "wait":  # a timeout of the wait itself does not affect the group
        if rank == 0:
            work = dist.all_reduce(tensor, async_op=True)
            try:
                work.wait(datetime.timedelta(milliseconds=300))
            except dist.DistBackendError as error:
                say(str(error).splitlines()[0])
            work.wait()
        else:
            time.sleep(LATE)
            dist.all_reduce(tensor)
        dist.barrier()
        dist.destroy_process_group()
        say("fine")
    elif what == "leave":  # without destroying the group, whose thread has started
        dist.all_reduce(tensor, async_op=True).wait()
        say("fine")
        sys.exit(0)
    elif what == "fault":  # a kernel that fails while the call waits for it
        if rank == 1:
            torch.cuda._sleep(500_000_000)
            tensor[torch.tensor([1 << 30], device=device)] = 1
        dist.all_reduce(tensor, async_op=True).wait()
    elif what == "recv-killed":  # rank 2 waits for a rank that is alive
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.recv(tensor, 1 if rank == 0 else 0)
    elif what == "recv-late":  # a receive may be early; its timeout begins with wait()
        if rank == 0:
            work = dist.irecv(tensor, 1)
            time.sleep(2 * SHORT)
            dist.all_reduce(torch.ones(1, device=device))
            say("goes on")
            work.wait()
        else:
            time.sleep(2 * SHORT)
            dist.all_reduce(torch.ones(1, device=device))
            time.sleep(LATE)
            dist.send(tensor, 0)
    elif what == "send-late":
        if rank == 1:
            time.sleep(LATE)
            dist.recv(tensor)
        dist.send(torch.ones(1 << 20, device=device), 1, tag=3)
    elif what == "recv-abort":
        if rank == 0:
            work = dist.irecv(tensor, 1)
            backend.abort()
            work.wait()
        time.sleep(LATE)
        for _ in range(2):  # rank 0 may have received the first
            dist.send(tensor, 0)
            time.sleep(0.2)
    elif what in ("too-long", "too-short"):
        if rank == 0:
            dist.send(torch.ones(5, device=device), 1)
        else:
            dist.recv(torch.ones(4 if what == "too-long" else 6, device=device), 0)
        dist.barrier()
    elif what == "recv-wait":
        if rank == 0:
            work = dist.irecv(tensor, 1)
            try:
                work.wait(datetime.timedelta(milliseconds=300))
            except dist.DistBackendError as error:
                say(str(error).splitlines()[0])
            dist.barrier()
            work.wait()
        else:
            dist.barrier()
            dist.send(tensor, 0)
        dist.destroy_process_group()
        say("fine")
    elif what == "recv-destroyed":  # rank 1 leaves without having sent
        work = dist.irecv(tensor, 1) if rank == 0 else None
        dist.barrier()
        dist.destroy_process_group()
        if work is None:
            say("fine")
            sys.exit(0)
        work.wait()
    elif what == "recv-leave":  # the process ends with a transfer that will never be done
        work = dist.irecv(tensor, 1 - rank)
        work.get_future().then(lambda done: say("done"))
        say("fine")
        sys.exit(0)
    elif what == "fork":
        child = os.fork()
        if child == 0:
            try:
                dist.all_reduce(tensor)
            except dist.DistBackendError as error:
                say(str(error).splitlines()[0])
            os._exit(0)
        os.waitpid(child, 0)
        dist.barrier()
        dist.destroy_process_group()
        say("fine")
except dist.DistBackendError as error:
    say(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    time.sleep(0.5)
    os._exit(0)
