#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of inputs and guards, each against a model of a few lines that works everything out row by row.

merge     several FILEs side by side: the late rows are those of a model with one watermark a FILE
order     --order time gives what naming the FILEs in that order gives
guard     clocks that are ahead in a minority of the rows make no good row late; a real gap goes on
ahead     --max-ahead rejects exactly the rows too far ahead of their arrival
triggers  batches by rows and by event time are those of the model
"""

import pathlib
import random
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

EARTHQUAKES = harness.ROOT / "tests/data/earthquakes.csv"
SIZE = 10  # of the tumbling windows, in seconds


def window_end(time, size=SIZE):
    return (time // size + 1) * size


def write(folder, name, rows):
    """A CSV of (time, id) rows."""
    (folder / name).write_text("ts,id\n" + "".join(f"{time},{ident}\n" for time, ident in rows))
    return name


def window(folder, *arguments):
    result = harness.run(["wm-window", "-q", "-t", "ts", "--time-format", "s", "--tumbling", f"{SIZE}s", "--late", "late.csv", "--overwrite",
                          "--report", "report", *arguments], cwd=folder)
    _, report = harness.read_report(folder / "report")
    fault = harness.ledger_fault(report)
    if fault:
        raise ValueError(fault)
    late = [line.split(",")[-1] for line in (folder / "late.csv").read_text().splitlines()[1:]]
    return result, late, report


# Side by side: the FILE furthest behind is read next; the watermark is the least over FILEs that have not ended.

def merge_model(files, delay, size=SIZE):
    watermarks = [None] * len(files)
    places = [0] * len(files)
    ended = [False] * len(files)
    combined = None
    late = []

    def rise():
        nonlocal combined
        least = [w for w, end in zip(watermarks, ended) if not end]
        if least and None not in least and (combined is None or min(least) > combined):
            combined = min(least)

    while not all(ended):
        source = min((i for i in range(len(files)) if not ended[i]),
                     key=lambda i: (watermarks[i] is not None, watermarks[i] or 0, i))
        if places[source] == len(files[source]):
            ended[source] = True
            rise()
            continue
        time, ident = files[source][places[source]]
        places[source] += 1
        if watermarks[source] is None or time - delay > watermarks[source]:
            watermarks[source] = time - delay
        rise()
        if combined is not None and window_end(time, size) <= combined:
            late.append(ident)
    return late


def law_merge(tap, folder):
    rng = random.Random(11)
    faults = []
    late_count = 0
    for stream in range(60):
        files = []
        for number in range(rng.randint(1, 6)):
            base, rows = rng.randint(0, 200), []
            for row in range(rng.choice([0, 1, 5, 60])):
                base += rng.choice([0, 1, 2, 15])
                rows.append((base - rng.choice([0, 0, 3, 30]), f"{number}.{row}"))
            files.append(rows)
        delay = rng.choice([0, 5, 20])
        names = [write(folder, f"{number}.csv", rows) for number, rows in enumerate(files)]
        _, late, report = window(folder, "-w", f"{delay}s", "--merge", *names)
        want = merge_model(files, delay)
        late_count += len(want)
        if late != want or report["rows_in"] != sum(map(len, files)):
            faults.append(f"stream {stream}: late {late}, want {want}")
    tap.ok(not faults and late_count > 100, f"merge: 60 random sets of FILEs, {late_count} late rows as the model",
           *faults[:3])


def law_merge_earthquakes(tap, folder):
    """One FILE a network: twelve of them, with calendar days and a delay of two days."""
    lines = EARTHQUAKES.read_text().splitlines()
    files = {}
    for line in lines[1:]:
        ident, time, _, net = line.split(",")[:4]
        files.setdefault(net, []).append((harness.parse_instant(time) // 1000, ident, line))
    names = []
    for net, rows in sorted(files.items()):
        names.append(f"{net}.csv")
        (folder / names[-1]).write_text("\n".join([lines[0], *(row[2] for row in rows)]) + "\n")
    harness.run(["wm-window", "-q", "-t", "time", "-w", "2d", "--tumbling", "1d", "--merge", "--late", "late.csv",
                 "--overwrite", *names], cwd=folder)
    late = [line.split(",")[0] for line in (folder / "late.csv").read_text().splitlines()[1:]]
    day = 86_400_000
    want = merge_model([[row[:2] for row in rows] for _, rows in sorted(files.items())], 2 * day, day)
    tap.ok(len(names) == 12 and late == want, f"merge: {len(want)} late earthquakes of twelve networks as the model",
           f"got {late}", f"want {want}")


def law_order(tap, folder):
    rng = random.Random(5)
    faults = []
    for stream in range(20):
        files = []
        for number in range(rng.randint(2, 6)):
            start = rng.randint(0, 300)
            files.append([(start + rng.randint(0, 40), f"{number}.{row}") for row in range(rng.choice([0, 3, 20]))])
        names = [write(folder, f"{number}.csv", rows) for number, rows in enumerate(files)]
        ordered = sorted(names, key=lambda name: files[int(name[0])][0][0] if files[int(name[0])] else float("inf"))
        got = window(folder, "-w", "5s", "--order", "time", *names)
        want = window(folder, "-w", "5s", *ordered)
        if got[0].stdout != want[0].stdout or got[1] != want[1]:
            faults.append(f"stream {stream}: {names}")
    tap.ok(not faults, "order: 20 random sets of FILEs as named in the order of their first event time", *faults[:3])


# Guards.

def law_guard(tap, folder):
    for percent in (1, 5, 10, 20):
        rng = random.Random(percent)
        rows, good = [], 0
        for number in range(2000):
            # A real gap of a day half way.
            honest = 1_000_000 + number + (86_400 if number >= 1000 else 0)
            # The bad clock speaks first of all, and then in so many of a hundred rows, some of them years ahead.
            if number == 0 or rng.random() * 100 < percent:
                rows.append((honest + rng.choice([3 * 31_536_000, 5 * 31_536_000]), f"bad{number}"))
            else:
                rows.append((honest - rng.randint(0, 5), f"good{number}"))
                good += 1
        name = write(folder, "clock.csv", rows)
        result, late, report = window(folder, "-w", "10s", "--max-jump", "1h", name)
        # The watermark must have gone on behind the gap: windows of before it are written before the end.
        watermark = harness.parse_instant(report["eventTime"]["watermark"]) // 1_000_000
        tap.ok(not late and report["rows_used"] == len(rows) and watermark == rows_max(rows) - 10,
               f"guard: a clock years ahead in {percent} % of the rows: no row late, the gap passed",
               f"late {late[:5]}", f"watermark {watermark}", result.stderr.decode())
        _, late, _ = window(folder, "-w", "10s", name)
        tap.ok(len(late) > good // 2, f"guard: and without it at {percent} % most of the good rows are late")


def rows_max(rows):
    return max(time for time, ident in rows if ident.startswith("good"))


def law_ahead(tap, folder):
    rng = random.Random(3)
    rows = [(1000 + number, 1000 + number + rng.choice([0, -5, 59, 60, 61, 10_000])) for number in range(300)]
    (folder / "ahead.csv").write_text("ts,arrived,id\n" + "".join(f"{t},{a},{i}\n" for i, (a, t) in enumerate(rows)))
    result = harness.run(["wm-window", "-q", "-t", "ts", "--time-format", "s", "--tumbling", "10s", "--ingest", "arrived", "--max-ahead", "60s",
                          "--rejects", "rejects", "--overwrite", "--report", "report", "ahead.csv"], cwd=folder)
    _, report = harness.read_report(folder / "report")
    want = sum(time - arrival > 60 for arrival, time in rows)
    tap.ok(result.returncode == 0 and report["rejected"] == {"implausible-time": want} and want > 50,
           f"ahead: {want} rows more than a minute ahead of their arrival are rejected, no others", report)


# Batches.

def batches_by_rows(rows, size):
    return [rows[at:at + size] for at in range(0, len(rows), size)]


def batches_by_event(rows, period):
    batches, batch, multiple, highest = [], [], None, None
    for row in rows:
        batch.append(row)
        highest = row[0] if highest is None else max(highest, row[0])
        entered = multiple is not None and highest // period > multiple
        multiple = highest // period
        if entered:
            batches.append(batch)
            batch = []
    return batches + ([batch] if batch else [])


def late_of(batches, delay):
    watermark, late = None, []
    for batch in batches:
        late += [ident for time, ident in batch if watermark is not None and window_end(time) <= watermark]
        highest = max(time for time, _ in batch) - delay
        watermark = highest if watermark is None else max(watermark, highest)
    return late


def law_triggers(tap, folder):
    rng = random.Random(17)
    faults = {"rows": [], "event": []}
    late_count = 0
    for stream in range(40):
        base, rows = 0, []
        for number in range(100):
            base += rng.choice([0, 1, 4, 9])
            rows.append((base - rng.choice([0, 2, 12, 40]), str(number)))
        name = write(folder, "rows.csv", rows)
        size, period = rng.choice([1, 2, 7, 100, 1000]), rng.choice([1, 10, 35])
        for kind, trigger, batches in (("rows", f"{size}rows", batches_by_rows(rows, size)),
                                       ("event", f"event:{period}s", batches_by_event(rows, period))):
            want = late_of(batches, 3)
            late_count += len(want)
            _, late, _ = window(folder, "-w", "3s", "--trigger", trigger, name)
            if late != want:
                faults[kind].append(f"stream {stream}, {trigger}: late {late}, want {want}")
    for kind, found in faults.items():
        tap.ok(not found and late_count > 100, f"triggers: batches by {kind} judge as the model", *found[:3])


def main():
    tap = harness.Tap()
    with tempfile.TemporaryDirectory(prefix="wm-inputs-") as folder:
        for law in (law_merge, law_merge_earthquakes, law_order, law_guard, law_ahead, law_triggers):
            law(tap, pathlib.Path(folder))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
