#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure the tools beside their peers and print the table of docs/PERFORMANCE.md. Fails on nothing.

    tests/bench/bench.py [--rows N] [--rounds N] [--no-peers]
    tests/bench/bench.py --merge [--rows N] [--rounds N] [--no-peers]
    tests/bench/bench.py --checkpoint [--rows N] [--rounds N]

With --merge it is wm-merge that is measured, and nothing else: a table of N rows (10 million) with a hundredth as many
late results. It is left out otherwise, for its table is 0.7 GB.

With --checkpoint it is what -C costs: J1 with a checkpoint ten times a second, and one of a million groups.

The data is generated once into build/bench/. All contenders run one after the other in every round, each round in an
order of its own, and the figures are medians over the rounds: CPU is user and system time of the process, wall and
resident size are of the process too.
DuckDB runs as a Python module in build/bench/venv, with its start; where it cannot be installed it is left out.
"""

import argparse
import os
import pathlib
import random
import select
import shlex
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("WM_BIN", ROOT / "build/release")).resolve()
FOLDER = ROOT / "build/bench"
SOURCES = pathlib.Path(__file__).resolve().parent

AGGREGATES = "count,sum:latency_ms,avg:latency_ms,max:latency_ms"
SQL = """COPY (SELECT time_bucket(INTERVAL 1 minute, event_time::TIMESTAMP) AS start, page, count(*), sum(latency_ms),
avg(latency_ms), max(latency_ms) FROM {reader} GROUP BY ALL ORDER BY ALL) TO '/dev/stdout' (FORMAT csv)"""


# Of an input that is not stamped.
TIME = ("-t", "event_time", "-w", "10m")


def window(*arguments, by="page", aggregates=AGGREGATES, time_options=TIME):
    return [str(BIN / "wm-window"), *time_options, "-g", by, "-a", aggregates, "-q", *arguments]


def stamp(path):
    return [str(BIN / "wm-stamp"), "-q", *TIME, path]


def build():
    """The generator and the measuring program, when their sources are newer."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("gen", "measure", "table"):
        source, program = SOURCES / f"{name}.c", FOLDER / name
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            subprocess.run([os.environ.get("CC", "cc"), "-O2", "-D_GNU_SOURCE", "-o", program, source], check=True)


def data(form, rows):
    path = FOLDER / f"rows-{rows}.{form}"
    if not path.exists() or path.stat().st_mtime < (FOLDER / "gen").stat().st_mtime:
        print(f"generating {path.relative_to(ROOT)}", file=sys.stderr)
        with open(path, "wb") as file:
            subprocess.run([FOLDER / "gen", "--rows", str(rows), "--format", form], stdout=file, check=True)
    return str(path)


