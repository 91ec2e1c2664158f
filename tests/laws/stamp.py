#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of the watermark in band: random streams with fixed seeds, through wm-stamp and without it.

pipe     wm-X -w D ARGS and wm-stamp -w D | wm-X ARGS write the same bytes, and count the same rows as late
batches  wm-stamp -w D --trigger T | wm-window gives what wm-window -w D --trigger T gives, in append mode
filter   of what a filter leaves of a stamped stream, windows are those of a model that goes by the watermarks
         which the rows carry; no row is late that was not

Names of laws on the command line run those alone; WM_SEED starts the seeds elsewhere.
"""

import json
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
PIPE_STREAMS = 1000
BATCH_STREAMS = 300
FILTER_STREAMS = 300
SAME_COUNTS = ("rows_late", "rows_used", "rows_partly_late", "windows_missed")
FOLDER = pathlib.Path()  # of all streams' files; set in main()


# Streams: rows of (time in ms or None where it is no time, its text, key, value, batch).

def random_rows(rng, with_bad):
    now = rng.choice([0, 1_704_110_400_000, -50_000])
    batch = 0
    rows = []
    for _ in range(rng.randrange(1, 60)):
        now += rng.choice([0, 0, 500, 1000, 1000, 3000, 10_000, 60_000 if rng.random() < 0.2 else 0])
        late = rng.choice([0, 0, 0, 500, 1000, 7000, 20_000])
        batch += rng.random() < 0.2
        time_ms = now - late
        text = harness.print_instant(time_ms * 1000)
        if with_bad and rng.random() < 0.1:
            time_ms, text = None, rng.choice(["", "x", "12:00"])
        rows.append((time_ms, text, rng.choice(["a", "b", "", "c,d"]), rng.randrange(-50, 50), batch))
    return rows


def write(path, rows, is_json):
    lines = [] if is_json else ["time,k,v,batch\n"]
    for _, text, key, value, batch in rows:
        if is_json:
            members = {"time": text, "k": key or None, "v": value, "batch": batch}
            if not text:
                del members["time"]
            lines.append(json.dumps(members) + "\n")
        else:
            lines.append(f'{text},{chr(34) + key + chr(34) if "," in key else key},{value},{batch}\n')
    path.write_text("".join(lines), encoding="ascii")


def random_trigger(rng, kinds=("each", "rows", "event", "eof", "column")):
    kind = rng.choice(kinds)
    return {"each": "each", "eof": "eof", "column": "column:batch", "rows": f"{rng.randint(1, 9)}rows",
            "event": f"event:{rng.choice([1, 5, 30])}s"}[kind]


def random_windows(rng):
    size = rng.choice([1, 2, 5, 10, 60])
    return rng.choice([["--tumbling", f"{size}s"], ["--sliding", f"{size * 2}s,{size}s"],
                       ["--sliding", f"{size * 2 + 1}s,{size}s"], ["--session", f"{rng.choice([1, 3, 10])}s"],
                       ["--cumulating", f"{size * 4}s,{size}s"]])


def random_tool(rng):
    """A tool with its arguments, all but the trigger."""
    if rng.random() < 0.15:
        args = ["wm-lag", "--percentiles", "0,50,90,100"]
        return args + rng.choice([[], ["-g", "k"], ["--every", "10s"]])
    windows = random_windows(rng)
    args = ["wm-window", *windows, "-a", "count,sum:v,first:v,last:v,max:v", *rng.choice([[], ["-g", "k"]])]
    is_session = windows[0] == "--session"
    kind = rng.randrange(4)
    if kind == 0 and not is_session:
        args += ["--mode", "update"]
    elif kind == 1:
        args += ["--allowed-lateness", f"{rng.choice([1, 5, 30])}s"]
        args += rng.choice([[], ["--panes", "discarding"]])
        args += rng.choice([[], ["--early", "2rows"], ["--early", "event:5s"]])
    elif kind == 2 and windows[0] == "--tumbling":
        args += ["--fill", rng.choice(["zero", "null", "prev"])]
    return args


# Many runs with few processes around them: a shell starts the tools one after the other.

class Script:
    def __init__(self):
        self.lines = []

    def add(self, args, stdin, stdout):
        command = " ".join([shlex.quote(str(harness.BIN / args[0])), *map(shlex.quote, args[1:])])
        self.lines.append(f"{command} <{stdin} >{stdout} 2>{stdout}.err; echo $? >{stdout}.status\n")

    def run(self):
        result = subprocess.run(["sh"], input="".join(self.lines), cwd=FOLDER, text=True, capture_output=True,
                                check=False, timeout=4 * harness.TIMEOUT_SECONDS)
        if result.returncode != 0 or result.stderr:
            raise ValueError(result.stderr)


def said(name, may_reject):
    """What a run wrote; a run that failed is no answer."""
    status = int((FOLDER / f"{name}.status").read_text())
    if status not in ((0, 1) if may_reject else (0,)):
        raise ValueError(f"exit status {status}: {(FOLDER / (name + '.err')).read_text()}")
    return (FOLDER / name).read_bytes()


def report_of(name):
    _, report = harness.read_report(FOLDER / name)
    if fault := harness.ledger_fault(report):
        raise ValueError(fault)
    return report


def judged(tap, name, count, faults, told):
    tap.ok(not faults, f"{name}: {count} random streams, {told}", f"{len(faults)} failed; the first three:",
           *faults[:3])


def law_pipe(tap):
    script = Script()
    streams = []
    for seed in range(SEED, SEED + PIPE_STREAMS):
        rng = random.Random(seed)
        # A rejected row counts in batches of rows and of a column, and wm-stamp does not pass it on.
        with_bad = rng.random() < 0.5
        kinds = ("each", "each", "event", "eof") if with_bad else ("each", "rows", "event", "eof", "column")
        trigger = random_trigger(rng, kinds)
        tool = random_tool(rng) + ["--trigger", trigger, "-q"]
        delay = ["-w", f"{rng.choice([0, 0, 1, 5, 20])}s"]
        is_json = rng.random() < 0.5
        write(FOLDER / f"in{seed}", random_rows(rng, with_bad), is_json)
        script.add([*tool, "-t", "time", *delay, "--report", f"report{seed}"], f"in{seed}", f"direct{seed}")
        script.add(["wm-stamp", "-q", "-t", "time", *delay], f"in{seed}", f"stamped{seed}")
        script.add([*tool, "--report", f"behind-report{seed}"], f"stamped{seed}", f"behind{seed}")
        streams.append((seed, " ".join(tool + delay), with_bad))
    script.run()
    faults, late, written = [], 0, 0
    for seed, shown, with_bad in streams:
        try:
            direct, behind = said(f"direct{seed}", with_bad), said(f"behind{seed}", False)
            said(f"stamped{seed}", with_bad)
            reports = [report_of(f"report{seed}"), report_of(f"behind-report{seed}")]
        except (OSError, ValueError) as error:
            faults.append(f"seed {seed}: {shown}: {error}")
            continue
        late += reports[0]["rows_late"]
        written += direct.count(b"\n")
        counts = [[report[name] for name in SAME_COUNTS] for report in reports]
        # A stream of bad rows alone has no first record, and leaves NDJSON empty.
        if direct != behind and reports[1]["rows_in"]:
            faults.append(f"seed {seed}: {shown}\ndirect:\n{direct.decode()}behind wm-stamp:\n{behind.decode()}")
        elif counts[0] != counts[1]:
            faults.append(f"seed {seed}: {shown}: {SAME_COUNTS} {counts[0]} and behind wm-stamp {counts[1]}")
    judged(tap, "pipe", PIPE_STREAMS, faults, f"{late} late rows: the same {written} lines behind wm-stamp")
    tap.ok(late > 1000 and written > 5000, "pipe: these are a test of something", late, written)


def law_batches(tap):
    script = Script()
    streams = []
    for seed in range(SEED, SEED + BATCH_STREAMS):
        rng = random.Random(seed)
        with_bad = rng.random() < 0.5
        trigger = ["--trigger", random_trigger(rng)]
        tool = ["wm-window", "-q", *random_windows(rng), "-g", "k", "-a", "count,sum:v,last:v"]
        delay = ["-t", "time", "-w", f"{rng.choice([0, 0, 1, 5, 20])}s"]
        write(FOLDER / f"in{seed}", random_rows(rng, with_bad), rng.random() < 0.5)
        script.add([*tool, *delay, *trigger, "--report", f"batch{seed}"], f"in{seed}", f"direct{seed}")
        script.add(["wm-stamp", "-q", *delay, *trigger], f"in{seed}", f"stamped{seed}")
        script.add([*tool, "--report", f"each{seed}"], f"stamped{seed}", f"behind{seed}")
        streams.append((seed, " ".join(tool + delay + trigger), with_bad))
    script.run()
    faults, punctuation = [], 0
    for seed, shown, with_bad in streams:
        try:
            direct, behind = said(f"direct{seed}", with_bad), said(f"behind{seed}", False)
            reports = [report_of(f"batch{seed}"), report_of(f"each{seed}")]
        except (OSError, ValueError) as error:
            faults.append(f"seed {seed}: {shown}: {error}")
            continue
        punctuation += reports[1]["rows_punctuation"]
        counts = [[report[name] for name in SAME_COUNTS] for report in reports]
        if (direct != behind and reports[1]["rows_in"]) or counts[0] != counts[1]:
            faults.append(f"seed {seed}: {shown} {counts}\nin batches:\n{direct.decode()}stamped in batches:\n"
                          f"{behind.decode()}")
    judged(tap, "batches", BATCH_STREAMS, faults, f"{punctuation} rows of punctuation: as one tool with the trigger")
    tap.ok(punctuation > 500, "batches: these are a test of something", punctuation)


# What survives a filter: rows of (time, watermark, key, value) in ms, None for none.

def seconds(ms):
    """Milliseconds, of which only halves of a second occur, as the tools write seconds."""
    return f"{ms / 1000:.1f}".removesuffix(".0")


def model(rows, size, slide):
    """The lines that wm-window writes, with count and sum of windows, and the positions of the late rows."""
    state, watermark, lines, late = {}, None, [], []

    def close(until):
        groups = sorted((group for group in state if until is None or group[1] <= until),
                        key=lambda group: (group[1], group[0], group[2]))
        for start, end, key in groups:
            count, total = state.pop((start, end, key))
            name = f'"{key}"' if "," in key else key
            lines.append(f"{seconds(start)},{seconds(end)},{name},{count},{total}\n")

    for position, (time, mark, key, value) in enumerate(rows):
        if mark is not None and (watermark is None or mark > watermark):
            watermark = mark
            close(watermark)
        if time is None:
            continue
        windows = [(start, start + size) for start in range(time // slide * slide, time - size, -slide)]
        still_open = [window for window in windows if watermark is None or window[1] > watermark]
        if not still_open:
            late.append(position)
        for start, end in still_open:
            count, total = state.get((start, end, key), (0, 0))
            state[start, end, key] = (count + 1, total + value)
    close(None)
    return lines, late


def read_stamped(text, is_json):
    """The lines of a stamped stream, without its header, with what they say."""
    rows = []
    for line in text.splitlines(keepends=True)[0 if is_json else 1:]:
        if is_json:
            members = json.loads(line)
            fields = [members.get("k") or "", members.get("v"), members.get("_time"), members.get("_watermark")]
        else:
            # The key alone may have a comma, in quotes.
            parts = line.rstrip("\n").replace('"c,d"', "c;d").split(",")
            fields = [parts[1].replace(";", ","), parts[2], parts[4], parts[5]]
        key, value, time, mark = fields
        rows.append((line, (round(float(time) * 1000) if time not in ("", None) else None,
                            round(float(mark) * 1000) if mark not in ("", None) else None,
                            key, int(value) if value not in ("", None) else None)))
    return rows


def law_filter(tap):
    first, second = Script(), Script()
    streams = []
    for seed in range(SEED, SEED + FILTER_STREAMS):
        rng = random.Random(seed)
        is_json = rng.random() < 0.5
        size = rng.choice([1000, 2000, 5000])
        slide = size // rng.choice([1, 1, 2])
        stamp = ["wm-stamp", "-q", "-t", "time", "-w", f"{rng.choice([0, 1, 5])}s", "--output-time", "s", "--trigger",
                 random_trigger(rng)]
        write(FOLDER / f"in{seed}", random_rows(rng, True), is_json)
        first.add(stamp, f"in{seed}", f"stamped{seed}")
        streams.append((seed, is_json, size, slide, rng, stamp))
    first.run()
    kept = {}
    for seed, is_json, size, slide, rng, _ in streams:
        text = (FOLDER / f"stamped{seed}").read_text(encoding="ascii")
        rows = read_stamped(text, is_json)
        drop = rng.choice([0.0, 0.2, 0.7])
        keeps = [rng.random() >= drop for _ in rows]
        survivors = [row for row, keep in zip(rows, keeps) if keep]
        header = "" if is_json else text.split("\n")[0] + "\n"
        (FOLDER / f"kept{seed}").write_text(header + "".join(line for line, _ in survivors), encoding="ascii")
        kept[seed] = (rows, keeps, survivors)
        second.add(["wm-window", "-q", "--sliding", f"{size}ms,{slide}ms", "-g", "k", "-a", "count,sum:v", "-o", "csv",
                    "--output-time", "s", "--report", f"filtered{seed}"], f"kept{seed}", f"windows{seed}")
    second.run()
    faults, late_count, dropped_count = [], 0, 0
    for seed, is_json, size, slide, _, stamp in streams:
        rows, keeps, survivors = kept[seed]
        lines, late = model([said for _, said in survivors], size, slide)
        _, late_of_all = model([said for _, said in rows], size, slide)
        places = [place for place, keep in enumerate(keeps) if keep]
        late_count += len(late)
        dropped_count += len(rows) - len(survivors)
        try:
            got, report = said(f"windows{seed}", False).decode(), report_of(f"filtered{seed}")
        except (OSError, ValueError) as error:
            faults.append(f"seed {seed}: {error}")
            continue
        want = "window_start,window_end,k,count,v_sum\n" + "".join(lines)
        if got != want or report["rows_late"] != len(late):
            faults.append(f"seed {seed}: {' '.join(stamp)}: {report['rows_late']} late, want {len(late)}\n"
                          f"{got}want:\n{want}")
        if not {places[position] for position in late} <= set(late_of_all):
            faults.append(f"seed {seed}: a row is late that was not before rows were taken out")
    judged(tap, "filter", FILTER_STREAMS, faults,
           f"{dropped_count} rows taken out, {late_count} of the others late: as the model")
    tap.ok(late_count > 300 and dropped_count > 1000, "filter: these are a test of something", late_count,
           dropped_count)


LAWS = {"pipe": law_pipe, "batches": law_batches, "filter": law_filter}


def main():
    global FOLDER
    tap = harness.Tap()
    wanted = [name for name in sys.argv[1:] if name in LAWS] or list(LAWS)
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="wm-stamp-") as folder:
            FOLDER = pathlib.Path(folder)
            try:
                LAWS[name](tap)
            except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                tap.ok(False, f"{name}: {type(error).__name__}", error)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
