#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the wheel's torch backend in a real torch, and compares it with gloo.

usage: tests/frameworks/run.py [--torch MINOR] [CASE]...      MINOR: 2.15 by default. Run `make wheel` first. The case
                                                              torch-suite runs only if named.

This torch has no CUDA (tools/torch-venv.sh). The wheel is unpacked into a folder on PYTHONPATH, as in a pod whose
image does not contain it.
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "rails"))

import cases  # noqa: E402
from cases import expect, side_by_side  # noqa: E402
from network import Network  # noqa: E402
from one_torch import OUT, Torch, check_object  # noqa: E402

HERE = ROOT / "tests" / "frameworks"


def case_registration(torch):
    """The entry point alone registers the backend; a script that does not use it is not affected."""
    def serves(name, said, **more):
        text = torch.run(HERE / "registration.py", said, ranks=1, **more)
        expect(re.search(rf"^{name} .* 1\.0$", text, re.M), f"{said} {more}: {text}")

    side_by_side((serves, "railhead", "railhead"), (serves, "railhead", "cpu:railhead"), (serves, "gloo", "gloo"))
    if torch.minor != "2.9":  # 2.9 does not allow a plugin to replace gloo
        serves("railhead", "gloo", RAILHEAD_TORCH_REPLACE="gloo")
    plain = ("-c", "import torch; print(torch.ones(2).sum().item(), 'librailhead' in open('/proc/self/maps').read())")
    text = torch.run(*plain, ranks=1)
    expect(text == "2.0 False\n", text)
    text = torch.run(*plain, ranks=1, RAILHEAD_TORCH_REPLACE="mpi")
    expect(text.endswith("2.0 False\n") and "may be 'gloo' or empty" in text, text)


def case_unknown_version(torch):
    """The wheel has no backend for this version of torch."""
    library = OUT / "site" / "railhead" / "lib" / f"railhead-torch-{torch.minor}.so"
    library.rename(OUT / "away.so")
    try:
        text = torch.run(HERE / "registration.py", "railhead", ranks=2, may_fail=True)
        expect(text.count("this wheel has no backend for torch " + torch.minor) >= 2, text)
        text = torch.run(HERE / "registration.py", "gloo", ranks=1)
        expect(re.search("^gloo ", text, re.M), text)
    finally:
        (OUT / "away.so").rename(library)


def case_conformance(torch):
    for ranks in (2, 4):
        text = torch.run(HERE / "conformance.py", ranks=ranks)
        print(text.strip().splitlines()[-1])
    text = torch.run(HERE / "conformance.py", ranks=3, RAILHEAD_TRANSPORT="tcp")
    print(text.strip().splitlines()[-1])


def case_transfers(torch):
    def world(ranks, transport):
        text = torch.run(HERE / "transfers.py", ranks=ranks, RAILHEAD_TRANSPORT=transport)
        # For example that a rail was lost, when a peer leaves. That a rank has to wait for another one is the machine's fault.
        expect(not re.search(": warning: (?!still waiting for |.*makes no progress)", text), text)
        return re.search("^torch .* transfers: .*", text, re.M)[0]

    print(*side_by_side((world, 2, "auto"), (world, 3, "tcp"), (world, 4, "auto")), sep="\n")


def case_training(torch):
    """Training losses equal those of gloo."""
    def losses(backend, *command, ranks):
        """Returns the losses, by the word before them."""
        text = torch.run(HERE / command[0], backend, *command[1:], ranks=ranks)
        return {name: [float(word) for word in words.split()]
                for name, words in re.findall(r"^(losses|hsdp|tensor|fsdp_tensor|pipeline) (.*)$", text, re.M)}

    for ranks, *command in ((2, "train.py", "ddp"), (2, "train.py", "zero"), (2, "train.py", "fsdp"), (4, "meshes.py")):
        of = functools.partial(losses, ranks=ranks)
        ours, gloos = side_by_side((of, "railhead", *command), (of, "gloo", *command))
        expect(ours.keys() == gloos.keys() and len(ours) == (4 if ranks == 4 else 1), f"{command}: {ours}, {gloos}")
        for name, mine in ours.items():
            pairs = list(zip(mine, gloos[name], strict=True))
            expect(len(pairs) >= 4 and all(abs(one - two) < 1e-5 for one, two in pairs), f"{name}: {mine}, {gloos[name]}")
            print(f"{command[-1] if name == 'losses' else name}, {ranks} ranks: {len(pairs)} losses as gloo's, "
                  f"{pairs[0][0]:.6f} to {pairs[-1][0]:.6f}")


