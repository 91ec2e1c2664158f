#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of wm-join: two random sides with fixed seeds, judged by nested loops in here.

rows       which rows come out, late ones and the ledger, for every type, condition, delay, trigger and format; and at a
           moment of the inputs that go on, no row without a match that could yet have one, and all others
spark      the same with --compat spark, whose one watermark is worked out row by row; sides that are empty, have a header
           alone, are rejected whole or end behind the other; every --trigger, --eof and --policy
speed      pipes at random speeds, one or both, give the bytes that files give
downstream --stamp: no row is late for wm-window behind it, and its windows are those of the rows that came out
pipe       wm-join -w D writes what it does of sides that wm-stamp -w D has stamped, their columns aside

Names of laws on the command line run those alone; WM_SEED starts the seeds elsewhere.
"""

import collections
import csv
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
FOLDER = pathlib.Path()  # of the running stream's files; set by use()
TYPES = ("inner", "left", "right", "full", "semi", "anti")
PRESERVED = {"left": (0,), "anti": (0,), "right": (1,), "full": (0, 1)}
END = 1 << 62


class Row:
    def __init__(self, side, number, time_us, key, batch):
        self.side = side
        self.number = number
        self.time_us = time_us  # None: it has none
        self.key = key  # None: null
        self.batch = batch
        self.is_late = False

    def line(self, is_json):
        name = "ab"[self.side]
        when = "" if self.time_us is None else f"{self.time_us / 1e6:.6f}"
        if not is_json:
            return f"{when},{self.key or ''},{name}{self.number},{self.number},{self.batch}\n"
        key = json.dumps(self.key)
        return f'{{"ts":{when or "null"},"k":{key},"{name}":"{name}{self.number}","{name}n":{self.number},"batch":{self.batch}}}\n'


def text_of(side, rows, is_json):
    name = "ab"[side]
    header = "" if is_json else f"ts,k,{name},{name}n,batch\n"
    return header + "".join(row.line(is_json) for row in rows)


class Run:
    """A random join: two sides, options, and the model of what comes of them."""

    def __init__(self, seed, has_bad=True, has_watermark=None):
        rng = self.rng = random.Random(f"join {seed}")
        self.step = rng.choice([1000, 1000, 1_000_000, 7])
        begin = rng.choice([0, 1_700_000_000_000_000])
        self.formats = [rng.random() < 0.4, rng.random() < 0.4]
        keys = rng.sample(["x", "y", "1", "01", "a b"], rng.randint(1, 4))
        self.sides = []
        for side in (0, 1):
            rows, now, batch = [], begin + rng.choice([0, 0, 5, 40]) * self.step, 0
            pace = rng.choice([1, 1, 3])
            for number in range(rng.choice([0, 1, 5, 30, 60, 60])):
                now += rng.choice([0, 0, 1, 2, 5, 20]) * pace * self.step
                behind = rng.choice([0, 0, 0, 1, 3, 12, 50]) * self.step
                batch += rng.random() < 0.2
                key = rng.choice(keys)
                if self.formats[side] and number and rng.random() < 0.1:
                    key = None
                is_bad = has_bad and number and rng.random() < 0.05
                rows.append(Row(side, number, None if is_bad else now - behind, key, batch))
            self.sides.append(rows)
        self.is_spark = False
        self.pick(has_watermark)

    def pick(self, has_watermark):
        rng, step = self.rng, self.step
        self.trigger = rng.choice([None, None, None, "rows", "common"])
        self.delays = [None if rng.random() < 0.15 and not has_watermark else rng.choice([0, 1, 4, 15]) * step + rng.choice([0, 300])
                       for _ in (0, 1)]
        if rng.random() < 0.5 and self.delays[0] is not None:
            self.delays[1] = self.delays[0]
        self.kind = rng.choice(TYPES)
        self.condition = rng.choice(["between", "between", "between", "tumbling", "asof"])
        self.has_key = rng.random() < 0.9
        if self.condition == "asof":
            self.kind = rng.choice(("inner", "left"))
            self.tolerance = rng.choice([None, 0, 3 * step, 30 * step])
        elif self.condition == "tumbling":
            self.size = rng.choice([1, 5, 20]) * step
        else:
            ends = sorted(rng.choice([-30, -6, -1, 0, 0, 2, 8, 40]) * step for _ in (0, 1))
            self.ends = ends
            self.strict = [rng.random() < 0.3, rng.random() < 0.3]
            if rng.random() < 0.15:
                side = rng.choice((0, 1))
                if self.kind == "inner" or (self.kind == "right" and side == 1):
                    self.ends = [None if number == side else end for number, end in enumerate(ends)]

    def options(self):
        args = ["--type", self.kind] + (["-k", "k"] if self.has_key else [])
        for name, delay in zip(("left", "right"), self.delays):
            args += [f"--{name}-delay", "none" if delay is None else f"{delay}us"]
        if self.condition == "asof":
            args += ["--asof", "backward"] + ([] if self.tolerance is None else ["--tolerance", f"{self.tolerance}us"])
        elif self.condition == "tumbling":
            args += ["--tumbling", f"{self.size}us"]
        else:
            low, high = ("" if end is None else f"{end}us" for end in self.ends)
            args += [f"--between={'[('[self.strict[0]]}{low},{high}{'])'[self.strict[1]]}"]
        if self.trigger:
            args += ["--trigger", "7rows" if self.trigger == "rows" else "column:batch"]
        return [*args, "-t", "ts", "--time-format", "s"]

    # The model

    def judge(self, sides):
        """Says which rows are late; returns the watermarks at the end of the sides (before those end) and the last batches."""
        watermarks, self.open = [], [[], []]
        for rows, delay in zip(sides, self.delays):
            watermark, highest, pending = -END, -END, -END
            count, batch = 0, None
            for row in rows:
                if self.trigger and (count % 7 == 0 if self.trigger == "rows" else row.batch != batch):
                    watermark = max(watermark, pending)
                count, batch = count + 1, row.batch
                if row.time_us is None:
                    continue
                if delay is not None:
                    highest = max(highest, row.time_us)
                    pending = (highest - delay) // 1000 * 1000
                if not self.trigger:
                    watermark = max(watermark, pending)
                row.is_late = row.time_us < watermark
            # What the last batch would move it to: under --eof trigger it ends.
            watermarks.append(max(watermark, pending))
        return watermarks

    def fits(self, left, right):
        if self.has_key and (left.key is None or left.key != right.key):
            return False
        if self.condition == "tumbling":
            return left.time_us // self.size == right.time_us // self.size
        apart = right.time_us - left.time_us
        (low, high), strict = self.ends, self.strict
        return ((low is None or (apart > low if strict[0] else apart >= low)) and
                (high is None or (apart < high if strict[1] else apart <= high)))

    def is_over(self, row, watermark):
        """Whether the watermark of the other side says that no match can come."""
        if self.is_spark and watermark != END:
            return self.is_over_spark(row, watermark)
        if self.condition == "asof":
            return watermark > row.time_us
        if self.condition == "tumbling":
            return watermark >= (row.time_us // self.size + 1) * self.size
        number = 1 - row.side
        end, is_strict = self.ends[number], self.strict[number]
        last = row.time_us + (end if row.side == 0 else -end)
        return watermark >= last if is_strict else watermark > last

    def answer(self, sides, watermarks=(END, END)):
        """Pairs of rows as a multiset; a side that is not there is None. watermarks: of each side, at the moment of asking."""
        left, right = ([row for row in rows if row.time_us is not None and not row.is_late] for rows in sides)
        rows = collections.Counter()
        if self.condition == "asof":
            for row in left:
                fit = [other for other in right if other.time_us <= row.time_us and
                       (not self.has_key or (row.key is not None and row.key == other.key)) and
                       (self.tolerance is None or row.time_us - other.time_us <= self.tolerance)]
                last = max(fit, key=lambda other: (other.time_us, other.number), default=None)
                if self.is_over(row, watermarks[1]) and (last or self.kind == "left"):
                    rows[row, last] += 1
            return rows
        matched = set()
        for row in left:
            for other in right:
                if self.fits(row, other):
                    if self.kind in ("inner", "left", "right", "full"):
                        rows[row, other] += 1
                    elif self.kind == "semi" and row not in matched:
                        rows[row, None] += 1
                    matched |= {row, other}
        for side in PRESERVED.get(self.kind, ()):
            for row in (left, right)[side]:
                if row not in matched and self.is_over(row, watermarks[1 - side]):
                    rows[(row, None) if side == 0 else (None, row)] += 1
        return rows

    # The model with --compat spark: one watermark for both sides, so that it matters which is read

    def pick_spark(self):
        rng = self.rng
        self.policy = rng.choice(["min", "min", "max"])
        self.eof = rng.choice(["flush", "hold", "trigger"])
        for side in rng.choice([(), (0,), (1,), (0, 1)]):
            shape = rng.choice(["rows", "none", "bad"])
            if shape == "none":
                self.sides[side] = []
            for row in self.sides[side] if shape == "bad" else ():
                row.time_us = None

    def can_leave(self):
        """Whether the watermark alone lets rows go: if not, Spark runs no batch without data."""
        return None not in self.delays and (self.condition != "between" or self.ends != [None, None])

    def combined(self, in_force):
        for side in (0, 1):
            if self.delays[side] is None:
                return in_force[1 - side]
        return max(in_force) if self.policy == "max" and END not in in_force else min(in_force)

    def judge_spark(self, sides):
        """Says which rows are late; returns the watermark by which rows leave in the end, or None where none does."""
        position = [-END if delay is None else 0 for delay in self.delays]  # of what was read
        in_force, told = list(position), [-END, -END]
        self.before = -END
        highest = [-END, -END]

        def tell(side):
            """The watermark of a side as the rows that come are judged by it."""
            us = in_force[side]
            if us != END and self.delays[side] is not None:
                us = self.combined(in_force) if self.can_leave() or not self.trigger else self.before
            told[side] = max(told[side], us)
            return told[side]

        def advance(moved):
            self.before = self.combined(in_force)
            for side, us in moved:
                in_force[side] = us
            for side in (0, 1):
                tell(side)

        def read(row):
            """A row is taken in, and judged."""
            moves = row.key is not None or not self.has_key or row.side in PRESERVED.get(self.kind, ())
            if moves:
                highest[row.side] = max(highest[row.side], row.time_us)
                position[row.side] = max(position[row.side], (highest[row.side] - (self.delays[row.side] or 0) // 1000 * 1000) // 1000 * 1000)
            if not self.trigger and self.delays[row.side] is not None:
                in_force[row.side] = position[row.side]
            last = (row.time_us // self.size + 1) * self.size if self.condition == "tumbling" else row.time_us
            row.is_late = tell(row.side) >= last and moves

        watermark = lambda side: -END if self.delays[side] is None else position[side]
        if self.trigger == "common":
            for batch in sorted({row.batch for rows in sides for row in rows}):
                moved = []
                for side in (1, 0) if self.kind == "semi" else (0, 1):
                    for row in sides[side]:
                        if row.batch == batch and row.time_us is not None:
                            read(row)
                    # The last batch of a side ends with its input, if that is its end.
                    is_last = batch >= max((row.batch for row in sides[side]), default=-1)
                    if not is_last or self.eof != "hold":
                        moved.append((side, watermark(side)))
                advance(moved)
            return self.combined(in_force) if None not in self.delays else None
        at, counts, closed = [0, 0], [0, 0], [False, False]

        def go_on(side):
            """To a side's next row, the end of a batch, or its end."""
            while at[side] < len(sides[side]) or (self.trigger and counts[side] == 7):
                if self.trigger and counts[side] == 7:
                    counts[side] = 0
                    return advance([(side, watermark(side))])
                row = sides[side][at[side]]
                at[side], counts[side] = at[side] + 1, counts[side] + 1
                if row.time_us is not None:
                    return read(row)
            closed[side] = True
            if self.trigger and counts[side] and self.eof != "hold":
                advance([(side, watermark(side))])
            if self.eof == "flush":
                advance([(side, END)])
            return None

        while not all(closed):
            # How the result looks is told by the left, so that it comes first.
            is_left = not closed[0] and (closed[1] or at[0] == 0 or position[0] <= position[1])
            go_on(0 if is_left else 1)
        return self.combined(in_force) if None not in self.delays else None

    def is_over_spark(self, row, watermark):
        """Whether the watermark of both says so: with inclusive ends a millisecond later, but for equal times."""
        if self.condition != "between":
            return watermark >= ((row.time_us // self.size + 1) * self.size if self.condition == "tumbling" else row.time_us + 1)
        end, is_strict = self.ends[1 - row.side], self.strict[1 - row.side]
        last = row.time_us + (end if row.side == 0 else -end)
        is_equality = self.ends == [0, 0] and not any(self.strict)
        return watermark >= (last if is_strict or is_equality else last + 1000)

    # The tool

    def write(self, sides):
        names = []
        for side, rows in enumerate(sides):
            names.append("lr"[side] + (".ndjson" if self.formats[side] else ".csv"))
            (FOLDER / names[-1]).write_text(text_of(side, rows, self.formats[side]), encoding="utf-8")
        return names

    def read(self, out):
        """The rows of the result (CSV) as pairs of names, such as a3 and b7; punctuation aside."""
        rows = csv.DictReader(io.StringIO(out))
        return collections.Counter((row.get("a") or "", row.get("b") or "") for row in rows
                                   if row.get("a") or row.get("b"))


def named(rows):
    """The model's rows as the tool shows them."""
    return collections.Counter({(f"a{left.number}" if left else "", f"b{right.number}" if right else ""): count
                                for (left, right), count in rows.items()})


def tool(args, files, stdin=b""):
    """Standard output of a run that must end well, and its report."""
    for name in ("report", "rejects", "late.l", "late.r"):
        (FOLDER / name).unlink(missing_ok=True)
    result = harness.run([*args, "-q", "--rejects", "rejects", "--report", "report", *files], cwd=FOLDER, stdin=stdin)
    if result.returncode != 0:
        raise ValueError(f"exit status {result.returncode} of {' '.join(args)}\n{result.stderr.decode(errors='replace')}")
    _, report = harness.read_report(FOLDER / "report")
    if fault := harness.ledger_fault(report):
        raise ValueError(fault)
    return result.stdout.decode(), report


def difference(words, got, want):
    if got == want:
        return None
    return f"{words}: the model's, not the tool's {list((want - got).elements())[:5]}; the tool's, not the model's {list((got - want).elements())[:5]}"


def rows_stream(seed):
    run = Run(seed)
    run.judge(run.sides)
    args = ["wm-join", *run.options(), "-o", "csv", "--late-left", "late.l", "--late-right", "late.r"]
    out, report = tool(args, run.write(run.sides))
    fault = difference("rows", run.read(out), named(run.answer(run.sides)))
    rows = [row for side in run.sides for row in side]
    late = [f"{'ab'[row.side]}{row.number}" for row in rows if row.is_late]
    kept = "".join((FOLDER / name).read_text() for name in ("late.l", "late.r"))
    if not fault and [line for line in late if f'"{line}"' not in kept and f",{line}," not in kept]:
        fault = f"late rows {late}, in the files {kept}"
    if not fault and (report["rows_late"], report["rows_used"], report["rows_in"]) != (
            len(late), len(rows) - len(late) - sum(row.time_us is None for row in rows), len(rows)):
        fault = f"ledger {report['rows_late']} late, {report['rows_used']} used of {len(rows)}, {len(late)} late by the model"
    # At a moment of inputs that go on.
    for _ in range(2):
        if fault:
            break
        part = [rows[:run.rng.randrange(len(rows) + 1)] for rows in run.sides]
        for row in rows:
            row.is_late = False
        watermarks = run.judge(part)
        out, _ = tool([*args, "--eof", "trigger"], run.write(part))
        fault = difference(f"held after {len(part[0])} and {len(part[1])} rows", run.read(out), named(run.answer(part, watermarks)))
    return fault and f"WM_SEED={seed}: {' '.join(args)}\n{fault}"


def spark_stream(seed):
    run = Run(seed)
    run.is_spark = True
    run.pick_spark()
    watermark = run.judge_spark(run.sides)
    # A bound on time that is far away: nothing here takes a second.
    args = ["timeout", "-s", "KILL", "20", str(harness.BIN / "wm-join"), "--compat", "spark", *run.options(), "-o", "csv", "--policy", run.policy,
            "--eof", run.eof, "--late-left", "late.l", "--late-right", "late.r", "-q", "--rejects", "rejects", "--report", "report"]
    names = run.write(run.sides)
    for side, rows in enumerate(run.sides):
        if not rows and run.rng.random() < 0.5:
            (FOLDER / names[side]).write_bytes(b"")
    for name in ("report", "rejects", "late.l", "late.r"):
        (FOLDER / name).unlink(missing_ok=True)
    result = subprocess.run([*args, *names], cwd=FOLDER, capture_output=True, check=False)
    where = f"WM_SEED={seed}: {' '.join([*args, *names])}\n"
    if result.returncode != 0:
        return where + f"exit status {result.returncode}\n{result.stderr.decode(errors='replace')}"
    _, report = harness.read_report(FOLDER / "report")
    rows = [row for side in run.sides for row in side]
    late = sum(row.is_late for row in rows)
    if fault := harness.ledger_fault(report):
        return where + fault
    if (report["rows_late"], report["rows_in"]) != (late, len(rows)):
        return where + f"{report['rows_late']} late of {report['rows_in']} rows, {late} of {len(rows)} by the model"
    over = END if run.eof == "flush" else -END if watermark is None else watermark
    fault = difference("rows", run.read(result.stdout.decode()), named(run.answer(run.sides, (over, over))))
    return fault and where + fault


def feed(descriptor, data, rng):
    """Writes in pieces, with pauses."""
    with os.fdopen(descriptor, "wb", buffering=0) as pipe:
        at = 0
        while at < len(data):
            size = rng.choice([1, 7, 60, 400])
            try:
                pipe.write(data[at:at + size])
            except BrokenPipeError:
                return
            at += size
            if rng.random() < 0.3:
                time.sleep(rng.choice([0, 0.0005, 0.002]))


def speed_stream(seed):
    run = Run(seed)
    names = run.write(run.sides)
    args = ["wm-join", *run.options(), "-q", "--rejects", "/dev/null", *(["--stamp", "later"] if run.condition == "tumbling" else [])]
    want = harness.run([*args, *names], cwd=FOLDER)
    for _ in range(2):
        files, threads, ends = list(names), [], []
        for side in run.rng.choice([(0,), (1,), (0, 1), (0, 1)]):
            end, other = os.pipe()
            files[side] = f"/dev/fd/{end}"
            ends.append(end)
            data = (FOLDER / names[side]).read_bytes()
            threads.append(threading.Thread(target=feed, args=(other, data, random.Random(run.rng.random()))))
        process = subprocess.Popen([str(harness.BIN / args[0]), *args[1:], *files], cwd=FOLDER, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=ends)
        for end in ends:
            os.close(end)
        for thread in threads:
            thread.start()
        out, err = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        for thread in threads:
            thread.join()
        if process.returncode != want.returncode or out != want.stdout:
            return (f"WM_SEED={seed}: {' '.join(args)} {files}: status {process.returncode}, {want.returncode} of files\n"
                    f"{out.decode()}\nof files\n{want.stdout.decode()}{err.decode()}")
    return None


def downstream_stream(seed):
    run = Run(seed, has_bad=False, has_watermark=True)
    if not run.sides[0] or not run.sides[1]:
        return None
    stamps = ["later", "left", "right"]
    if run.condition == "between" and None in run.ends:
        run.ends = [-run.step, run.step]
    if run.condition == "asof" and run.tolerance is None:
        stamps = ["later", "left"]
    stamp = run.rng.choice(stamps)
    run.judge(run.sides)
    args = ["wm-join", *run.options(), "-o", "csv", "--stamp", stamp]
    out, report = tool(args, run.write(run.sides))
    size = run.rng.choice([1, 3, 10, 50]) * run.step
    window = ["wm-window", "--tumbling", f"{size}us", "-a", "count,a=sum:an" + ("" if run.kind in ("semi", "anti") else ",b=sum:bn"),
              "--output-time", "us"]
    got, report = tool(window, [], stdin=out.encode())
    where = f"WM_SEED={seed}: {' '.join(args)} | {' '.join(window)}\n"
    if report["rows_late"] or report["rows_partly_late"]:
        return where + f"{report['rows_late']} rows are late behind it\n{out}"
    if run.kind == "semi" and stamp != "left":
        return None  # which match comes first depends on the order in which the sides are read
    windows = {}
    for (left, right), count in run.answer(run.sides).items():
        times = [row.time_us for row in (left, right) if row]
        moment = max(times) if stamp == "later" or len(times) == 1 else times[stamp == "right"]
        counts = windows.setdefault(moment // size * size, [0, 0, 0])
        counts[0] += count
        counts[1] += left.number if left else 0
        counts[2] += right.number if right else 0
    told = {}
    for row in csv.DictReader(io.StringIO(got)):
        told[int(row["window_start"])] = [int(row["count"]), int(row["a"] or 0), int(row.get("b") or 0)]
    return None if told == windows else where + f"windows {told}\nthe model's {windows}"


def pipe_stream(seed):
    run = Run(seed, has_bad=False, has_watermark=True)
    run.trigger = None
    args = ["wm-join", *run.options(), "-o", "csv"]
    names = run.write(run.sides)
    want, _ = tool(args, names)
    stamped = []
    for name, delay in zip(names, run.delays):
        out, _ = tool(["wm-stamp", "-t", "ts", "--time-format", "s", "-w", f"{delay}us"], [name])
        stamped.append("stamped." + name)
        (FOLDER / stamped[-1]).write_text(out, encoding="utf-8")
    own = [word for word in args if word not in ("--time-format", "s")]
    for option in ("-t", "--left-delay", "--right-delay"):
        at = own.index(option)
        del own[at:at + 2]
    got, _ = tool(own, stamped)
    rows = list(csv.reader(io.StringIO(got)))
    left_out = [number for number, name in enumerate(rows[0]) if name in ("_time", "right__time")] if rows else []
    bare = io.StringIO()
    csv.writer(bare, lineterminator="\n").writerows(
        [field for number, field in enumerate(row) if number not in left_out] for row in rows)
    if bare.getvalue() != want:
        return f"WM_SEED={seed}: {' '.join(own)} of stamped sides\n{bare.getvalue()}\nwith -w\n{want}"
    return None


LAWS = {
    "rows": (rows_stream, 350, "random joins give the rows of the model, late ones and held ones too"),
    "spark": (spark_stream, 400, "random joins with --compat spark end, and give the rows of the model"),
    "speed": (speed_stream, 60, "random joins give the same bytes at any speed"),
    "downstream": (downstream_stream, 250, "random joins have no row that is late behind them"),
    "pipe": (pipe_stream, 120, "random joins of stamped sides give what they give with -w"),
}


def use(folder):
    global FOLDER
    FOLDER = folder


if __name__ == "__main__":
    sys.exit(harness.run_streams(LAWS, SEED, use))
