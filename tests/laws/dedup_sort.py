#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of wm-dedup and wm-sort: on random streams with fixed seeds, judged by plain loops in here.

dedup      what passes, what is a duplicate, what is late, and the keys that are left, with every memory and trigger
sort       a stable sort of the rows that are in time: one FILE, several, in order already (-m), in batches
restated   a stamped stream, sorted: each row has the watermark from before it was let go, punctuation the new one
pipe       wm-X -w D writes what wm-stamp -w D | wm-X does, without the stamps
windows    a sorted stamped stream has no late rows for wm-window, and the windows of the rows that were in time

Names of laws on the command line run those alone; WM_SEED starts the seeds elsewhere.
"""

import json
import os
import pathlib
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
STREAMS = 300
PIPES = 150
CSV_KEYS = ["", "a", "b", "ab", "1", "01", '"a"', '"x,y"']
JSON_KEYS = ["null", '""', '"a"', '"b"', "1", '"1"', "1.0", None]  # None: the member is missing
COLUMNS = ["ts", "key", "id", "batch"]
FOLDER = pathlib.Path()  # of the running stream's files; set by use()


class Row:
    def __init__(self, time_us, key, ident, batch, is_json):
        self.time_us = time_us  # None: it has none
        self.key = key
        self.batch = batch
        time = "" if time_us is None else seconds(time_us)
        if not is_json:
            self.line = f"{time},{key},{ident},{batch}\n"
        else:
            members = [f'"ts":{time or "null"}', f'"id":{ident}', f'"batch":{batch}']
            if key is not None:
                members.insert(1, f'"key": {key}')
            self.line = "{" + ",".join(members) + "}\n"

    def identity(self):
        """What tells keys apart: CSV has texts, null and a missing member are the same."""
        return "null" if self.key is None else self.key.strip('"') if self.line[0] != "{" else self.key


def seconds(us):
    sign = "-" if us < 0 else ""
    text = f"{abs(us) // 1_000_000}.{abs(us) % 1_000_000:06d}".rstrip("0").rstrip(".")
    return sign + text


def make_begin(rng):
    """The unit of a stream's times, and its first one."""
    step = rng.choice([1, 1000, 1000, 1_000_000])
    return step, rng.choice([0, 50_000, -40, 1_700_000_000]) * step


def make_rows(rng, is_json, is_ordered=False, bad=0.05, begin=None):
    """Rows about in order of time, some far behind; a few without a time."""
    step, now = begin or make_begin(rng)
    keys = rng.sample(JSON_KEYS if is_json else CSV_KEYS, rng.randint(1, 6))
    rows, batch = [], 0
    for ident in range(rng.randrange(1, 70)):
        now += rng.choice([0, 0, 1, 2, 5, 30]) * step
        behind = 0 if is_ordered and rng.random() < 0.97 else rng.choice([0, 0, 0, 1, 4, 15, 60]) * step
        batch += rng.random() < 0.2
        time = None if ident > 0 and rng.random() < bad else now - behind
        # A column that no record has is an error.
        key = rng.choice(keys) if ident > 0 else '"a"'
        rows.append(Row(time, key, ident, batch, is_json))
    return rows, step


def make_delay(rng, step):
    return rng.choice([0, 1, 3, 10, 40]) * step + rng.choice([0, 0, 300])


def header(is_json, names=COLUMNS):
    return "" if is_json else ",".join(names) + "\n"


def text_of(rows, is_json):
    return header(is_json) + "".join(row.line for row in rows)


def write(name, text):
    (FOLDER / name).write_text(text, encoding="utf-8")
    return name


