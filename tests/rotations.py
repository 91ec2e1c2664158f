# SPDX-License-Identifier: Apache-2.0
"""A log that is rotated in random ways between runs that read all of its parts, and which of its rows they must have read."""

import os
import subprocess

import harness

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
        self.maybe = set()  # a run that was killed may have read these
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
        lost = set(self.parts[0]) - self.read
        self.lost |= lost
        self.losses += bool(lost - self.maybe)
        self.path(0).rename(self.folder / "away")
        del self.parts[0]
        self.path(0).write_bytes(self.header)
        self.parts[0] = []
        self.live = False
        self.told.append("lose")

    def step(self):
        """One thing happens."""
        deeds = [lambda: self.add(0)] * 5 + [lambda: 1 in self.parts and self.add(1), self.rename, self.rename,
                                             self.copytruncate, self.forget, self.lose, self.lose, self.lose]
        self.rng.choice(deeds + [self.run] * 4)()

    def attempt(self, env=None, options=()):
        """The status of a run over all parts, and what it said."""
        names = [self.path(part).name for part in sorted(self.parts, reverse=True)]
        command = [harness.BIN / "wm-stamp", "-t", "ts", "-w", "0s", "-C", "st", "--eof", "hold", "--out", "out", "-i",
                   "ndjson" if self.form == "json" else "csv", *options, *names]
        done = subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False, env={**os.environ, **ENV, **(env or {})})
        errors = done.stderr.decode(errors="replace")
        self.told.append(f"run {' '.join(names)}: {done.returncode} {env or ''} {errors}")
        self.said += errors.count(LOST)
        return done.returncode, errors

    def run(self):
        if not self.parts:
            return
        status, errors = self.attempt()
        if status != 0:
            raise ValueError(f"status {status}: {errors}")
        for rows in self.parts.values():
            self.read |= set(rows)
        self.live = bool(self.parts.get(0))

    def end(self):
        """The last run; None, or what is wrong then."""
        if self.losses and 0 not in self.parts:
            self.add(0)
        self.run()
        return self.fault()

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
        twice, missing, more = {i for i in ids if ids.count(i) > 1}, want - set(ids), set(ids) - want - self.maybe
        if twice or missing or more:
            return f"rows twice: {sorted(twice)}, missing: {sorted(missing)}, more: {sorted(more)}"
        if self.said < self.losses:
            return f"rows {sorted(self.lost)} went away, and {self.said} of {self.losses} times it was said"
        return None
