#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of wm-merge, each held to one run of wm-window over everything, or to a model of a few lines.

split     rows split into on-time and late files, windows of each merged in any order: the table of one run
partial   the same for every aggregate, by states, on any number of files in the order of their rows, with rows of one time in
          several of them
sessions  the same of sessions, which the pieces cut, bridge and repeat; those of one gap, and of a gap a row
inexact   the same with numbers that no exact sum can hold: what is computed of sums to 12 digits, all else to the byte
late      rows that wm-window itself calls late, at any delay, folded into what it wrote: the table of one run, by
          rules and by states
grouping  parts merged two at a time, in any order (of --last: in the order of event time), the pairs again, and so
          on: the table of one run, by rules and by states
replace   rows of the range give way, all others stay as they are, byte for byte
repeat    what may be repeated changes nothing the second time
kill      a file rewritten in place is the old one or the new one at every moment

Names of laws on the command line run those alone; WM_SEED starts the seeds elsewhere.
"""

import csv
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
SPLITS = 60
PARTIAL_SPLITS = 40
LATE_SPLITS = 60
GROUPINGS = 40
REPLACES = 60
REPEATS = 30
KILLS = 40
KEYS = ["a", "b", "c,d", 'e"f', "", "g h"]
PARTIAL_AGGREGATES = ("count,count:v,sum:v,avg:v,min:v,max:v,first:v,last:v,var:v,stddev:v,median:v,p95:v,p99.9:v,"
                      "distinct:v,rate,count:v:gt:5,share:v:gt:5,avg:v:if:k:eq:a")


def run(folder, *args):
    """A tool's output; it must end well and say nothing."""
    result = harness.run([str(arg) for arg in args], cwd=folder)
    if result.returncode != 0 or result.stderr:
        raise ValueError(f"status {result.returncode} of {' '.join(map(str, args))}\n{result.stderr.decode()}")
    return result.stdout


def field(text):
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"') else text


def number(rng):
    kind = rng.randrange(6)
    if kind == 0:
        return ""
    if kind == 1:
        return rng.choice(["0.1", "-0.1", "1e3", "2", "2.0", "02"])
    return str(rng.randrange(-1000, 1000)) if kind < 4 else f"{rng.randrange(-10**6, 10**6) / 1000}"


def rows_of(rng, count):
    return [(rng.randrange(100), rng.choice(KEYS), number(rng)) for _ in range(count)]


def write_rows(path, rows, form):
    if form == "csv":
        lines = ["ts,k,v"] + [f"{ts},{field(key)},{value}" for ts, key, value in rows]
    else:
        # "02" is no JSON number; a text that is a number is one all the same.
        lines = [json.dumps({"ts": ts, "k": key, "v": None if value == "" else value}) for ts, key, value in rows]
    path.write_text("".join(line + "\n" for line in lines))


def split_rows(rng, rows, parts_count):
    parts = [[] for _ in range(parts_count)]
    for row in rows:
        parts[rng.randrange(parts_count)].append(row)
    return parts


def tables_of(folder, rng, form, rows, parts_count, window):
    """One table of all rows, and one a part, in any order; names of the files."""
    write_rows(folder / "all", rows, form)
    names = []
    for index, part in enumerate(split_rows(rng, rows, parts_count)):
        write_rows(folder / f"part{index}", part, form)
        (folder / f"table{index}").write_bytes(run(folder, "wm-window", *window, "-i", form, f"part{index}"))
        names.append(f"table{index}")
    rng.shuffle(names)
    return run(folder, "wm-window", *window, "-i", form, "all"), names


def law_split(tap, folder):
    fault = None
    window = ["-t", "ts", "--tumbling", "10s", "-g", "k", "-q", "-a", "count,sum:v,min:v,max:v"]
    merge = ["wm-merge", "-k", "window_start,window_end,k", "--sum", "count,v_sum", "--min", "v_min", "--max", "v_max"]
    for seed in range(SEED, SEED + SPLITS):
        rng = random.Random(seed)
        form = rng.choice(["csv", "ndjson"])
        want, names = tables_of(folder, rng, form, rows_of(rng, rng.randrange(1, 200)), rng.randrange(2, 5), window)
        got = run(folder, *merge, "-i", form, *names)
        # One at a time, the recipe of every night.
        (folder / "daily").write_bytes((folder / names[0]).read_bytes())
        for name in names[1:]:
            (folder / "daily").write_bytes(run(folder, *merge, "-i", form, "daily", name))
        nightly = (folder / "daily").read_bytes()
        if got != want or nightly != want:
            fault = f"WM_SEED={seed} ({form}): {'together' if got != want else 'one by one'}"
            break
    tap.ok(fault is None, f"split: {SPLITS} tables merged from parts are those of one run", fault or "")


