# SPDX-License-Identifier: Apache-2.0
"""Output of long runs for people: steps, elapsed time, and clear failures."""

import contextlib
import pathlib
import sys
import threading
import time


class Failure(Exception):
    """An error for people: what failed, the log with the cause, and the fix."""

    def __init__(self, message, log=None, advice=""):
        super().__init__(message)
        self.log = pathlib.Path(log) if log else None
        self.advice = advice


class Console:
    """Prints steps with the elapsed time; steps of more than 3 s get progress lines."""

    FIRST_PROGRESS_SECONDS = 3
    PROGRESS_SECONDS = 10

    def __init__(self, out=sys.stdout):
        self._out = out
        self._start = time.monotonic()
        self._note = ""

    def elapsed(self):
        return time.monotonic() - self._start

    def line(self, text=""):
        for part in text.split("\n"):
            print(f"[{self.elapsed():6.1f} s] {part}".rstrip(), file=self._out, flush=True)

    def plain(self, text=""):
        print(text, file=self._out, flush=True)

    def note(self, text):
        """Sets the current activity of the step, for its next progress line."""
        self._note = text

    @contextlib.contextmanager
    def step(self, title):
        begin = time.monotonic()
        self._note = ""
        self.line(f"{title} ...")
        done = threading.Event()

        def progress():
            pause = self.FIRST_PROGRESS_SECONDS
            while not done.wait(pause):
                pause = self.PROGRESS_SECONDS
                note = f": {self._note}" if self._note else ""
                self.line(f"    still at it{note} ({time.monotonic() - begin:.0f} s)")

        thread = threading.Thread(target=progress, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        self.line(f"    done ({time.monotonic() - begin:.1f} s)")

    def failed(self, failure):
        self.line(f"FAILED: {failure}")
        if failure.log and failure.log.exists():
            lines = failure.log.read_text(errors="replace").splitlines()[-15:]
            self.plain(f"  the last lines of {failure.log}:")
            for text in lines:
                self.plain(f"    | {text}")
        if failure.advice:
            self.plain(f"  what to do: {failure.advice}")


def wait_for(what, condition, seconds, log=None, interval=0.2, advice=""):
    """Calls condition() until it returns a true value, and returns that value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {seconds} s", log=log, advice=advice)
        time.sleep(interval)


def table(rows, header):
    """Returns a text table with aligned columns, numbers to the right."""
    cells = [header] + [[str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def numeric(text):
        return text.replace(".", "", 1).replace("-", "", 1).isdigit()

    lines = []
    for row in cells:
        lines.append("  ".join(c.rjust(w) if numeric(c) else c.ljust(w)
                               for c, w in zip(row, widths)).rstrip())
        if row is header:
            lines.append("  ".join("-" * w for w in widths))
    return "\n".join(lines)
