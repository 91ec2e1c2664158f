#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A law: of logs that are rotated in any way between runs on one checkpoint, each row is read once.

A history is a log and its rotated parts, and random things that happen to them: rows are added, to the log and to the part
that a program still writes to; lines are torn; the log is renamed or copied and truncated, also while it is empty or holds
a header alone; the new log is absent, empty, or has its header; the oldest part goes away. Between them wm-stamp reads all
parts there are. A row that went away unread must have been said; all others are in the output once. WM_SEED starts elsewhere.
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
HISTORIES = 100
STEPS = 14
# Nothing is lost by leaving out fsync(): no machine goes down here.
LIBRARY = harness.BIN / "tests/fault/kill_at.so"
ENV = {"LD_PRELOAD": str(LIBRARY), "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
LOST = "is not among the inputs"


class Log:
    """The parts of a log in a folder, and which of their rows were read."""

    def __init__(self, folder, rng, form):
        self.folder = folder
        self.rng = rng
        self.form = form
        self.header = b"" if form == "json" else b"id,ts\n"
        self.rows = 0
        self.parts = {}  # number of a part (0: the log itself) -> rows that a line end follows
        self.torn = {}  # the same -> what is left of a torn line
        self.read = set()
        self.live = False  # a run has read rows under the name of the log
        self.lost = set()
        self.losses = self.said = 0
        self.told = []
        self.create()

    def path(self, part):
        return self.folder / (f"log.{part}" if part else "log")

    def create(self):
        start = self.rng.choice([None, b"", self.header, self.header])
        if start is not None:
            self.path(0).write_bytes(start)
            self.parts[0] = []
        self.live = False
        self.told.append(f"new {start}")

    def line(self):
        self.rows += 1
        second = f"{1700000000 + self.rows}.{self.rows % 1000:03d}"
        text = f'{{"id":{self.rows},"ts":{second}}}\n' if self.form == "json" else f"{self.rows},{second}\n"
        return self.rows, text.encode()

    def add(self, part):
        """Rows, and now and then the first half of one."""
        with open(self.path(part), "ab") as file:
            if not file.tell():
                file.write(self.header)
            self.parts.setdefault(part, [])
            if part in self.torn:
                number, rest = self.torn.pop(part)
                file.write(rest)
                self.parts[part].append(number)
            for _ in range(self.rng.choice([0, 1, 3])):
                number, text = self.line()
                # Longer than what a file is known by.
                if self.form == "json" and self.rng.random() < 0.1:
                    text = text[:-2] + b',"x":"' + b"x" * 5000 + b'"}\n'
                file.write(text)
                self.parts[part].append(number)
            if self.rng.random() < 0.2:
                number, text = self.line()
                cut = self.rng.randrange(1, len(text))
                file.write(text[:cut])
                self.torn[part] = (number, text[cut:])
        self.told.append(f"add to {part}: {self.parts[part]}")

    def shift(self):
        for part in sorted((p for p in self.parts if p), reverse=True):
            self.path(part).rename(self.path(part + 1))
            self.parts[part + 1] = self.parts.pop(part)
            if part in self.torn:
                self.torn[part + 1] = self.torn.pop(part)

    def rename(self):
        if 0 not in self.parts:
            return
        self.shift()
        self.path(0).rename(self.path(1))
        self.parts[1] = self.parts.pop(0)
        if 0 in self.torn:
            self.torn[1] = self.torn.pop(0)
        self.told.append("rename")
        # Nobody reads the log under its old name before it is there again: what is lost then is said by the next one.
        self.create()

    def copytruncate(self):
        if 0 not in self.parts or 0 in self.torn:
            return
        self.shift()
        self.path(1).write_bytes(self.path(0).read_bytes())
        self.path(0).write_bytes(self.rng.choice([b"", self.header]))
        self.parts[1] = self.parts.pop(0)
        self.parts[0] = []
        self.live = False
        self.told.append("copytruncate")

    def forget(self):
        """The oldest part goes away, as if it was compressed; with rows that were not read only where a run can know of it."""
        oldest = max(self.parts, default=0)
        if not oldest or oldest in self.torn or not set(self.parts[oldest]) <= self.read:
            return
        self.path(oldest).unlink()
        del self.parts[oldest]
        self.told.append(f"forget {oldest}")

    def lose(self):
        """The log is renamed and goes away with rows that no run has read; runs knew it under its name."""
        if not self.live or 0 in self.torn or 0 not in self.parts or set(self.parts[0]) <= self.read:
            return
        self.lost |= set(self.parts[0]) - self.read
        self.losses += 1
        self.path(0).rename(self.folder / "away")
        del self.parts[0]
        self.path(0).write_bytes(self.header)
        self.parts[0] = []
        self.live = False
        self.told.append("lose")

    def run(self, end="hold"):
        names = [self.path(part).name for part in sorted(self.parts, reverse=True)]
        if not names:
            return
        command = [harness.BIN / "wm-stamp", "-t", "ts", "-w", "0s", "-C", "st", "--eof", end, "--out", "out", "-i",
                   "ndjson" if self.form == "json" else "csv", *names]
        done = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False, env={**os.environ, **ENV})
        errors = done.stderr.decode(errors="replace")
        self.told.append(f"run {' '.join(names)}: {errors}")
        if done.returncode != 0:
            raise ValueError(f"status {done.returncode}: {errors}")
        self.said += errors.count(LOST)
        for rows in self.parts.values():
            self.read |= set(rows)
        self.live = bool(self.parts.get(0))

    def fault(self):
        """None, or what is wrong in the end."""
        ids = []
        text = (self.folder / "out").read_bytes().decode() if (self.folder / "out").exists() else ""
        for line in text.splitlines():
            if line.startswith("{"):
                ids.append(int(line.split(":")[1].split(",")[0]))
            elif not line.startswith("id,"):
                ids.append(int(line.split(",")[0]))
        want = self.read - self.lost
        if sorted(ids) != sorted(want):
            return (f"rows twice: {sorted({i for i in ids if ids.count(i) > 1})}, missing: {sorted(want - set(ids))}, "
                    f"more: {sorted(set(ids) - want)}")
        if self.said < self.losses:
            return f"rows {sorted(self.lost)} went away, and {self.said} of {self.losses} times it was said"
        return None