def tied_rows(rng, count, value):
    """Rows of few times, below a second too, so that many have the time of others."""
    times = [rng.randrange(100) * 10**6 + rng.choice([0, 1, 999_999, rng.randrange(10**6)]) for _ in range(12)]
    return [(harness.print_instant(rng.choice(times)), rng.choice(KEYS[:3]), value(rng)) for _ in range(count)]


def typed(rng):
    """A value for NDJSON: texts, and numbers of the same text."""
    text = number(rng)
    return int(text) if text.lstrip("-").isdigit() and text == str(int(text)) and rng.random() < 0.5 else text


def states_in_order(folder, rng, form, rows, window):
    """Rows cut into pieces that follow each other, and the states of each; names of the files."""
    write_rows(folder / "all", rows, form)
    cuts = sorted(rng.sample(range(1, len(rows)), min(len(rows) - 1, rng.randrange(5))))
    names = []
    for index, (i, j) in enumerate(zip([0, *cuts], [*cuts, len(rows)])):
        write_rows(folder / f"part{index}", rows[i:j], form)
        names.append(f"states{index}")
        (folder / names[-1]).write_bytes(run(folder, "wm-window", *window, "--partial", "-i", form, f"part{index}"))
    return names


def law_partial(tap, folder):
    fault = None
    window = ["-t", "ts", "--tumbling", "10s", "-g", "k", "-a", PARTIAL_AGGREGATES]
    merge = ["wm-merge", "-k", "window_start,window_end,k"]
    for seed in range(SEED, SEED + PARTIAL_SPLITS):
        rng = random.Random(seed)
        form = rng.choice(["csv", "ndjson"])
        rows = tied_rows(rng, rng.randrange(1, 300), number if form == "csv" else typed)
        if seed % 10 == 0:  # more values in a group than percentiles and distinct counts keep exactly
            rows = [(harness.print_instant(index * 2000), "a", number(rng)) for index in range(4000)]
        names = states_in_order(folder, rng, form, rows, window)
        want = run(folder, "wm-window", *window, "-i", form, "all")
        got = run(folder, *merge, "--partial", "-i", form, *names)
        (folder / "states").write_bytes(run(folder, *merge, "--keep-partial", "-i", form, *names))
        kept = run(folder, *merge, "--partial", "-i", form, "states")
        if got != want or kept != want:
            fault = f"WM_SEED={seed} ({form}): {'merged' if got != want else 'merged, kept and merged'}"
            break
    tap.ok(fault is None, f"partial: states of {PARTIAL_SPLITS} splits give the results of one run", fault or "")


def law_sessions(tap, folder):
    fault = None
    joined = 0
    for seed in range(SEED, SEED + PARTIAL_SPLITS):
        rng = random.Random(seed)
        form = rng.choice(["csv", "ndjson"])
        gap = rng.choice(["300ms", "3s", "PT20S", "column:v,s"])
        window = ["-t", "ts", "--session", gap, "-g", "k", "-a", PARTIAL_AGGREGATES]
        merge = ["wm-merge", "-k", "window_end,window_start,k", "-i", form]
        rows = tied_rows(rng, rng.randrange(2, 120), number)
        if gap.startswith("column"):  # a value of its own: gaps that are none would be rejected
            rows = [(ts, key, str(rng.choice([1, 2.5, 0.000001, 30]))) for ts, key, _ in rows]
        names = states_in_order(folder, rng, form, rows, window)
        want = run(folder, "wm-window", *window, "-i", form, "all")
        got = run(folder, *merge, "--partial", *names)
        (folder / "states").write_bytes(run(folder, *merge, "--keep-partial", *names))
        kept = run(folder, *merge, "--partial", "states")
        # Two at a time, and in one FILE behind each other.
        (folder / "pair").write_bytes(run(folder, *merge, "--keep-partial", *names[:2]))
        paired = run(folder, *merge, "--partial", "pair", *names[2:])
        joined += sum((folder / name).read_bytes().count(b"\n") for name in names) - got.count(b"\n")
        if not got == want == kept == paired:
            fault = f"WM_SEED={seed} ({form}, {gap})"
            break
    if not fault and joined < PARTIAL_SPLITS:
        fault = "hardly any session was cut: nothing was tested"
    tap.ok(fault is None, f"sessions: states of {PARTIAL_SPLITS} splits give the results of one run", fault or "")


