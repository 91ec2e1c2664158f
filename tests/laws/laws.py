#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws that hold for every input: random streams with fixed seeds, judged by the model in model.py.

model      output, late rows and ledger are what the model says, in every mode and with every trigger
shuffle    rows shuffled within the delay give the windows that a run without watermark gives, and none is late
chunking   the sizes of reads and of writes into a pipe change no byte of any output
ledger     rows_in is the sum of its classes, in every run of this program
watermark  the watermark of the progress objects never goes back
example    the worked example of streaming guides, row by row

Names of laws on the command line run those alone; WM_SEED starts the seeds elsewhere.
"""

import csv
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
import model

SEED = int(os.environ.get("WM_SEED", "1"))
MODEL_STREAMS = 300
SHUFFLED_STREAMS = 60
CHUNKED_STREAMS = 4

FOLDER = pathlib.Path()  # of the running stream's files; set in main()
ledger_faults = []
watermark_faults = []
runs_count = 0
watermarks_count = 0


def duration(us):
    return f"{us}us" if us % 1000 else f"{us // 1000}ms"


def run(args, files=(), stdin=b"", env=None):
    """Run wm-window with a report, and hold the report to the laws that every run must obey."""
    global runs_count, watermarks_count
    runs_count += 1
    for name in ("report.ndjson", "late", "rejects.ndjson"):
        (FOLDER / name).unlink(missing_ok=True)
    command = ["wm-window", *args, "--late", "late", "--rejects", "rejects.ndjson", "--report", "report.ndjson"]
    result = harness.run([*command, *files], cwd=FOLDER, stdin=stdin, env=env)
    shown = " ".join(command + list(files))
    if result.returncode != 0:
        raise ValueError(f"exit status {result.returncode} of {shown}\n{result.stderr.decode(errors='replace')}")
    progress, report = harness.read_report(FOLDER / "report.ndjson")
    fault = harness.ledger_fault(report)
    if fault:
        ledger_faults.append(f"{shown}: {fault}")
    before = None
    for entry in progress:
        text = entry["eventTime"].get("watermark")
        if text is None and before is None:
            continue
        watermarks_count += 1
        now = harness.parse_instant(text or "")
        if now is None or (before is not None and now < before):
            watermark_faults.append(f"{shown}: batch {entry['batchId']}: {text} after {before}")
        before = now
    return result.stdout, report, progress


# Random streams.

KEYS = [b"", b"a", b"b", b"ab", b"b,1", b'q"q', b"l\nf", "é".encode()]
TEXTS = ["1", "1.0", "-3", "x", "X", "10", "9", "0.5", "-0.25", "zz", "1e2"]


def random_value(rng):
    kind = rng.randrange(6)
    if kind == 0:
        return None
    if kind == 1:
        return str(rng.randrange(-1000, 1000))
    if kind == 2:
        return f"{rng.randrange(-99, 99)}.{rng.randrange(100):02d}"
    if kind == 3:
        return rng.choice(["0", "-0", "0.1", "0.2", "0.30", "007", "1e3", "25e-2", "9223372036854775807"])
    return str(rng.randrange(20))


def random_rows(rng, count, span_us, step_us, is_json, keys_count):
    """Rows about in order, with some far behind and some ahead."""
    base = rng.choice([0, 1_704_110_400_000_000, -3_600_000_000]) + rng.randrange(span_us)
    pool = rng.sample(KEYS, rng.randint(1, 4)) + ([None] if is_json else [])
    rows = []
    for i in range(count):
        drift = rng.choice([0, 0, rng.randrange(-span_us // 4, span_us // 8), rng.randrange(-span_us, 1)])
        time_us = (base + i * span_us // count + drift) // step_us * step_us
        keys = tuple(rng.choice(pool) for _ in range(keys_count))
        rows.append(model.Row(time_us, keys, {"v": random_value(rng), "s": rng.choice([None, *TEXTS])}))
    return rows


def as_csv(rows, batch_numbers, keys_count):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *[f"k{i}" for i in range(keys_count)], "v", "s", "batch"])
    for row, batch in zip(rows, batch_numbers):
        keys = [key.decode() for key in row.keys]
        writer.writerow([harness.print_instant(row.time_us), *keys, row.values["v"], row.values["s"], batch])
    return text.getvalue().encode()


def as_ndjson(rows, batch_numbers, in_ms):
    lines = []
    for row, batch in zip(rows, batch_numbers):
        members = {"time": row.time_us // 1000 if in_ms else harness.print_instant(row.time_us)}
        members |= {f"k{i}": None if key is None else key.decode() for i, key in enumerate(row.keys)}
        text = json.dumps(members)[:-1]
        number = row.values["v"]
        # Numbers with leading zeros are no JSON: they come as strings, which are numbers all the same.
        if number is not None and (number.lstrip("-")[:1] != "0" or number in ("0", "-0", "0.1", "0.2", "0.30")):
            text += f', "v": {number}'
        else:
            text += f', "v": {json.dumps(number)}'
        lines.append(text + f', "s": {json.dumps(row.values["s"])}, "batch": {batch}}}\n')
    return "".join(lines).encode()


def random_query(rng):
    step_us = rng.choice([1, 1000, 1000, 100_000])
    slide_us = rng.randint(1, 40) * max(step_us, 1000)
    # Ends between milliseconds, which a watermark is never at.
    if step_us < 1000:
        slide_us += rng.choice([0, 1, 500, 999])
    size_us = slide_us if rng.random() < 0.4 else slide_us * rng.randint(1, 4) + rng.choice([0, slide_us // 2, 1000])
    wanted = rng.sample([("count", None), ("count", "v"), ("sum", "v"), ("avg", "v"), ("min", "v"), ("max", "v"),
                         ("min", "s"), ("max", "s"), ("first", "s"), ("last", "v"), ("first", "v"), ("last", "s"),
                         ("var", "v"), ("stddev", "v"), ("rate", None)], rng.randint(1, 7))
    query = model.Query(size_us, slide_us, wanted)
    query.offset_us = rng.choice([0, 0, rng.randrange(-slide_us + 1, slide_us)])
    query.mode = rng.choice(["append", "append", "update", "complete"])
    if rng.random() < 0.85:
        query.delay_us = rng.choice([0, 1000, rng.randrange(3 * size_us)])
    query.is_spark = rng.random() < 0.15
    return query, step_us


def options(query, trigger, keys_count):
    terms = [f"a{i}={function}" + (f":{column}" if column else "")
             for i, (function, column) in enumerate(query.aggregates)]
    args = ["-t", "time", "--mode", query.mode, "--trigger", trigger, "--eof", query.eof, "-a", ",".join(terms), "-q"]
    if query.slide_us == query.size_us:
        args += ["--tumbling", duration(query.size_us)]
    else:
        args += ["--sliding", f"{duration(query.size_us)},{duration(query.slide_us)}"]
    if query.offset_us:
        args += ["--offset", duration(query.offset_us)]
    if query.delay_us is not None:
        args += ["-w", duration(query.delay_us)]
    if query.is_spark:
        args += ["--compat", "spark"]
    if keys_count:
        args += ["-g", ",".join(f"k{i}" for i in range(keys_count))]
    return args


def same_cell(got, want):
    if want is None:
        return got == ""
    if isinstance(want, str):
        return got == want
    try:
        number = float(got)
    except ValueError:
        return False
    return abs(number - want) <= 1e-12 * abs(want) or abs(number - want) < 1e-300


def row_fault(got, want):
    """None if a row of the output is the model's (start, end, keys, cells)."""
    start, end, keys, cells = want
    exact = [harness.print_instant(start), harness.print_instant(end), *[(key or b"").decode() for key in keys]]
    if got[: len(exact)] == exact and len(got) == len(exact) + len(cells):
        if all(same_cell(g, w) for g, w in zip(got[len(exact):], cells)):
            return None
    return f"got  {got}\nwant {exact + list(cells)}"