def tables(rows):
    """A finished table and its late results."""
    paths = FOLDER / f"table-{rows}.csv", FOLDER / f"table-{rows}-late.csv"
    for path, arguments in zip(paths, (["main", rows], ["late", rows, max(rows // 100, 1)])):
        if not path.exists() or path.stat().st_mtime < (FOLDER / "table").stat().st_mtime:
            print(f"generating {path.relative_to(ROOT)}", file=sys.stderr)
            with open(path, "wb") as file:
                subprocess.run([FOLDER / "table", *map(str, arguments)], stdout=file, check=True)
    return map(str, paths)


def distinct_keys(rows):
    """As many keys, none twice, a hundred of them in each second."""
    path = FOLDER / f"keys-{rows}.csv"
    if not path.exists():
        print(f"generating {path.relative_to(ROOT)}", file=sys.stderr)
        with open(path, "w", encoding="ascii") as file:
            file.write("ts,id\n")
            file.writelines(f"{i // 100}.{i % 100:02d},{i}\n" for i in range(rows))
    return str(path)


def dedup(*arguments):
    return [str(BIN / "wm-dedup"), "-w", "10m", "-q", *arguments]


def duckdb_python():
    """A Python that has duckdb, or None."""
    venv = FOLDER / "venv"
    python = str(venv / "bin/python")
    if not pathlib.Path(python).exists():
        print(f"installing duckdb into {venv.relative_to(ROOT)}", file=sys.stderr)
        made = subprocess.run([sys.executable, "-m", "venv", venv], check=False).returncode == 0
        if not made or subprocess.run([python, "-m", "pip", "-q", "install", "duckdb"], check=False).returncode != 0:
            shutil.rmtree(venv, ignore_errors=True)
            return None
    return python if subprocess.run([python, "-c", "import duckdb"], check=False).returncode == 0 else None


class Usage:
    def __init__(self, text):
        user, system, self.wall, resident = map(float, text.split())
        self.cpu = user + system
        self.resident_mib = resident / 1024


def measured(command, stdin=None):
    """What one run used; its output is thrown away."""
    result = FOLDER / "usage"
    subprocess.run([FOLDER / "measure", result, *command], stdin=stdin or subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   check=True)
    return Usage(result.read_text(encoding="ascii"))


def fed_by_cat(path, command):
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        return measured(command, cat.stdout)


def piped(*commands):
    """A pipe as a whole: the CPU of all in it, the greatest resident size of one, the wall time to the end of the last."""
    return measured(["sh", "-c", " | ".join(map(shlex.join, commands))])


def start_ms(count=100):
    """Milliseconds of a whole run on a header alone: a median of its own, as the work of a round leaves no cache warm."""
    header = FOLDER / "header.csv"
    header.write_text("event_time,page,latency_ms\n", encoding="ascii")
    return statistics.median(measured(window("--tumbling", "1m", str(header))).wall for _ in range(count)) * 1000


def live_ms(count=300):
    """Milliseconds from writing the row that closes a window to reading the window: median, and 99 of 100."""
    waits = []
    command = [str(BIN / "wm-window"), "-t", "ts", "-w", "0s", "--tumbling", "1s", "-q"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        os.write(process.stdin.fileno(), b"ts\n0\n")
        for i in range(1, count):
            time.sleep(0.002)
            start = time.perf_counter()
            os.write(process.stdin.fileno(), b"%d\n" % i)
            if not select.select([process.stdout], [], [], 1)[0]:
                break
            os.read(process.stdout.fileno(), 65536)
            waits.append((time.perf_counter() - start) * 1000)
        process.stdin.close()
        process.stdout.read()
    return (statistics.median(waits), sorted(waits)[len(waits) * 99 // 100]) if waits else (float("inf"),) * 2


def every_tenth(csv):
    """A file of each tenth row: the other side of a join."""
    path = pathlib.Path(csv).with_suffix(".tenth.csv")
    if not path.exists():
        with open(csv, encoding="ascii") as file, open(path, "w", encoding="ascii") as out:
            out.writelines(line for number, line in enumerate(file) if number == 0 or number % 10 == 1)
    return str(path)


def join(*args):
    return [str(BIN / "wm-join"), "-q", "-t", "event_time", "-w", "10m", *args]


def measure_rounds(contenders, rounds_count):
    """Usages of each contender, one a round."""
    rounds = {name: [] for name in contenders}
    for number in range(rounds_count):
        print(f"round {number + 1} of {rounds_count}", file=sys.stderr)
        # In another order each time: what ran before leaves its mark on caches and clock.
        order = list(contenders)
        random.Random(number).shuffle(order)
        for name in order:
            rounds[name].append(contenders[name]())
    return rounds


MERGED = """COPY (SELECT window_start, window_end, page, {columns} FROM {tables} ORDER BY ALL)
TO '/dev/stdout' (FORMAT csv)"""


def measure_merge(options):
    rows = options.rows or 10_000_000
    main_table, late_table = tables(rows)
    keys = "window_start,window_end,page"
    program = str(BIN / "wm-merge")
    sums = ["-k", keys, "--sum", "count,latency_ms_sum", "--max", "latency_ms_max"]
    first, last = "2024-01-01", "2024-01-02"
    (FOLDER / "day.csv").write_bytes(subprocess.run(["grep", "-e", "^window_start", "-e", f"^{first}", late_table],
                                                    capture_output=True, check=True).stdout)
    contenders = {
        "M1": lambda: measured([program, *sums, main_table, late_table]),
        "M1 without late rows": lambda: measured([program, *sums, main_table, str(FOLDER / "table-header.csv")]),
        "M2": lambda: measured([program, "--replace", f"{first},{last}", "-t", "window_start", main_table,
                                str(FOLDER / "day.csv")]),
    }
    (FOLDER / "table-header.csv").write_text(keys + ",count,latency_ms_sum,latency_ms_max\n", encoding="ascii")
    python = None if options.no_peers else duckdb_python()
    if python:
        both = f"read_csv(['{main_table}', '{late_table}']) GROUP BY ALL"
        joined = f"read_csv('{main_table}') m FULL JOIN read_csv('{late_table}') l USING ({keys.replace(',', ', ')})"
        for name, columns, source in (
                ("M1 DuckDB, GROUP BY", "sum(count), sum(latency_ms_sum), max(latency_ms_max)", both),
                ("M1 DuckDB, FULL JOIN", "coalesce(m.count, 0) + coalesce(l.count, 0), coalesce(m.latency_ms_sum, 0) + "
                 "coalesce(l.latency_ms_sum, 0), greatest(m.latency_ms_max, l.latency_ms_max)", joined)):
            text = MERGED.format(columns=columns, tables=source)
            for title, sql in ((name, text), (f"{name}, in no order", text.replace(" ORDER BY ALL", ""))):
                contenders[title] = lambda sql=sql: measured([python, "-c", f"import duckdb; duckdb.sql({sql!r})"])
    rounds = measure_rounds(contenders, options.rounds)
    print(f"{rows} rows, {max(rows // 100, 1)} late, medians of {options.rounds} rounds, {os.cpu_count()} processors\n")
    print("| job | CPU ns a row | CPU s | wall s | resident MiB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, usages in rounds.items():
        cpu, wall, resident = (statistics.median(getattr(usage, what) for usage in usages)
                               for what in ("cpu", "wall", "resident_mib"))
        print(f"| {name} | {cpu / rows * 1e9:.1f} | {cpu:.3f} | {wall:.3f} | {resident:.1f} |")


def from_checkpoint(command, before=None):
    """A run with -C, from nothing or from a checkpoint before it."""
    for suffix in ("", ".prev"):
        (FOLDER / f"st{suffix}").unlink(missing_ok=True)
    if before is not None:
        shutil.copyfile(before, FOLDER / "st")
    return measured(command)


def measure_checkpoint(options):
    rows = options.rows or 5_000_000
    csv, keys = data("csv", rows), distinct_keys(1_000_000)
    kept = ["-C", str(FOLDER / "st")]
    groups = [str(BIN / "wm-window"), "-t", "ts", "-w", "1d", "--tumbling", "1d", "-g", "id", "-q"]
    (FOLDER / "more.csv").write_text("ts,id\n9999,more\n", encoding="ascii")
    from_checkpoint([*groups, *kept, keys])
    shutil.copyfile(FOLDER / "st", FOLDER / "groups.st")
    size = (FOLDER / "st").stat().st_size
    contenders = {
        "J1": lambda: measured(window("--tumbling", "1m", csv)),
        "J1 -C": lambda: from_checkpoint(window("--tumbling", "1m", *kept, "--checkpoint-every", "100ms", csv)),
        "a million groups": lambda: measured([*groups, "--eof", "hold", keys]),
        "a million groups -C": lambda: from_checkpoint([*groups, *kept, keys]),
        "read, written twice": lambda: from_checkpoint([*groups, *kept, str(FOLDER / "more.csv")],
                                                          FOLDER / "groups.st"),
    }
    rounds = measure_rounds(contenders, options.rounds)
    print(f"{rows} rows, medians of {options.rounds} rounds; a million groups are {size >> 20} MiB\n")
    print("| run | CPU s | wall s | resident MiB |")
    print("| --- | ---: | ---: | ---: |")
    for name, usages in rounds.items():
        cpu, wall, resident = (statistics.median(getattr(usage, what) for usage in usages)
                               for what in ("cpu", "wall", "resident_mib"))
        print(f"| {name} | {cpu:.3f} | {wall:.3f} | {resident:.1f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--merge", action="store_true")
    parser.add_argument("--checkpoint", action="store_true")
    options = parser.parse_args()

    build()
    if options.merge:
        measure_merge(options)
        return
    if options.checkpoint:
        measure_checkpoint(options)
        return
    options.rows = options.rows or 5_000_000
    csv, ndjson = data("csv", options.rows), data("ndjson", options.rows)
    python = None if options.no_peers else duckdb_python()

    contenders = {
        "J1": lambda: measured(window("--tumbling", "1m", csv)),
        "J1 fed by cat": lambda: fed_by_cat(csv, window("--tumbling", "1m")),
        "wc -l fed by cat": lambda: fed_by_cat(csv, ["wc", "-l"]),
        "J2": lambda: measured(window("--tumbling", "1m", ndjson)),
        "J3": lambda: measured(window("--tumbling", "1m", csv, aggregates=AGGREGATES.replace("max", "p95"))),
        "J4": lambda: measured(window("--tumbling", "1m", csv, by="user")),
        "J5": lambda: measured(window("--sliding", "1h,1m", csv)),
        "J6": lambda: measured(window("--session", "30s", csv, by="user")),
        "J7": lambda: measured(stamp(csv)),
        "J7, J1 behind it": lambda: piped(stamp(csv), window("--tumbling", "1m", time_options=())),
        "J9": lambda: measured([str(BIN / "wm-lag"), "-t", "event_time", csv]),
        "J8": lambda: measured(dedup("-t", "event_time", "-k", "user,ingest_time", csv)),
        "J10": lambda: measured(join("-k", "user,ingest_time", "--between=-5m,5m", csv, every_tenth(csv))),
        "J10 full": lambda: measured(join("-k", "user,ingest_time", "--between=-5m,5m", "--type", "full", csv, every_tenth(csv))),
        "J11": lambda: measured([str(BIN / "wm-sort"), "-t", "event_time", "-w", "10m", "-q", csv]),
        "distinct keys": lambda: measured(dedup("-t", "ts", "-k", "id", distinct_keys(2 * options.rows))),
        "distinct keys, a tenth": lambda: measured(dedup("-t", "ts", "-k", "id", distinct_keys(options.rows // 5))),
    }
    if not options.no_peers and shutil.which("mawk"):
        contenders["J8 mawk"] = lambda: measured(["mawk", "-F,", "!s[$3 $2]++", csv])
    if not options.no_peers:
        contenders["J11 sort"] = lambda: measured(["env", "LC_ALL=C", "sort", "-s", "-t,", "-k1,1", csv])
    if python:
        for name, reader in (("J1 DuckDB", f"read_csv('{csv}')"), ("J2 DuckDB", f"read_json('{ndjson}')")):
            program = f"import duckdb; duckdb.sql({SQL.format(reader=reader)!r})"
            contenders[name] = lambda program=program: measured([python, "-c", program])
    rounds = measure_rounds(contenders, options.rounds)

    def median(name, what):
        return statistics.median(getattr(usage, what) for usage in rounds[name])

    def rows_of(name):
        """A join has its right rows too."""
        return options.rows * 1.1 if name.startswith("J10") else options.rows

    def ratio(a, b, what):
        """Median of the ratios of each round."""
        return statistics.median(getattr(x, what) / max(getattr(y, what), 1e-9) for x, y in zip(rounds[a], rounds[b]))

    print(f"{options.rows} rows, medians of {options.rounds} rounds, {os.cpu_count()} processors\n")
    print("| job | CPU ns a row | CPU s | wall s | resident MiB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in contenders:
        cpu, wall = median(name, "cpu"), median(name, "wall")
        per_row = "" if name.startswith("distinct") else f"{cpu / rows_of(name) * 1e9:.1f}"
        print(f"| {name} | {per_row} | {cpu:.3f} | {wall:.4f} | {median(name, 'resident_mib'):.1f} |")

    def line(what, value, target, is_met):
        print(f"| {what} | {value} | {target} | {'yes' if is_met else 'no'} |")

    print("\n| figure | measured | target | met |")
    print("| --- | ---: | ---: | --- |")
    for name, target in (("J1", 60), ("J2", 200), ("J7", 60), ("J8", 150), ("J9", 50), ("J10", 300), ("J11", 120)):
        value = median(name, "cpu") / rows_of(name) * 1e9
        line(f"{name} CPU ns a row", f"{value:.1f}", f"≤ {target}", value <= target)
    for name, target in (("J3", 1.3), ("J4", 3), ("J5", 1.3), ("J6", 4)):
        value = ratio(name, "J1", "cpu")
        line(f"{name} ÷ J1, CPU", f"{value:.2f}", f"≤ {target}", value <= target)
    for a, b, target in (("J8 mawk", "J8", 8), ("J11 sort", "J11", 3)):
        if a not in rounds:
            continue
        value = ratio(a, b, "cpu")
        line(f"{a} ÷ {b}, CPU", f"{value:.1f}", f"≥ {target}", value >= target)
    value = ratio("distinct keys", "distinct keys, a tenth", "resident_mib")
    line(f"{2 * options.rows} distinct keys ÷ {options.rows // 5}, resident", f"{value:.2f}", "≤ 1.1", value <= 1.1)
    value = ratio("J1 fed by cat", "wc -l fed by cat", "wall")
    line("J1 ÷ wc -l, both fed by cat, wall", f"{value:.2f}", "≤ 1.5", value <= 1.5)
    value = ratio("J7, J1 behind it", "J1", "wall")
    line("J7 with J1 behind it ÷ J1, wall", f"{value:.2f}", "≤ 1.6", value <= 1.6)
    value = median("J1", "resident_mib")
    line("J1 resident MiB", f"{value:.1f}", "≤ 16", value <= 16)
    if python:
        for a, b, what, target in (("J1 DuckDB", "J1", "cpu", 6), ("J1 DuckDB", "J1", "wall", 3),
                                   ("J2 DuckDB", "J2", "cpu", 3)):
            value = ratio(a, b, what)
            line(f"{a} ÷ {b}, {what}", f"{value:.1f}", f"≥ {target}", value >= target)
    else:
        print("| DuckDB | left out | ≥ 6 CPU, ≥ 3 wall | |")
    value = start_ms()
    line("start, header only, ms", f"{value:.2f}", "≤ 3", value <= 3)
    middle, most = live_ms()
    line("live: row to its window, ms, median (99 of 100)", f"{middle:.2f} ({most:.2f})", "≤ 1", middle <= 1)


if __name__ == "__main__":
    main()