ROUNDED = ["sum", "avg", "var", "stddev"]
EXACT = ["min", "max", "first", "last", "median", "p95", "distinct", "count"]


def beyond_exact(rng):
    """Positive, so that no sum loses all its digits; beyond 38 digits, or behind the 18th after the point."""
    return rng.choice([f"{rng.randrange(1, 1000)}e{rng.randrange(38, 60)}", f"0.{rng.randrange(1, 10**25):025d}",
                       f"{rng.randrange(1, 10**6)}"])


def is_near(a, b):
    return a == b or (a != "" and b != "" and abs(float(a) - float(b)) <= 1e-12 * abs(float(b)))


def law_inexact(tap, folder):
    fault = None
    window = ["-t", "ts", "--tumbling", "10s", "-g", "k", "-a", ",".join(f"{name}:v" for name in ROUNDED + EXACT)]
    for seed in range(SEED, SEED + PARTIAL_SPLITS):
        rng = random.Random(seed)
        names = states_in_order(folder, rng, "csv", tied_rows(rng, rng.randrange(1, 100), beyond_exact), window)
        want = run(folder, "wm-window", *window, "all").decode().splitlines()
        got = run(folder, "wm-merge", *KEY, "--partial", *names).decode().splitlines()
        is_same = len(got) == len(want) and got[0] == want[0]
        for a, b in zip(csv.reader(got[1:]), csv.reader(want[1:])):
            is_same = is_same and a[:3] + a[7:] == b[:3] + b[7:] and all(map(is_near, a[3:7], b[3:7]))
        if not is_same:
            fault = f"WM_SEED={seed}"
            break
    tap.ok(fault is None, f"inexact: states of {PARTIAL_SPLITS} splits give the results of one run", fault or "")


def distinct_times(rng, rows):
    """Rows each with a time of its own, about in order: ISO 8601 within an hour."""
    rows = {ts * 1000 + index % 1000: (key, value) for index, (ts, key, value) in enumerate(rows)}
    rows = [(ts, *row) for ts, row in rows.items()]
    rows.sort(key=lambda row: row[0] + rng.randrange(40_000))
    return [(f"1970-01-01T00:{ts // 60000:02d}:{ts // 1000 % 60:02d}.{ts % 1000:03d}Z", key, value)
            for ts, key, value in rows]


# Options of wm-window and of wm-merge that belong together. --last takes the late value, which is the last in event time
# only where the parts are in that order.
RULES = ("count,sum:v,min:v,max:v", ["--sum", "count,v_sum", "--min", "v_min", "--max", "v_max"])
RULES_AND_LAST = (RULES[0] + ",last:v", RULES[1] + ["--last", "v_last"])
STATES = PARTIAL_AGGREGATES
KEY = ["-k", "window_start,window_end,k"]


def law_late(tap, folder):
    fault, late_count = None, 0
    for seed in range(SEED, SEED + LATE_SPLITS):
        rng = random.Random(seed)
        form = rng.choice(["csv", "ndjson"])
        write_rows(folder / "all", distinct_times(rng, rows_of(rng, rng.randrange(20, 300))), form)
        window = ["-t", "ts", "--tumbling", f"{rng.randrange(2, 12)}s", "-g", "k", "-i", form, "-q"]
        delay = ["-w", f"{rng.randrange(15)}s", "--late", "late", "--overwrite"]
        for aggregates, merge, states in ((RULES[0], RULES[1], []), (STATES, ["--partial"], ["--partial"])):
            (folder / "daily").write_bytes(run(folder, "wm-window", *window, *delay, *states, "-a", aggregates, "all"))
            (folder / "late-table").write_bytes(run(folder, "wm-window", *window, *states, "-a", aggregates, "late"))
            late_count += (folder / "late").read_bytes().count(b"\n")
            want = run(folder, "wm-window", *window, "-a", aggregates, "all")
            tables = ["daily", "late-table"]
            # By rules and by states it does not matter which of them is called MAIN.
            if rng.random() < 0.5 and (folder / "late-table").read_bytes():
                tables.reverse()
            if run(folder, "wm-merge", *KEY, *merge, "-i", form, *tables) != want:
                fault = f"WM_SEED={seed} ({form}): {' '.join(merge)}"
                break
        if fault:
            break
    if not fault and late_count < 20 * LATE_SPLITS:
        fault = f"{late_count} late rows: nothing was tested"
    tap.ok(fault is None, f"late: {LATE_SPLITS} streams with late rows folded in are those of one run", fault or "")


