#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of wm-lag: on random streams with fixed seeds, judged by plain loops in here and by runs of the other tools.

measures   counts, sums, percentiles and the rest are those of a sorted list
curve      at each delay of the advice a run of wm-window drops, and a run with -w finds behind, exactly as many rows
target     the advised delay is the least in whole milliseconds: with one less too many rows are behind
formats    csv, ndjson and Prometheus say the same
split      groups together have the rows of the whole, at every delay
windows    --every with -w: each window once, as the watermark passes its end, the rows that come later without one; and the
           same bytes from two runs on one checkpoint

Names of laws on the command line run those alone; WM_SEED starts the seeds elsewhere.
"""

import csv
import decimal
import io
import json
import math
import os
import pathlib
import random
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
STREAMS = 60
PERCENTS = ("0", "1", "37.5", "50", "95", "99.9", "100")
FOLDER = pathlib.Path()  # of the running stream's files; set in main()


def seconds(us):
    """Microseconds as the tools write seconds."""
    sign = "-" if us < 0 else ""
    text = f"{abs(us) // 1_000_000}.{abs(us) % 1_000_000:06d}".rstrip("0").rstrip(".")
    return sign + text


def make_stream(rng):
    """Rows of (event time, arrival, key); in order of arrival, some late, some from the future."""
    step = rng.choice((1, 1000, 1_000_000))
    now = rng.randrange(-10**9, 10**9) * step
    rows = []
    for _ in range(rng.randrange(1, 150)):
        now += rng.randrange(0, 2000) * step
        late = rng.randrange(0, 20_000) if rng.random() < 0.3 else 0
        lag = rng.randrange(-300, 3000) if rng.random() < 0.5 else 0
        rows.append((now - late * step, now + lag * step, rng.choice("ab")))
    return rows, step


def write_stream(rows):
    text = "ts,arrival,key\n" + "".join(f"{seconds(t)},{seconds(a)},{k}\n" for t, a, k in rows)
    (FOLDER / "in.csv").write_text(text, encoding="ascii")


def run(*args):
    """The standard output of a run and its final report."""
    (FOLDER / "report").unlink(missing_ok=True)
    command = [*args, "-q", "--report", "report", "-t", "ts", "--time-format", "s", "in.csv"]
    result = harness.run(command, cwd=FOLDER)
    if result.returncode != 0:
        raise ValueError(f"{' '.join(command)}: status {result.returncode}\n{result.stderr.decode()}")
    report = harness.read_report(FOLDER / "report")[1]
    if fault := harness.ledger_fault(report):
        raise ValueError(f"{' '.join(command)}: {fault}")
    return result.stdout.decode(), report


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def disorders(rows):
    highest = -math.inf
    for time, _, _ in rows:
        highest = max(highest, time)
        yield highest - time


def nearest_rank(values, percent):
    rank = math.ceil(decimal.Decimal(percent) * len(values) / 100)
    return sorted(values)[max(rank, 1) - 1]


def behind(rows, delay):
    """How many rows are before the watermark, which is cut to the millisecond."""
    highest, count = -math.inf, 0
    for time, _, _ in rows:
        highest = max(highest, time)
        count += time < (highest - delay) // 1000 * 1000
    return count


def random_windows(rng, step):
    size = rng.randrange(1, 20_000) * step
    if rng.random() < 0.5:
        return ["--tumbling", f"{size}us"]
    return ["--sliding", f"{size}us,{rng.randrange(max(size // 5, 1), size + 1)}us"]


def law_measures(rng):
    rows, _ = make_stream(rng)
    write_stream(rows)
    text, report = run("wm-lag", "--ingest", "arrival", "--percentiles", ",".join(PERCENTS))
    got = table(text)
    for line, values in zip(got, ([a - t for t, a, _ in rows], list(disorders(rows))), strict=True):
        want = {"measure": "lag" if line is got[0] else "disorder", "count": str(len(values)), "min": seconds(min(values)),
                "max": seconds(max(values)), "negative": str(sum(v < 0 for v in values))}
        want |= {f"p{percent}": seconds(nearest_rank(values, percent)) for percent in PERCENTS}
        mean = float(line.pop("avg"))
        if line != want or mean != sum(values) / (len(values) * 10**6):
            yield f"{line}, mean {mean}\nexpected {want}, mean {sum(values) / (len(values) * 10**6)}"
    if report["rows_used"] != len(rows):
        yield f"rows_used {report['rows_used']} of {len(rows)}"


def law_curve(rng):
    rows, step = make_stream(rng)
    write_stream(rows)
    windows = random_windows(rng, step)
    text, _ = run("wm-lag", "--ingest", "arrival", "--advise", *windows)
    for line in table(text):
        delay = line["delay"]
        want = behind(rows, int(decimal.Decimal(delay) * 10**6))
        late = run("wm-lag", "-w", f"{delay}s")[1]["rows_late"]
        dropped = run("wm-window", "-w", f"{delay}s", *windows)[1]["rows_late"]
        if int(line["rows_behind"]) != want or late != want or int(line["rows_dropped"]) != dropped:
            yield f"{windows}: {line}\nbehind {want}, in a run {late}; a run of wm-window drops {dropped}"
        if float(line["behind_share"]) != want / len(rows) or float(line["dropped_share"]) != dropped / len(rows):
            yield f"{line}: wrong shares"


def law_target(rng):
    rows, _ = make_stream(rng)
    write_stream(rows)
    whole = rng.randrange(1, 200)
    part = rng.randrange(0, whole + 1)
    text, _ = run("wm-lag", "--advise", "--target", f"{part}/{whole}")
    line = next(line for line in table(text) if line["advice"] == "target")
    delay = int(decimal.Decimal(line["delay"]) * 10**6)
    if delay % 1000:
        yield f"{line}: not whole milliseconds"
    if behind(rows, delay) * whole > part * len(rows):
        yield f"{line}: {behind(rows, delay)} of {len(rows)} behind, asked for {part}/{whole}"
    if delay and behind(rows, delay - 1000) * whole <= part * len(rows):
        yield f"{line}: a millisecond less does as well for {part}/{whole}"


def law_formats(rng):
    rows, _ = make_stream(rng)
    write_stream(rows)
    options = ["wm-lag", "--ingest", "arrival", "-g", "key"]
    from_csv = table(run(*options, "-o", "csv")[0])
    from_json = [{name: str(value) for name, value in json.loads(line, parse_float=str, parse_int=str).items()}
                 for line in run(*options, "-o", "ndjson")[0].splitlines()]
    if from_csv != from_json:
        yield f"csv {from_csv}\nndjson {from_json}"
    samples = {}
    for line in run(*options, "-o", "prometheus")[0].splitlines():
        if match := re.fullmatch(r'(wm_[a-z_]+)\{key="([ab])"(?:,quantile="([0-9.]+)")?\} (\S+)', line):
            samples[match[1], match[2], match[3]] = match[4]
        elif not re.match(r"# (HELP|TYPE) wm_[a-z_]+ ", line):
            yield f"Prometheus: {line}"
    for line in from_csv:
        name = f"wm_{line['measure']}_seconds"
        want = {(name, quantile): line[column] for column, quantile in
                (("p50", "0.5"), ("p95", "0.95"), ("p99", "0.99"), ("p99.9", "0.999"))}
        want |= {(name + "_count", None): line["count"], (f"wm_{line['measure']}_max_seconds", None): line["max"]}
        for (family, quantile), value in want.items():
            if samples.get((family, line["key"], quantile)) != value:
                yield f"{family} {quantile}: {samples.get((family, line['key'], quantile))}, expected {value}"


def law_split(rng):
    rows, step = make_stream(rng)
    write_stream(rows)
    delay = rng.randrange(0, 20_000) * step
    options = ["wm-lag", "--advise", "-w", f"{delay}us"]
    every = ["--every", f"{rng.randrange(1, 100) * step}ms"]
    whole = [line for line in table(run(*options)[0]) if line["advice"] == "given"]
    for split in (["-g", "key"], every, ["-g", "key", *every]):
        parts = [line for line in table(run(*options, *split)[0]) if line["advice"] == "given"]
        for name in ("rows", "rows_behind"):
            if sum(int(line[name]) for line in parts) != int(whole[0][name]):
                yield f"{split} -w {delay}us: {name} of {parts}\nin all {whole}"


def closed_windows(rows, size, delay, has_keys, batch):
    """Lines that are to come, in order: (window or None, key or None, lags, disorders). batch: rows in one; 1: each."""
    groups, lines, highest, watermark = {}, [], -math.inf, -math.inf

    def close():
        done = sorted(group for group in groups if group[0] is not None and group[0] + size <= watermark)
        lines.extend((*group, *groups.pop(group)) for group in done)

    for number, (time, arrival, key) in enumerate(rows):
        if batch == 1:
            watermark = max(watermark, (max(highest, time) - delay) // 1000 * 1000)
            close()
        start = time // size * size
        group = (None if start + size <= watermark else start, key if has_keys else None)
        lags, disorders = groups.setdefault(group, ([], []))
        lags.append(arrival - time)
        disorders.append(max(0, highest - time))
        highest = max(highest, time)
        if batch != 1 and (number + 1) % batch == 0:
            watermark = max(watermark, (highest - delay) // 1000 * 1000)
            close()
    watermark = math.inf
    close()
    return lines + [(*group, *groups[group]) for group in sorted(groups, key=lambda group: group[1] or "")]


def law_windows(rng):
    rows, step = make_stream(rng)
    write_stream(rows)
    size = rng.randrange(500, 20_000) * step
    delay = rng.choice([0, rng.randrange(0, 20_000) * step])
    has_keys = rng.random() < 0.5
    batch = rng.choice([1, 1, rng.randrange(2, 9)])
    options = ["wm-lag", "--every", f"{size}us", "-w", f"{delay}us", "--ingest", "arrival", *(["-g", "key"] * has_keys),
               *([] if batch == 1 else ["--trigger", f"{batch}rows"])]
    text, report = run(*options)
    got = [[line[name] for name in ("window_start", "window_end", *(["key"] * has_keys), "measure", "count", "min", "max")]
           for line in table(text)]
    want = []
    overdue = 0
    for start, key, *measures in closed_windows(rows, size, delay, has_keys, batch):
        window = ["", ""] if start is None else [harness.print_instant(start), harness.print_instant(start + size)]
        overdue += len(measures[0]) if start is None else 0
        for name, values in zip(("lag", "disorder"), measures):
            want.append([*window, *([key] * has_keys), name, str(len(values)), seconds(min(values)), seconds(max(values))])
    if got != want:
        at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
        yield f"{options}: line {at}: {got[at:at + 2]}\nexpected {want[at:at + 2]}; {overdue} of {len(rows)} overdue"
    if report["rows_used"] + report["rows_late"] != len(rows):
        yield f"{options}: {report['rows_used']} used and {report['rows_late']} late of {len(rows)}"
    # In two runs.
    whole = (FOLDER / "in.csv").read_bytes()
    for name in ("st", "st.prev", "out"):
        (FOLDER / name).unlink(missing_ok=True)
    cut = rng.randrange(len(whole))
    for part, end in ((whole[:cut], "hold"), (whole, "flush")):
        (FOLDER / "in.csv").write_bytes(part)
        run(*options, "-C", "st", "--out", "out", "--eof", end)
    if (FOLDER / "out").read_text() != text:
        yield f"{options}: two runs, cut at {cut}:\n{(FOLDER / 'out').read_text()}\nexpected\n{text}"


LAWS = {"measures": law_measures, "curve": law_curve, "target": law_target, "formats": law_formats, "split": law_split,
        "windows": law_windows}


def main():
    global FOLDER
    tap = harness.Tap()
    with tempfile.TemporaryDirectory() as folder:
        FOLDER = pathlib.Path(folder)
        for name, law in LAWS.items():
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            fault = None
            for seed in range(SEED, SEED + (STREAMS // 4 if name == "curve" else STREAMS)):
                try:
                    fault = next(law(random.Random(f"{name} {seed}")), None)
                except ValueError as error:
                    fault = str(error)
                if fault:
                    fault = f"seed {seed}: {fault}"
                    break
            tap.ok(not fault, f"lag {name}", fault)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
