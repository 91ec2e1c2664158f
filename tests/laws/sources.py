#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of several sources: random streams of rows of some hosts or FILEs, judged by a model in here that works the watermark
out anew for each batch.

column   --source: which watermark each row is judged by, and which rows are late, with every trigger, policy and tool; and the
         delay that the report says would have dropped nothing does so, and is the least
merge    --merge: the same of FILEs side by side; all of them are read to the end, whatever --eof

Names of laws on the command line run those alone; WM_SEED starts the seeds elsewhere.
"""

import csv
import os
import pathlib
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
FOLDER = pathlib.Path()  # of the running stream's files; set by use()
NONE = -(1 << 62)
WINDOW = 10_000_000
HEADER = "id,b,src,ts\n"


class Guard:
    """The highest time that is confirmed: 15 of the last 20 that are ahead lie within a distance of each other."""

    def __init__(self, distance):
        self.distance = distance
        self.last = []

    def take(self, highest, time):
        is_ahead = highest == NONE or time > highest + self.distance
        self.last = [*self.last, (time, is_ahead)][-20:]
        if not is_ahead:
            return max(highest, time)
        ahead = sorted(time for time, is_ahead in self.last if is_ahead)
        for first, last in zip(ahead, ahead[14:]):
            if last - first <= self.distance:
                return max(highest, *(time for time in ahead if time <= first + self.distance))
        return highest


def whole_ms(seconds):
    """A delay as it has to be: whole milliseconds, and no less."""
    return -(-round(seconds * 1e6) // 1000)


class Stream:
    def __init__(self, seed, is_merge):
        rng = self.rng = random.Random(f"sources {seed} {is_merge}")
        self.is_merge = is_merge
        step = rng.choice([1_000_000, 1_000_000, 1000, 137])
        self.step = step
        self.names = [f"s{number}" for number in range(rng.randint(1, 4))]
        clocks = {name: rng.choice([0, 0, 3, 20, 60]) for name in self.names}
        begins = {name: rng.choice([0, 0, 0, 4, 15]) for name in self.names}
        self.rows = []  # (id, batch, source, time; None: it has none)
        batch = now = 0
        for number in range(rng.choice([3, 12, 40, 80, 160])):
            batch += rng.random() < 0.25
            now += rng.choice([0, 1, 1, 3, 8])
            name = rng.choice([name for name in self.names if begins[name] <= number] or self.names[:1])
            time = None if rng.random() < 0.05 else max(0, now - clocks[name] - rng.choice([0, 0, 0, 2, 15])) * step + 1_700_000_000_000_000
            self.rows.append((number, batch, name, time))
        self.policy = rng.choice(["min", "min", "max"])
        self.delay = rng.choice([0, 0, 2, 10]) * step
        self.own_delays = {name: rng.choice([0, 5, 30]) * step for name in self.names if rng.random() < 0.2}
        self.known = [] if is_merge or rng.random() < 0.7 else [*self.names, "silent"][rng.randint(0, len(self.names)):]
        self.idle = rng.choice([None, None, 12, 40])
        self.idle = self.idle and self.idle * step
        self.max_jump = rng.choice([None, None, 15, 60])
        self.max_jump = self.max_jump and self.max_jump * step
        self.period = rng.choice([3, 10]) * step
        self.trigger = rng.choice(["each", f"{rng.choice([1, 2, 5, 7])}rows", f"event:{self.period}us", "wall:1h", "column:b", "eof",
                                   "eof" if is_merge else "file"])

    def options(self):
        args = ["-t", "ts", "--time-format", "s", "-w",
                ",".join([f"{self.delay}us", *(f"{name}={delay}us" for name, delay in self.own_delays.items())]),
                "--policy", self.policy, "--trigger", self.trigger]
        args += ["--merge"] if self.is_merge else ["--source", "src"]
        args += ["--sources", ",".join(self.known)] if self.known else []
        args += ["--max-jump", f"{self.max_jump}us"] if self.max_jump else []
        return args + (["--idle", f"{self.idle}us"] if self.idle else [])

    def begin(self, names):
        """Sources that take part before they have a row."""
        self.highest, self.guards = dict.fromkeys(names, NONE), {}

    def observe(self, name, time):
        """A row of a source, which takes part from its first one; where clocks may be wrong, from its first confirmation."""
        highest = self.highest.get(name, NONE)
        if self.max_jump:
            highest = self.guards.setdefault(name, Guard(self.max_jump)).take(highest, time)
        else:
            highest = max(highest, time)
        if name in self.highest or highest != NONE:
            self.highest[name] = highest

    def own(self, name):
        """How far a source's rows bring its own watermark."""
        if self.highest[name] == NONE:
            return NONE
        return (self.highest[name] - self.own_delays.get(name, self.delay)) // 1000 * 1000

    def order(self, files):
        """Rows and ends of FILEs (None) in the order in which they are read: the one furthest behind first."""
        self.begin(files)
        at, items = dict.fromkeys(files, 0), []
        left = list(files)
        while left:
            name = min(left, key=lambda name: (self.own(name), self.names.index(name)))
            if self.idle:
                return None  # who is idle is another law's
            if at[name] == len(files[name]):
                left.remove(name)
                items.append((None, None, name, None))
                continue
            row = files[name][at[name]]
            at[name] += 1
            if row[3] is not None:
                self.observe(name, row[3])
            items.append(row)
        return items

    def judge(self, items):
        """By which watermark each row is judged, in order: (id, watermark, time)."""
        self.begin(self.names if self.is_merge else self.known)
        marks, first_confirmed, confirmed, guard = {}, NONE, NONE, Guard(self.idle or 0)
        ended, judged = set(), []
        watermark, count, batch, multiple, all_highest = NONE, 0, None, None, NONE

        def risen():
            taking = [name for name in self.highest if name not in ended and not is_idle(name)]
            if self.policy == "max":
                return max([watermark, *map(self.own, self.highest)])
            return max(watermark, min(map(self.own, taking))) if taking else watermark

        def is_idle(name):
            if not self.idle or confirmed == NONE:
                return False
            mark = marks.get(name, NONE)
            return confirmed - (first_confirmed if mark == NONE else mark) >= self.idle

        for number, row_batch, name, time in items:
            if number is None:  # a FILE has ended
                ended.add(name)
                if self.trigger in ("each", "file"):
                    watermark = risen()
                continue
            if self.trigger == "column:b" and batch is not None and row_batch != batch:
                watermark = risen()
            batch = row_batch
            count += 1
            is_last = self.trigger.endswith("rows") and count % int(self.trigger[:-4]) == 0
            if time is not None:
                self.observe(name, time)
                if self.idle:
                    confirmed = guard.take(confirmed, time)
                    first_confirmed = confirmed if first_confirmed == NONE else first_confirmed
                    marks[name] = confirmed
                all_highest = max(self.highest.values(), default=NONE)
                if self.trigger == "each":
                    watermark = risen()
                if self.trigger.startswith("event") and all_highest != NONE:
                    is_last = multiple is not None and all_highest // self.period > multiple
                    multiple = all_highest // self.period
                judged.append((number, watermark, time))
            if is_last:
                watermark = risen()
        return judged