def output_fault(stdout, rows):
    got = list(csv.reader(io.StringIO(stdout.decode(), newline="")))[1:]
    for line, want in zip(got, rows):
        fault = row_fault(line, want)
        if fault:
            return fault
    return None if len(got) == len(rows) else f"{len(got)} rows written, {len(rows)} expected"


def model_stream(seed):
    """One random stream: None, or how the tool departs from the model."""
    rng = random.Random(seed)
    query, step_us = random_query(rng)
    is_json = rng.random() < 0.4
    keys_count = rng.choice([0, 1, 1, 2, 3])
    rows = random_rows(rng, rng.randrange(1, 60), query.size_us * rng.randint(2, 8), step_us, is_json, keys_count)
    # Below 1e11 a number would be seconds.
    in_ms = step_us >= 1000 and min(row.time_us for row in rows) >= 10**14
    trigger = rng.choice(["each", "each", "file", "column:batch", "eof"])
    query.is_each = trigger == "each"
    if query.delay_us is not None:
        query.eof = rng.choice([model.FLUSH, model.FLUSH, model.TRIGGER, model.HOLD])
    if query.eof == model.HOLD and trigger == "column:batch":
        query.eof = model.TRIGGER  # held with its rows unjudged: the ledger of later runs, with a checkpoint

    numbers, number = [], 0
    for _ in rows:
        numbers.append(number)
        number += rng.random() < 0.2
    groups = [[row for row, n in zip(rows, numbers) if n == i] for i in range(numbers[-1] + 1)]
    batches = {"each": [rows], "eof": [rows], "file": groups, "column:batch": groups}[trigger]
    expected = model.answer(query, batches)

    def write(part, part_numbers):
        return as_ndjson(part, part_numbers, in_ms) if is_json else as_csv(part, part_numbers, keys_count)

    files = []
    pieces = [(rows, numbers)] if trigger != "file" else [(group, [i] * len(group)) for i, group in enumerate(groups)]
    for part, part_numbers in pieces:
        files.append(f"in{len(files)}")
        (FOLDER / files[-1]).write_bytes(write(part, part_numbers))
    args = options(query, trigger, keys_count) + ["-o", "csv"]
    stdout, report, progress = run(args, files)
    shown = f"seed {seed}: wm-window {' '.join(args)}\n"

    fault = output_fault(stdout, [row for batch in expected.batches for row in batch])
    if fault:
        return shown + fault
    ledger = {"rows_in": len(rows), "rows_late": len(expected.late), "rows_used": expected.rows_used,
              "rows_partly_late": expected.rows_partly_late, "windows_missed": expected.windows_missed}
    for name, want in ledger.items():
        if report[name] != want:
            return shown + f"{name} is {report[name]}, expected {want}"
    want = write([rows[i] for i in expected.late], [numbers[i] for i in expected.late])
    got = (FOLDER / "late").read_bytes()
    if got != want:
        return shown + f"late rows {got!r}\nexpected {want!r}"
    if not query.is_each:
        got = [entry["eventTime"].get("watermark") for entry in progress]
        want = [None if w is None else harness.print_instant(w) for w in expected.watermarks]
        if got != want:
            return shown + f"watermarks {got}\nexpected   {want}"
    return None