def merged_in_pairs(folder, rng, form, names, merge, keeps_order):
    """Merges two tables into one until one is left; its name."""
    names = list(names)
    while len(names) > 1:
        if not keeps_order:
            rng.shuffle(names)
        at = rng.randrange(len(names) - 1)
        made = f"{names[at]}+"
        (folder / made).write_bytes(run(folder, "wm-merge", *KEY, *merge, "-i", form, *names[at:at + 2]))
        names[at:at + 2] = [made]
    return names[0]


def law_grouping(tap, folder):
    fault = None
    for seed in range(SEED, SEED + GROUPINGS):
        rng = random.Random(seed)
        form = rng.choice(["csv", "ndjson"])
        rows = distinct_times(rng, rows_of(rng, rng.randrange(8, 300)))
        if seed % 10 == 0:  # more values in a group than are kept exactly
            rows = distinct_times(rng, [(rng.randrange(10), "a", number(rng)) for _ in range(4000)])
        window = ["-t", "ts", "--tumbling", "10s", "-g", "k", "-i", form]
        write_rows(folder / "all", rows, form)
        for kind, (aggregates, merge), states in (("rules", RULES, []), ("rules and last", RULES_AND_LAST, []),
                                                  ("states", (STATES, ["--keep-partial"]), ["--partial"])):
            keeps_order = kind == "rules and last"
            parts = split_rows(rng, rows, rng.randrange(2, 8))
            if keeps_order:
                in_order = sorted(rows)
                cuts = sorted(rng.sample(range(1, len(rows)), min(len(rows) - 1, len(parts) - 1)))
                parts = [in_order[i:j] for i, j in zip([0, *cuts], [*cuts, len(rows)])]
            for index, part in enumerate(parts):
                write_rows(folder / f"part{index}", part, form)
                table = run(folder, "wm-window", *window, *states, "-a", aggregates, f"part{index}")
                (folder / f"table{index}").write_bytes(table)
            last = merged_in_pairs(folder, rng, form, [f"table{i}" for i in range(len(parts))], merge, keeps_order)
            got = (folder / last).read_bytes()
            if states:
                got = run(folder, "wm-merge", *KEY, "--partial", "-i", form, last)
            if got != run(folder, "wm-window", *window, "-a", aggregates, "all"):
                fault = f"WM_SEED={seed} ({form}): {kind}, {len(parts)} parts"
                break
        if fault:
            break
    tap.ok(fault is None, f"grouping: {GROUPINGS} splits merged two by two are those of one run", fault or "")


def instant(second):
    return harness.print_instant(second * 1_000_000)


def random_table(rng, count, form):
    """Lines of a table in order of time, written in more than one way."""
    seconds = sorted(rng.randrange(1000) for _ in range(count))
    if form == "csv":
        return [(second, f'{instant(second)},{rng.choice(["x", chr(34) + "y, z" + chr(34)])},{rng.randrange(100)}\n')
                for second in seconds]
    ways = ['{"window_start":"T","k":"x","n":1.50}\n', '{ "k": "\\u0079", "window_start":"T", "n":[1, {}] }\n',
            '{"window_start":"T","window_start":"T","n":1E2,"k":null}\n']
    return [(second, rng.choice(ways).replace("T", instant(second))) for second in seconds]