def step_losses(text):
    """Returns the loss of each step as text, so that differing bits are visible."""
    found = re.findall(r"^step (\d+) (\S+)$", text, re.M)
    expect([int(step) for step, _ in found] == list(range(len(found))), f"steps are missing, or were done twice: {text}")
    return [loss for _, loss in found]


def folder_of(name):
    path = OUT / name
    path.mkdir(parents=True)
    return path


def case_exchange(torch):
    """Ranks never use the id of an earlier start of the job."""
    text = torch.run(HERE / "exchange.py", ranks=1)
    expect("30 starts over one store" in text, text)
    print(text.strip().splitlines()[-1])


def case_elastic(torch):
    """A rank is killed and torchrun restarts all ranks. Training continues: each step runs once, and the losses equal
    those of an undisturbed job."""
    plain = step_losses(torch.run(HERE / "steps.py", "railhead", folder_of("plain"), 8))
    folder = folder_of("elastic")
    (folder / "die").touch()
    text = torch.run("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1",
                     HERE / "steps.py", "railhead", folder, 8, ranks=1)
    expect(not (folder / "die").exists(), "no rank was killed")
    expect("exitcode: -9" in text or "Signal 9" in text or "SIGKILL" in text, text)
    expect(step_losses(text) == plain and len(plain) == 8, f"{text}\n{plain}")
    print(f"a rank was killed after step 2 and the job started anew: 8 losses as without, {plain[0]} to {plain[-1]}")


def case_lost_rail(torch):
    """One of two rails fails during training and recovers: no step is lost, and no loss changes."""
    steps = 60

    def train(name, fault):
        folder = folder_of(name)
        with (Network((150, 150)) as network,
              torch.on_nodes(network, folder, HERE / "steps.py", "railhead", folder, steps) as (_, (said, _))):
            fault(network, lambda step: cases.wait_until(lambda: f"step {step} " in said.read_text("utf-8"),
                                                         lambda: said.read_text("utf-8"), 1200))
            cases.wait_until(lambda: f"step {steps - 1} " in said.read_text("utf-8"), lambda: said.read_text("utf-8"), 1200)
        return said.read_text("utf-8")

    def unplug(network, wait_for):
        wait_for(10)
        plug = network.unplug(1)
        wait_for(30)
        plug()

    plain, text = train("undisturbed", lambda *_: None), train("unplugged", unplug)
    losses = step_losses(plain)
    expect(step_losses(text) == losses and len(losses) == steps, f"{text}\n{plain}")
    expect(re.search(r"rail 1\b", text) and not re.search(r"rail 1\b.*(lost|down)", plain), text)
    print(f"a rail was unplugged for 20 of {steps} steps: losses as without, {losses[0]} to {losses[-1]}")


def case_callers(torch):
    """What frameworks do around calls: callbacks, inference mode, parameters, groups of calls, forks."""
    parts = ["callbacks", "power_sgd", "inference", "parameters", "coalesced", *(["splits"] if torch.minor not in ("2.9", "2.11") else [])]
    text = torch.run(HERE / "callers.py", *parts)
    for part in parts:
        expect(text.count(f": {part}\n") == 2, f"{part}: {text}")
    text = torch.run(HERE / "forked.py", ranks=1)
    expect(re.search("rank 0: railhead: ALLREDUCE .*not done within the timeout of the process group", text), text)