def read(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def run(args, stdin=b"", files=()):
    """Standard output and final report of a run that must end well; side files late, duplicates, rejects."""
    sides = {"--late": "late", "--rejects": "rejects", "--report": "report"}
    if args[0] == "wm-dedup":
        sides["--duplicates"] = "duplicates"
    if "--pass-late" in args or args[0] == "wm-stamp":
        del sides["--late"]
    for name in ("late", "rejects", "report", "duplicates"):
        (FOLDER / name).unlink(missing_ok=True)
    command = [*args, "-q", *[word for side in sides.items() for word in side], *files]
    result = harness.run(command, cwd=FOLDER, stdin=stdin)
    if result.returncode != 0 or result.stderr:
        raise ValueError(f"{' '.join(command)}: status {result.returncode}\n{result.stderr.decode()}")
    report = harness.read_report(FOLDER / "report")[1]
    if fault := harness.ledger_fault(report):
        raise ValueError(f"{' '.join(command)}: {fault}")
    return result.stdout.decode(), report


def floor_ms(us):
    return us // 1000 * 1000


def batches_of(rows, trigger):
    """The batches of a trigger; "each" has none."""
    if trigger == "eof":
        return [rows]
    if trigger.endswith("rows"):
        size = int(trigger.removesuffix("rows"))
        return [rows[at:at + size] for at in range(0, len(rows), size)]
    if trigger == "column:batch":
        return [[row for row in rows if row.batch == n] for n in sorted({row.batch for row in rows})]
    period = int(trigger.removeprefix("event:").removesuffix("us"))
    batches, batch, multiple, highest = [], [], None, None
    for row in rows:
        batch.append(row)
        if row.time_us is None:
            continue
        highest = row.time_us if highest is None else max(highest, row.time_us)
        if multiple is not None and highest // period > multiple:
            batches.append(batch)
            batch = []
        multiple = highest // period
    return batches + [batch]


def judged(rows, trigger, delay, is_spark=False):
    """Rows with the watermark by which each is judged; and the last one."""
    watermark = 0 if is_spark else None
    highest = None
    pairs = []
    for batch in [[row] for row in rows] if trigger == "each" else batches_of(rows, trigger):
        times = [row.time_us for row in batch if row.time_us is not None]
        highest = max(times + ([] if highest is None else [highest]), default=None)
        moved = watermark
        if highest is not None and delay is not None:
            moved = floor_ms(highest - (delay // 1000 * 1000 if is_spark else delay))
            moved = moved if watermark is None else max(moved, watermark)
        pairs += [(row, moved if trigger == "each" else watermark) for row in batch]
        watermark = moved
    return pairs, watermark


def make_trigger(rng, step):
    return rng.choice(["each", "each", "eof", "column:batch", f"{rng.choice([1, 2, 7])}rows",
                       f"event:{rng.choice([1, 10, 35]) * max(step, 1)}us"])


def ledger_fault(report, **want):
    for name, value in want.items():
        if report[name] != value:
            return f"{name} is {report[name]}, expected {value}"
    return None


def compare(what, got, want):
    if got == want:
        return None
    return f"{what}\ngot\n{got}want\n{want}"


# Dedup.

def dedup_model(pairs, last, memory, span, is_spark):
    """Verdicts (first, duplicate, late, rejected) and how many keys are left."""
    gone = {}  # key -> watermark at which it is forgotten; None: never
    verdicts = []

    def is_forgotten(key, watermark):
        return key not in gone or (gone[key] is not None and watermark is not None and watermark >= gone[key])

    for row, watermark in pairs:
        if row.time_us is None:
            verdicts.append("rejected")
        elif watermark is not None and row.time_us < watermark + is_spark:
            verdicts.append("late")
        else:
            key = (row.identity(), row.time_us if memory == "--with-time" else None)
            if is_forgotten(key, watermark):
                gone[key] = {"--with-time": row.time_us + (not is_spark), "--forever": None,
                             "--within-watermark": row.time_us + span}[memory]
                verdicts.append("first")
            else:
                verdicts.append("duplicate")
    return verdicts, sum(not is_forgotten(key, last) for key in gone)


def dedup_stream(seed):
    rng = random.Random(seed)
    is_json = rng.random() < 0.4
    rows, step = make_rows(rng, is_json)
    trigger = make_trigger(rng, step)
    is_spark = rng.random() < 0.15
    delay = None if rng.random() < 0.1 and not is_spark else make_delay(rng, step)
    memory = rng.choice(["--within-watermark"] * 3 + ["--with-time", "--forever"])
    span = delay
    args = ["wm-dedup", "-t", "ts", "--time-format", "s", "-k", "key", "--trigger", trigger, memory]
    if delay is not None:
        args += ["-w", f"{delay}us"]
    if memory == "--within-watermark" and (not delay or rng.random() < 0.5):
        span = rng.randint(1, 50) * step
        args += ["--remember", f"{span}us"]
    if is_spark:
        args += ["--compat", "spark"]
        span = span // 1000 * 1000
    if delay is None:
        span = 1 << 62
    passes_late = rng.random() < 0.2
    if passes_late:
        args.append("--pass-late")
    pairs, last = judged(rows, trigger, delay, is_spark)
    verdicts, keys_count = dedup_model(pairs, last, memory, span, is_spark)

    stdout, report = run(args, text_of(rows, is_json).encode())
    shown = f"WM_SEED={seed}: {' '.join(args)}\n"
    of = {verdict: [row for row, v in zip(rows, verdicts) if v == verdict]
          for verdict in ("first", "duplicate", "late", "rejected")}
    if passes_late:
        want = header(is_json, [*COLUMNS, "_late"])
        for row, verdict in zip(rows, verdicts):
            if verdict in ("first", "late"):
                late = int(verdict == "late")
                want += f'{row.line[:-2]},"_late":{late}}}\n' if is_json else f"{row.line[:-1]},{late}\n"
    else:
        want = text_of(of["first"], is_json)
    fault = compare("what passes", stdout, want) or compare("duplicates", read("duplicates"),
                                                            text_of(of["duplicate"], is_json))
    if not passes_late:
        fault = fault or compare("late rows", read("late"), text_of(of["late"], is_json))
    fault = fault or ledger_fault(report, rows_in=len(rows), rows_used=len(of["first"]), rows_late=len(of["late"]),
                                  rows_duplicate=len(of["duplicate"]), rows_rejected=len(of["rejected"]))
    if fault is None:
        state = report["stateOperators"][0]
        fault = ledger_fault(state, numRowsTotal=keys_count, numRowsUpdated=len(of["first"]),
                             numRowsRemoved=len(of["first"]) - keys_count)
    return fault and shown + fault


# Sort.

def sorted_rows(numbered):
    """A stable sort of (row, FILE) by time, ties by FILE."""
    return [row for row, _ in sorted(numbered, key=lambda pair: (pair[0].time_us, pair[1]))]


def merge_model(files, delay):
    """Of FILEs side by side, the one furthest behind read next: rows in time with their FILE, and late ones. delay None: -m."""
    watermarks, places, ended = [None] * len(files), [0] * len(files), [False] * len(files)
    combined, used, late = None, [], []
    while not all(ended):
        source = min((i for i in range(len(files)) if not ended[i]),
                     key=lambda i: (watermarks[i] is not None, watermarks[i] or 0, i))
        is_end = places[source] == len(files[source])
        row = None if is_end else files[source][places[source]]
        ended[source] = is_end
        places[source] += 1
        if row and row.time_us is not None:
            moved = row.time_us if delay is None else floor_ms(row.time_us - delay)
            watermarks[source] = moved if watermarks[source] is None else max(moved, watermarks[source])
        least = [w for w, end in zip(watermarks, ended) if not end]
        if least and None not in least and (combined is None or min(least) > combined):
            combined = min(least)
        if row and row.time_us is not None:
            is_late = combined is not None and row.time_us < combined
            (late if is_late else used).append((row, source))
    return used, late


def sort_stream(seed):
    rng = random.Random(seed)
    is_json = rng.random() < 0.3
    args = ["wm-sort", "-t", "ts", "--time-format", "s"]
    kind = rng.choice(["one", "one", "files", "files", "ordered", "no watermark"])
    step, now = make_begin(rng)
    files = [make_rows(rng, is_json, kind == "ordered", begin=(step, now + rng.choice([0, 0, 0, 20]) * step))[0]
             for _ in range(1 if kind == "one" else rng.randint(1, 4))]
    if kind == "one":
        delay, trigger = make_delay(rng, step), make_trigger(rng, step)
        args += ["-w", f"{delay}us", "--trigger", trigger]
        pairs, _ = judged(files[0], trigger, delay)
        timed = [(row, w) for row, w in pairs if row.time_us is not None]
        late = [(row, 0) for row, w in timed if w is not None and row.time_us < w]
        used = [(row, 0) for row, w in timed if w is None or row.time_us >= w]
    elif kind == "no watermark":
        used = [(row, number) for number, rows in enumerate(files) for row in rows if row.time_us is not None]
        late = []
    else:
        delay = None if kind == "ordered" else make_delay(rng, step)
        args += ["-m"] if delay is None else ["-w", f"{delay}us"]
        used, late = merge_model(files, delay)
    names = [write(f"in{number}", text_of(rows, is_json)) for number, rows in enumerate(files)]
    stdout, report = run(args, files=names)
    shown = f"WM_SEED={seed}: {' '.join(args + names)}\n"
    want = sorted_rows(used)
    fault = compare("output", stdout, text_of(want, is_json))
    fault = fault or compare("late rows", read("late"), text_of([row for row, _ in late], is_json))
    fault = fault or ledger_fault(report, rows_in=sum(map(len, files)), rows_used=len(used), rows_late=len(late),
                                  rows_out=len(used), windows_open=0)
    return fault and shown + fault


# A stamped stream, sorted.

def stamped_line(row, watermark, is_json):
    text = "" if watermark is None else harness.print_instant(watermark)
    if is_json:
        return (f'{row.line[:-2]},"_time":"{harness.print_instant(row.time_us)}",'
                f'"_watermark":{json.dumps(text or None)}}}\n')
    return f"{row.line[:-1]},{harness.print_instant(row.time_us)},{text}\n"


def lone_line(watermark, is_json):
    text = harness.print_instant(watermark)
    return f'{{"_watermark":"{text}"}}\n' if is_json else "," * (len(COLUMNS) + 1) + text + "\n"


def restated_stream(seed):
    rng = random.Random(seed)
    is_json = rng.random() < 0.3
    rows, step = make_rows(rng, is_json, bad=0)
    pairs, _ = judged(rows, "each", make_delay(rng, step))
    stamped = header(is_json, [*COLUMNS, "_time", "_watermark"])
    want, late, held, watermark = stamped, [], [], None

    def let_go(moved, is_punctuation):
        nonlocal held, want, watermark
        leave = sorted((row for row in held if row.time_us <= moved), key=lambda row: row.time_us)
        held = [row for row in held if row.time_us > moved]
        want += "".join(stamped_line(row, watermark, is_json) for row in leave)
        if leave or is_punctuation:
            want += lone_line(moved, is_json)
        watermark = moved

    for row, told in pairs:
        if rng.random() < 0.3:
            told = None  # says nothing
        if rng.random() < 0.1:
            ahead = (watermark or row.time_us) // 1000 * 1000 + rng.choice([-1000, 0, 1000])
            stamped += lone_line(ahead, is_json)
            let_go(ahead if watermark is None else max(ahead, watermark), True)
        stamped += stamped_line(row, told, is_json)
        if told is not None and (watermark is None or told > watermark):
            let_go(told, False)
        if watermark is not None and row.time_us < watermark:
            late.append(row)
            continue
        held.append(row)
        if row.time_us == watermark:
            let_go(watermark, False)
    want += "".join(stamped_line(row, watermark, is_json) for row in sorted(held, key=lambda row: row.time_us))
    stdout, report = run(["wm-sort"], stamped.encode())
    shown = f"WM_SEED={seed}: wm-sort\n{stamped}"
    fault = compare("output", stdout, want)
    late_text = header(is_json, [*COLUMNS, "_time", "_watermark"])
    late_text += "".join(stamped_line(row, None, is_json) for row in late)
    fault = fault or compare("late rows", read("late"), late_text)
    return (fault or ledger_fault(report, rows_late=len(late))) and shown + str(fault)


# Along a pipe.

def unstamped(text, is_json):
    """Without stamps and punctuation."""
    lines = []
    for line in text.splitlines():
        if is_json:
            if not line.startswith('{"_watermark"'):
                begin = line.index(',"_time"')
                end = line.index('"_watermark":', begin)
                end = min(at for at in (line.find(",", end), line.find("}", end)) if at >= 0)
                lines.append(line[:begin] + line[end:])
        else:
            fields = line.replace('"x,y"', "\0").split(",")
            del fields[len(COLUMNS):len(COLUMNS) + 2]
            if any(fields):
                lines.append(",".join(fields).replace("\0", '"x,y"'))
    return "".join(line + "\n" for line in lines)


def pipe_stream(seed):
    rng = random.Random(seed)
    is_json = rng.random() < 0.4
    rows, step = make_rows(rng, is_json)
    trigger, delay = make_trigger(rng, step), make_delay(rng, step)
    reckoned = ["-t", "ts", "--time-format", "s", "-w", f"{delay}us", "--trigger", trigger]
    if rng.random() < 0.5:
        tool = ["wm-sort"]
    else:
        tool = ["wm-dedup", *rng.choice([["--with-time"], ["--forever"], ["--remember", f"{rng.randint(1, 50) * step}us"]])]
        if rng.random() < 0.7:
            tool += ["-k", "key"]
        if rng.random() < 0.3:
            tool.append("--pass-late")
    text = text_of(rows, is_json)
    if "-k" not in tool:  # whole records: let some be the same
        text = header(is_json) + "".join(row.line * rng.choice([1, 1, 2]) for row in rows)
    direct, report = run([*tool, *reckoned], text.encode())
    sides = {name: read(name) for name in ("late", "duplicates") if (FOLDER / name).exists()}
    stamped, _ = run(["wm-stamp", *reckoned], text.encode())
    piped, piped_report = run(tool, stamped.encode())
    shown = f"WM_SEED={seed}: {' '.join(tool + reckoned)}\n"
    fault = compare("output", unstamped(piped, is_json), direct)
    for name, want in sides.items():
        fault = fault or compare(name, unstamped(read(name), is_json), want)
    fault = fault or ledger_fault(piped_report, **{name: report[name]
                                                   for name in ("rows_late", "rows_duplicate", "rows_used")})
    return fault and shown + fault


def windows_stream(seed):
    rng = random.Random(seed)
    rows, step = make_rows(rng, False)
    trigger, delay = make_trigger(rng, step), make_delay(rng, step)
    reckoned = ["-t", "ts", "--time-format", "s", "-w", f"{delay}us", "--trigger", trigger]
    pairs, _ = judged(rows, trigger, delay)
    in_time = [row for row, w in pairs if row.time_us is not None and (w is None or row.time_us >= w)]
    stamped, _ = run(["wm-stamp", *reckoned], text_of(rows, False).encode())
    ordered, _ = run(["wm-sort"], stamped.encode())
    window = ["wm-window", "--tumbling", f"{rng.choice([1, 7, 20]) * max(step, 1000)}us", "-g", "key",
              "-a", "count,first:id,last:id,max:id"]
    got, report = run(window, ordered.encode())
    want, _ = run([*window, "-t", "ts", "--time-format", "s"], text_of(in_time, False).encode())
    fault = compare("windows", got, want) or ledger_fault(report, rows_late=0, rows_used=len(in_time))
    return fault and f"WM_SEED={seed}: {' '.join(reckoned)}\n" + fault


LAWS = {
    "dedup": (dedup_stream, STREAMS, "random streams pass, repeat and forget as the model"),
    "sort": (sort_stream, STREAMS, "random streams are sorted, and late, as the model"),
    "restated": (restated_stream, STREAMS, "stamped streams are sorted with the watermarks of the model"),
    "pipe": (pipe_stream, PIPES, "streams give the same with -w and behind wm-stamp"),
    "windows": (windows_stream, PIPES, "sorted stamped streams give the windows of the rows in time"),
}


def use(folder):
    global FOLDER
    FOLDER = folder


if __name__ == "__main__":
    sys.exit(harness.run_streams(LAWS, SEED, use))