def law_model(tap):
    faults = [fault for seed in range(SEED, SEED + MODEL_STREAMS) if (fault := attempt(model_stream, seed))]
    tap.ok(not faults, f"model: {MODEL_STREAMS} random streams give what the model gives", *shown_faults(faults))


def shuffle_stream(seed):
    rng = random.Random(seed)
    query, step_us = random_query(rng)
    query.mode = "append"
    query.is_spark = False
    keys_count = rng.choice([0, 1, 2])
    rows = random_rows(rng, 40, query.size_us * 6, step_us, False, keys_count)
    # first and last break ties by arrival, which shuffling changes: one row a time.
    rows = list({row.time_us: row for row in rows}.values())
    query.delay_us = rng.randrange(1, 4 * query.size_us)
    query.is_each = True
    # A row is at most delay behind the highest before it if it is moved by less than that.
    rows.sort(key=lambda row: row.time_us)
    shuffled = sorted(rows, key=lambda row: row.time_us + rng.randrange(query.delay_us + 1))

    args = options(query, "each", keys_count)
    (FOLDER / "in.csv").write_bytes(as_csv(shuffled, [0] * len(rows), keys_count))
    with_watermark, report, _ = run(args, ["in.csv"])
    if report["rows_late"] or report["windows_missed"]:
        return f"seed {seed}: {report['rows_late']} late, {report['windows_missed']} windows missed: {' '.join(args)}"
    query.delay_us = None
    (FOLDER / "in.csv").write_bytes(as_csv(rows, [0] * len(rows), keys_count))
    without, _, _ = run(options(query, "each", keys_count), ["in.csv"])
    if with_watermark != without:
        return f"seed {seed}: {' '.join(args)}\nshuffled:\n{with_watermark.decode()}in order:\n{without.decode()}"
    return None