def case_failures(torch):
    def check(what, *words, ranks=2):
        text = torch.run(HERE / "failures.py", what, ranks=ranks, may_fail=True)
        for word in words:
            expect(re.search(word, text), f"{what}: no '{word}' in: {text}")
        expect("Traceback" not in text and "terminate called" not in text, f"{what}: {text}")

    def killed():
        check("killed", r"rank 0: DistBackendError: railhead: ALLREDUCE .*rank 1", r"rank 2: DistBackendError: .*rank 1",
              ranks=3)

    side_by_side(
        (check, "late", r"rank 0: DistBackendError: railhead: ALLREDUCE .*not done within the timeout of the process group",
         r"rank 1: DistBackendError: railhead: ALLREDUCE .*rank 0: .*rhCommRevoke"),
        (check, "monitored", r"rank 0: DistBackendError: railhead: .*: Rank 1 failed to pass monitoredBarrier in 6000 ms",
         r"rank 1: DistBackendError: railhead: Rank 1 successfully reached monitoredBarrier, but"),
        (functools.partial(check, ranks=3), "monitored-all",
         r"rank 0: DistBackendError: railhead: .*: Ranks 1, 2 failed to pass monitoredBarrier in 1000 ms"),
        (killed,),
        (check, "abort", r"rank 0: DistBackendError: .*this rank has aborted the process group",
         r"rank 1: DistBackendError: .*rank 0: .*rhCommRevoke"),
        (check, "mismatch", r"rank 0: DistBackendError: .*rank", r"rank 1: DistBackendError: .*rank"),
        (check, "wait", r"rank 0: railhead: ALLREDUCE was not done within 300 ms", r"rank 0: fine", r"rank 1: fine"),
        (check, "leave", r"rank 0: fine", r"rank 1: fine"),
        (functools.partial(check, ranks=3), "recv-killed", r"rank 0: DistBackendError: railhead: RECV from rank 1 .*rank 1",
         r"rank 2: DistBackendError: railhead: RECV from rank 0 .*rank 1"),
        (check, "recv-late", "rank 0: goes on",
         r"rank 0: DistBackendError: railhead: RECV from rank 1 with tag 0: not done within the timeout of the process group"
         ".*rank 1 has not sent it", r"rank 1: DistBackendError: railhead: SEND to rank 0 .*rank 0: .*rhCommRevoke"),
        (check, "send-late", r"rank 0: DistBackendError: railhead: SEND to rank 1 with tag 3: not done within .*rank 1 has "
         "not received it", r"rank 1: DistBackendError: railhead: RECV from any rank .*rank 0: .*rhCommRevoke"),
        (check, "recv-abort", r"rank 0: DistBackendError: railhead: RECV .*this rank has aborted the process group",
         r"rank 1: DistBackendError: railhead: SEND .*rank 0: .*rhCommRevoke"),
        (check, "too-long", r"rank 0: DistBackendError: .*rank 0.* sends 20 bytes with tag 0 to rank 1.* only 16",
         r"rank 1: DistBackendError: railhead: RECV .*rank 0.* sends 20 bytes with tag 0 to rank 1.* only 16"),
        (check, "too-short", r"rank 0: DistBackendError: .*rank 1: .*rhCommRevoke",
         r"rank 1: DistBackendError: railhead: RECV from rank 0 .*rank 0 sent 20 bytes to rank 1, whose tensor has 24"),
        (check, "recv-wait", r"rank 0: railhead: RECV was not done within 300 ms", r"rank 0: fine", r"rank 1: fine"),
        (check, "recv-destroyed", r"rank 0: DistBackendError: railhead: RECV from rank 1 .*rank 1", r"rank 1: fine"),
        (check, "recv-leave", r"rank 0: fine", r"rank 1: fine"),
        (check, "fork", r"rank 0: railhead: ALLREDUCE .*this process was forked", r"rank 0: fine", r"rank 1: fine"))


def suite(torch, ranks):
    return torch.run(HERE / "suite.py", ranks, ranks=1, seconds=4800).strip().splitlines()


def case_suite(torch):
    """Runs torch's own tests of c10d backends."""
    print(suite(torch, 3)[-1])


def case_torch_suite(torch):
    """Runs the same tests with other numbers of ranks, and checks why tests are skipped."""
    print(*(line for ranks in (2, 3, 4) for line in suite(torch, ranks)), sep="\n")


def case_object(torch):
    """Checks the libraries and symbols that the compiled part needs."""
    check_object(OUT / "site" / "railhead" / "lib" / f"railhead-torch-{torch.minor}.so", "ld-linux-x86-64.so.2")


def main():
    words = sys.argv[1:]
    minor = "2.15"
    if words[:1] == ["--torch"]:
        minor, words = words[1], words[2:]
    torch = Torch(minor)
    table = {name: lambda case=case: case(torch) for name, case in cases.cases_of(globals()).items()}
    return cases.main(table, words, torch.unpack, [name for name in table if name != "torch-suite"])


if __name__ == "__main__":
    sys.exit(main())