def history(seed, form, folder):
    """None, or what is wrong; and how many runs there were."""
    log = Log(folder, random.Random(f"{SEED} {seed} {form}"), form)
    deeds = [lambda: log.add(0)] * 5 + [lambda: 1 in log.parts and log.add(1), log.rename, log.rename, log.copytruncate,
                                        log.forget, log.lose, log.lose, log.lose] + [log.run] * 4
    try:
        for _ in range(STEPS):
            log.rng.choice(deeds)()
        if log.losses and 0 not in log.parts:
            log.add(0)
        log.run()
        fault = log.fault()
    except ValueError as error:
        fault = str(error)
    return fault and fault + "\n  " + "\n  ".join(log.told), sum(t.startswith("run") for t in log.told), log.losses


def main():
    tap = harness.Tap()
    if not LIBRARY.exists():
        sys.exit(f"{LIBRARY} is not there: make tests")
    for form in ("csv", "json"):
        runs = losses = 0
        faults = []
        for seed in range(HISTORIES):
            with tempfile.TemporaryDirectory(prefix="wm-rotation-") as folder:
                fault, some, lost = history(seed, form, pathlib.Path(folder))
            runs += some
            losses += lost
            if fault:
                faults.append(f"history {seed}: {fault}")
        tap.ok(not faults, f"{form}: each row of a log that is rotated is read once", *faults[:3], f"{len(faults)} faults")
        tap.ok(losses > 3, f"{form}: and one that went away unread is said")
        tap.note(f"{form}: {runs} runs, {losses} losses")
    return tap.done()


sys.exit(main())