def law_shuffle(tap):
    faults = [fault for seed in range(SEED, SEED + SHUFFLED_STREAMS) if (fault := attempt(shuffle_stream, seed))]
    tap.ok(not faults, f"shuffle: {SHUFFLED_STREAMS} streams shuffled within the delay give the same windows",
           *shown_faults(faults))


# Read and write sizes.

def build_short_reads():
    library = FOLDER / "short_reads.so"
    source = harness.ROOT / "tests/fault/short_reads.c"
    command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


def chunked_input(rng, is_json):
    """A few thousand records of every awkward kind."""
    rows = random_rows(rng, 3000, 60_000_000, 1000, is_json, 1)
    data = as_ndjson(rows, [0] * len(rows), False) if is_json else as_csv(rows, [0] * len(rows), 1)
    lines = data.splitlines(keepends=True)
    for _ in range(150):
        at = rng.randrange(1, len(lines))
        # A quoted field may run over two lines: the line before must end its record, so an even count of quotes.
        if not is_json and b"".join(lines[:at]).count(b'"') % 2:
            continue
        lines.insert(at, rng.choice([b"\n", b"\r\n", b"nonsense\n", b'"open"x,1\n', b"\x00\n", b"{\n",
                                     b'{"time":NaN}\n', b"\xff\xfe,,,,,\n", b"   \n" if is_json else b",,\n"]))
    data = b"".join(lines)
    if rng.random() < 0.5:
        data = b"\xef\xbb\xbf" + data
    return data[:-1] if rng.random() < 0.5 else data


