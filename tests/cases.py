# SPDX-License-Identifier: Apache-2.0
"""Test programs made of named cases: shared by newcomer, portable, wheel, frameworks, mpi, launchers and training.

A case is a function that raises Failure, or prints its results and returns.
"""

import concurrent.futures
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("RAILHEAD_CACHE") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "railhead")

# Ranks in private network and mount namespaces, in a root ($IN) that has /dev, /proc, and the folder $WHAT at /mnt.
_RANKS = """
ip link set lo up
if [ "$IN" != / ]; then
  mount --rbind /dev "$IN/dev"
  mount -t proc proc "$IN/proc"
  mount --bind "$WHAT" "$IN/mnt"
fi
ranks=
for rank in $(seq 0 $((WORLD_SIZE - 1))); do
  RANK=$rank LOCAL_RANK=$rank RAILHEAD_METRICS_PORT=$((9402 + rank)) chroot "$IN" "$@" & ranks="$ranks $!"
done
failed=0
for rank in $ranks; do wait "$rank" || failed=1; done
[ -n "$MAY_FAIL" ] || exit $failed
"""


class Failure(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Failure(what)


# Seconds after which a command, or ranks, hang: many times what they take, since the machine may do much else.
COMMAND, RANKS = 900, 1200


def run(*command, seconds=COMMAND, said=None, env=None, **options):
    """Returns the output (stdout and stderr) of the command. Raises Failure if it exits with a code other than 0 or
    does not end in time; then all its processes are ended, and Python programs print their stacks. `said` is the
    command as the message shows it."""
    command = [str(part) for part in command]
    said = said or " ".join(command)
    env = {**(os.environ if env is None else env), "PYTHONFAULTHANDLER": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               stdin=subprocess.DEVNULL, env=env, **options)
    try:
        text, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        all_of_it = _tree(process.pid)
        _send(all_of_it, signal.SIGABRT)
        time.sleep(1)
        _send(all_of_it, signal.SIGKILL)
        try:
            text, _ = process.communicate(timeout=10)
        except subprocess.TimeoutExpired as late:  # a process that has left the tree holds the pipe
            text = (late.stdout or b"").decode("utf-8", "replace")
        raise Failure(f"{said}: no end within {seconds} s\n{text[-6000:]}") from None
    except BaseException:
        _send(_tree(process.pid), signal.SIGKILL)
        raise
    if process.returncode != 0:
        raise Failure(f"{said}: exit {process.returncode}\n{text[-6000:]}")
    return text


def _tree(process):
    """Returns a process and all its descendants, the last ones first. They stay in this process's group, which ends
    as a whole if `make` is interrupted."""
    found = []
    with contextlib.suppress(OSError):
        for child in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text("utf-8").split():
            found += _tree(int(child))
    return [*found, process]


def _send(processes, number):
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def run_ranks(count, *command, root="/", what="/", may_fail=False, seconds=RANKS, **variables):
    """Returns the outputs of `count` ranks of this command, which share one isolated network. Their environment
    consists of these variables only. If the ranks have their own root, the folder `what` is at /mnt in it."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "IN": str(root), "WHAT": str(what),
                   "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MAY_FAIL": "1" if may_fail else "",
                   **variables}
    told = " ".join(f"{name}={value}" for name, value in variables.items() if name.startswith("RAILHEAD_"))
    return run("unshare", "--net", "--mount", "sh", "-ec", _RANKS, "ranks", *command, env=environment, seconds=seconds,
               said=f"{count} ranks of {' '.join(map(str, command))} {told}".rstrip())


def unpack_wheel(out):
    """Unpacks the wheel from `make wheel` into out/site, after deleting the contents of `out`."""
    shutil.rmtree(out, ignore_errors=True)
    [wheel] = (ROOT / "out" / "wheel").glob("railhead-*.whl")
    zipfile.ZipFile(wheel).extractall(out / "site")


@contextlib.contextmanager
def locked(name):
    """Only one process, of all parts and checkouts, is inside of the `with` for a part of the cache."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept_python(name, requirements, *options):
    """Returns the Python of a cached environment with the requirements of the file; `options` are pip's."""
    venv = CACHE / f"{name}-venv-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]}"
    with locked(name):
        if not (venv / "complete").exists():
            for old in CACHE.glob(f"{name}-venv-*"):
                shutil.rmtree(old)
            run("/usr/bin/python3", "-m", "venv", venv, seconds=300)
            run(venv / "bin" / "python", "-m", "pip", "install", "--no-deps", "--no-cache-dir", *options, "-r", requirements,
                seconds=1800)
            (venv / "complete").touch()
    return venv / "bin" / "python"


def wait_until(holds, said, seconds):
    """Waits until holds() is true. Raises Failure with the text of said() after `seconds`."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Failure(f"not within {seconds} s: {said()[-3000:]}")
        time.sleep(0.1)


def side_by_side(*calls, at_once=4):
    """Returns the results of calls (function, argument...), in order. Each runs its ranks in a separate network."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return [future.result() for future in [pool.submit(*call) for call in calls]]


def cases_of(functions):
    """{"a-name": case_a_name, ...} of globals()."""
    return {name.removeprefix("case_").replace("_", "-"): case for name, case in functions.items()
            if name.startswith("case_")}


def main(cases, names, prepare=lambda: None, usual=None):
    """Runs the named cases, or `usual` (default: all) if `names` is empty, after `prepare`; returns the exit code."""
    unknown = sorted(set(names) - set(cases))
    if unknown:
        sys.exit(f"error: no case {', '.join(unknown)}; there are: {' '.join(cases)}")
    names = names or usual or list(cases)
    prepare()
    failed = []
    for name in names:
        begin = time.monotonic()
        try:
            cases[name]()
            print(f"{name}: passed, {time.monotonic() - begin:.1f} s", flush=True)
        except Failure as failure:
            failed.append(name)
            print(f"{name}: FAILED: {failure}", flush=True)
    print(f"{len(names) - len(failed)} of {len(names)} cases passed")
    return 1 if failed else 0