def law_replace(tap, folder):
    fault = None
    for seed in range(SEED, SEED + REPLACES):
        rng = random.Random(seed)
        form = rng.choice(["csv", "ndjson"])
        header = "window_start,k,n\n" if form == "csv" else ""
        table = random_table(rng, rng.randrange(60), form)
        begin = rng.randrange(900)
        end = begin + rng.randrange(1, 200)
        if len(table) > 1 and rng.random() < 0.4:  # bounds that are times of rows, with rows between them or not
            at = rng.randrange(len(table) - 1)
            begin, end = table[at][0] + rng.randrange(2), table[rng.randrange(at + 1, min(at + 4, len(table)))][0]
            end = max(end, begin + 1)
        late = [(s, line) for s, line in random_table(rng, 60, form) if begin <= s < end]
        if rng.random() < 0.3:
            rng.shuffle(table)
        if form == "ndjson" and not (table and late):
            continue  # that a file without any line is an error has a test of its own
        (folder / "main").write_bytes((header + "".join(line for _, line in table)).encode())
        (folder / "late").write_bytes((header + "".join(line for _, line in late)).encode())
        replaced = [begin <= second < end for second, _ in table]
        seconds = [second for second, _ in table]
        # In place of the first; else before the first behind the range while the order holds; else at the end.
        place = replaced.index(True) if True in replaced else next(
            (i for i, s in enumerate(seconds) if s >= end and seconds[:i + 1] == sorted(seconds[:i + 1])), len(table))
        stay = [line if not gone else "" for (_, line), gone in zip(table, replaced)]
        want = header + "".join(stay[:place]) + "".join(line for _, line in late) + "".join(stay[place:])
        got = run(folder, "wm-merge", "--replace", f"{instant(begin)},{instant(end)}", "-t", "window_start", "-i",
                  form, "main", "late").decode()
        if got != want:
            fault = f"WM_SEED={seed}"
            break
    tap.ok(fault is None, f"replace: {REPLACES} ranges, and nothing else", fault or "")


def law_repeat(tap, folder):
    fault = None
    window = ["-t", "ts", "--tumbling", "10s", "-g", "k", "-q", "-a", "min:v,max:v,last:v"]
    recipes = [
        ["-k", "window_start,window_end,k", "--min", "v_min", "--max", "v_max", "--last", "v_last"],
        ["--replace", "1970-01-01,1970-01-01T00:00:50Z", "-t", "window_start"],
    ]
    for seed in range(SEED, SEED + REPEATS):
        rng = random.Random(seed)
        recipe = rng.choice(recipes)
        rows = rows_of(rng, 100)
        late = [row for row in rows_of(rng, 50) if recipe[0] == "-k" or row[0] < 50]
        for name, part in (("main", rows), ("late", late)):
            write_rows(folder / "rows", part, "csv")
            (folder / name).write_bytes(run(folder, "wm-window", *window, "rows"))
        run(folder, "wm-merge", *recipe, "--in-place", "main", "late")
        once = (folder / "main").read_bytes()
        run(folder, "wm-merge", *recipe, "--in-place", "main", "late")
        if (folder / "main").read_bytes() != once:
            fault = f"WM_SEED={seed}: {' '.join(recipe)}"
            break
    tap.ok(fault is None, f"repeat: {REPEATS} recipes in place, twice", fault or "")


def law_kill(tap, folder):
    rng = random.Random(SEED)
    header = "window_start,k,n\n"
    old = (header + "".join(f"{instant(i)},k,{i}\n" for i in range(150_000))).encode()
    (folder / "late").write_text(header + "".join(f"{instant(i)},k,new\n" for i in range(1000, 90_000)))
    command = [str(harness.BIN / "wm-merge"), "--replace", f"{instant(1000)},{instant(90_000)}", "-t", "window_start",
               "--in-place", "--backup", ".old", "main", "late"]
    main = folder / "main"
    main.write_bytes(old)
    main.chmod(0o640)
    begin = time.monotonic()
    subprocess.run(command, cwd=folder, check=True)
    seconds = time.monotonic() - begin
    new = main.read_bytes()
    sums = {hashlib.sha256(old).digest(), hashlib.sha256(new).digest()}
    killed = 0
    fault = None
    if new == old or (folder / "main.old").read_bytes() != old or main.stat().st_mode & 0o777 != 0o640:
        fault = "the run that was not killed"
    for _ in range(KILLS):
        main.write_bytes(old)
        process = subprocess.Popen(command, cwd=folder)
        time.sleep(rng.random() * seconds * 1.2)
        process.kill()
        killed += process.wait() != 0
        if hashlib.sha256(main.read_bytes()).digest() not in sums or main.stat().st_mode & 0o777 != 0o640:
            fault = "neither the old file nor the new one"
            break
        for left in folder.glob(".main.*"):
            left.unlink()
    tap.ok(fault is None and killed > 0, f"kill: the old file or the new one, {KILLS} times", fault or f"{killed} killed")


LAWS = {"split": law_split, "partial": law_partial, "sessions": law_sessions, "inexact": law_inexact, "late": law_late, "grouping": law_grouping, "replace": law_replace,
        "repeat": law_repeat, "kill": law_kill}


def main():
    tap = harness.Tap()
    for name in sys.argv[1:] or LAWS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                LAWS[name](tap, pathlib.Path(folder))
            except ValueError as error:
                tap.ok(False, name, error)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