def through_pipe(args, data, rng):
    """The same as run() with the data written into a pipe in pieces of random size."""
    for name in ("late", "rejects.ndjson"):
        (FOLDER / name).unlink(missing_ok=True)
    command = [str(harness.BIN / "wm-window"), *args, "--late", "late", "--rejects", "rejects.ndjson"]
    with subprocess.Popen(command, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        def feed():
            at = 0
            while at < len(data):
                size = rng.choice([1, 2, 7, 64, 1000, 5000])
                os.write(process.stdin.fileno(), data[at:at + size])
                at += size
            process.stdin.close()

        feeder = threading.Thread(target=feed)
        feeder.start()
        stdout = process.stdout.read()
        feeder.join()
        if process.wait(harness.TIMEOUT_SECONDS) != 0:
            raise ValueError(f"exit status {process.returncode} of {' '.join(command)}")
    return stdout


def side_files():
    return (FOLDER / "late").read_bytes(), (FOLDER / "rejects.ndjson").read_bytes()


def chunking_stream(seed, library):
    rng = random.Random(seed)
    is_json = seed % 2 == 1
    data = chunked_input(rng, is_json)
    args = ["-i", "ndjson" if is_json else "csv", "-t", "time", "-w", "2s", "--sliding", "3s,2s", "-g", "k0",
            "-a", "count,sum:v,min:s,last:s", "-q"]
    stdout, report, _ = run(args, stdin=data)
    expected = (stdout, *side_files())
    if not (report["rows_late"] and report["rows_rejected"] and report["rows_used"]):
        return f"seed {seed}: late {report['rows_late']}, rejected {report['rows_rejected']}: a test of nothing"
    if (through_pipe(args, data, rng), *side_files()) != expected:
        return f"seed {seed}: other bytes through a pipe written in pieces"
    for reads in range(3):
        # The address sanitizer wants to be the first library; it works as the second.
        env = {"LD_PRELOAD": str(library), "WM_SHORT_READS_SEED": str(seed * 10 + reads),
               "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
        stdout, _, _ = run(args, stdin=data, env=env)
        if (stdout, *side_files()) != expected:
            return f"seed {seed}: other bytes with WM_SHORT_READS_SEED={seed * 10 + reads}"
    return None


def law_chunking(tap):
    library = build_short_reads()
    faults = [fault for seed in range(SEED, SEED + CHUNKED_STREAMS)
              if (fault := attempt(lambda s: chunking_stream(s, library), seed))]
    tap.ok(not faults, f"chunking: {CHUNKED_STREAMS} streams in random pieces give the same bytes",
           *shown_faults(faults))


# The worked example: delay 10 minutes, windows of 10 minutes every 5.

EXAMPLE = ["12:02,cat", "12:03,dog", "12:07,owl", "12:14,dog", "12:09,cat", "12:15,cat", "12:08,dog", "12:13,owl",
           "12:21,owl", "12:04,donkey", "12:17,owl"]


def example_rows():
    return [f"2024-01-01T{time}:00Z,{animal}" for time, animal in (line.split(",") for line in EXAMPLE)]


def example_run(args, batches):
    files = []
    for i, rows in enumerate(batches):
        files.append(f"in{i}.csv")
        (FOLDER / files[-1]).write_text("".join(f"{line}\n" for line in ["time,animal", *rows]), encoding="utf-8")
    common = ["-t", "time", "-w", "10m", "--sliding", "10m,5m", "-g", "animal"]
    stdout, report, progress = run([*common, *args], files)
    rows = [line.replace("2024-01-01T", "").replace(":00Z", "") for line in stdout.decode().splitlines()[1:]]
    return rows, report, progress


def law_example(tap):
    def check(name, got, want):
        tap.ok(got == want, f"example: {name}", f"got  {got}", f"want {want}")

    rows = example_rows()
    late_all = "time,animal\n" + rows[9] + "\n"
    by_1200 = ["12:00,12:10,cat,2", "12:00,12:10,dog,2", "12:00,12:10,owl,1"]
    for trigger in ("each", "file"):
        # One FILE a row: with trigger file the row that moves the watermark is judged by the one before it.
        batches = [[row] for row in rows] if trigger == "file" else [rows]
        written, report, progress = example_run(["--trigger", trigger, "--eof", "trigger"], batches)
        check(f"{trigger}: 12:00-12:10 is written once, with the cat of 12:09 and the dog of 12:08",
              [row for row in written if row.startswith("12:00,")], by_1200)
        check(f"{trigger}: nothing else but 11:55-12:05 is complete at watermark 12:11",
              written, ["11:55,12:05,cat,1", "11:55,12:05,dog,1", *by_1200])
        check(f"{trigger}: the donkey of 12:04 is late, and nothing else",
              (FOLDER / "late").read_text(encoding="utf-8"), late_all)
        check(f"{trigger}: one late row that missed two windows",
              (report["rows_late"], report["windows_missed"]), (1, 2))
        if trigger == "file":
            marks = [entry["eventTime"]["watermark"] for entry in progress]
            check("file: the dog of 12:14 moves the watermark to 12:04", (marks[4], marks[5]),
                  ("2024-01-01T12:04:00Z", "2024-01-01T12:04:00Z"))
            check("file: the owl of 12:21 moves it to 12:11", marks[9], "2024-01-01T12:11:00Z")
            sizes = [entry["sink"]["numOutputRows"] for entry in progress]
            check("file: 12:00-12:10 is written by the batch of the owl of 12:21",
                  sizes, [0, 0, 0, 0, 0, 2, 0, 0, 3, 0, 0])
        written, _, _ = example_run(["--trigger", trigger], batches)
        check(f"{trigger}: the cat of 12:09 counts in 12:05-12:15 too",
              [row for row in written if row.startswith("12:05,12:15,cat")], ["12:05,12:15,cat,1"])


def attempt(law, seed):
    try:
        return law(seed)
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        return f"seed {seed}: {type(error).__name__}: {error}"


def shown_faults(faults):
    return [f"{len(faults)} failed; the first three:", *faults[:3]]


LAWS = {"model": law_model, "shuffle": law_shuffle, "chunking": law_chunking, "example": law_example}


def main():
    global FOLDER
    tap = harness.Tap()
    wanted = [name for name in sys.argv[1:] if name in LAWS] or list(LAWS)
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = pathlib.Path(folder)
        for name in wanted:
            try:
                LAWS[name](tap)
            except (OSError, ValueError, KeyError, IndexError, subprocess.SubprocessError) as error:
                tap.ok(False, f"{name}: {type(error).__name__}", error)
    tap.ok(not ledger_faults, f"ledger: it closes in all {runs_count} runs", *shown_faults(ledger_faults))
    tap.ok(not watermark_faults and watermarks_count > 0, f"watermark: none of {watermarks_count} goes back",
           *shown_faults(watermark_faults))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