def command(stream, tool, files):
    for name in ("report", "late", "rejects"):
        (FOLDER / name).unlink(missing_ok=True)
    late = [] if tool[0] == "wm-stamp" else ["--late", "late"]
    args = [tool[0], "-q", *stream.options(), *tool[1:], *late, "--rejects", "rejects", "--report", "report"]
    result = harness.run([*args, *files], cwd=FOLDER)
    if result.returncode != 0:
        raise ValueError(f"exit status {result.returncode} of {' '.join([*args, *files])}\n{result.stderr.decode()}")
    fault = harness.ledger_fault(harness.read_report(FOLDER / "report")[1])
    if fault:
        raise ValueError(fault)
    return " ".join([*args, *files]), result.stdout.decode()


TOOLS = (
    ["wm-stamp", "--output-time", "us"],
    ["wm-window", "--tumbling", f"{WINDOW}us"],
    ["wm-dedup", "-k", "id", "--remember", "1h"],
    ["wm-sort"],
    ["wm-lag", "--percentiles", "50"],
)


def law(seed, is_merge):
    stream = Stream(seed, is_merge)
    rows = stream.rows
    if is_merge:
        parts = {name: [row for row in rows if row[2] == name] for name in stream.names}
        items = stream.order(parts)
        if items is None:
            return None
    else:
        cut = stream.rng.randint(0, len(rows))
        parts = {"f0": rows[:cut], "f1": rows[cut:]}
        items = rows
        if stream.trigger == "file":  # a FILE's end is a batch's, but of no source
            items = [*rows[:cut], (None, None, "", None), *rows[cut:]]
    for name, part in parts.items():
        text = HEADER + "".join(f"{number},{batch},{source},{'' if time is None else f'{time / 1e6:.6f}'}\n"
                                for number, batch, source, time in part)
        (FOLDER / name).write_text(text, encoding="utf-8")
    judged = stream.judge(items)
    for tool in TOOLS:
        # The rows of several FILEs leave wm-sort in another order; which are late is the same.
        words, out = command(stream, tool, list(parts))
        if tool[0] != "wm-stamp":
            late = [number for number, watermark, time in judged
                    if (time // WINDOW * WINDOW + WINDOW <= watermark if tool[0] == "wm-window" else time < watermark)]
            with open(FOLDER / "late", encoding="utf-8") as file:
                got = [int(row["id"]) for row in csv.DictReader(file)]
            if got != late:
                return f"WM_SEED={seed}: {words}\nlate {got}, {late} by the model"
        else:
            told = [(int(row["id"]), row["_watermark"]) for row in csv.DictReader(out.splitlines()) if row["id"]]
            want = [(number, "" if watermark == NONE else str(watermark)) for number, watermark, _ in judged]
            if told != want:
                apart = next((pair for pair in zip(told, want) if pair[0] != pair[1]), (len(told), len(want)))
                return f"WM_SEED={seed}: {words}\nwatermark {apart[0]}, {apart[1]} by the model"
    if stream.own_delays or stream.max_jump:
        return None
    # What is told of the delay is tried.
    args = ["wm-dedup", "-k", "id", "--remember", "1h"]
    _, _ = command(stream, args, list(parts))
    enough = whole_ms(harness.read_report(FOLDER / "report")[1]["disorder_max"])
    for delay, is_enough in ((enough, True), (enough - 2, False)):
        if delay < 0:
            continue
        stream.delay = delay * 1000
        words, _ = command(stream, args, list(parts))
        late = harness.read_report(FOLDER / "report")[1]["rows_late"]
        if (late == 0) != is_enough:
            return f"WM_SEED={seed}: {words}\n{late} late where {enough} ms are said to drop nothing"
    if is_merge:
        stream.delay = stream.step
        for end in ("hold", "trigger"):
            words, _ = command(stream, [*args, "--eof", end], list(parts))
            count = harness.read_report(FOLDER / "report")[1]["rows_in"]
            if count != len(rows):
                return f"WM_SEED={seed}: {words}\n{count} of {len(rows)} rows read"
    return None


LAWS = {
    "column": (lambda seed: law(seed, False), 200, "streams of some sources are judged by the model's watermark"),
    "merge": (lambda seed: law(seed, True), 100, "FILEs side by side are judged by the model's watermark"),
}


def use(folder):
    global FOLDER
    FOLDER = folder


if __name__ == "__main__":
    sys.exit(harness.run_streams(LAWS, SEED, use))
