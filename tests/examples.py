#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The jobs of examples/, run night after night on generated days and held to a batch computation by SQLite.

quarantine  every night the published table is what all raw rows give, the daily table only grows, and a repeat changes
            nothing
replay      every night the days of the range are what all raw rows give, and no other day has changed
locked      a second run leaves at once and changes nothing
broken      input that cannot be read, or is not there, leaves the table as it was
traffic     the generator says the truth about its rows, and wm-window and wm-merge find it in them
pipeline    what run.sh says of a day is so, and every table is the one that SQLite gives
pipe-killed day.sh ends in the same bytes, whichever of its processes are killed at whatever moments
killed      after SIGKILL at any moment a reader finds the old table or the new one, never less, and the next run ends
            well

Names on the command line run those alone; WM_SEED takes other rows.
"""

import collections
import csv
import datetime
import fcntl
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
EXAMPLES = harness.ROOT / "examples"
ENVIRONMENT = {**os.environ, "PATH": f"{harness.BIN}:{os.environ['PATH']}"}
DAY_MS = 86_400_000
FIRST_DAY = datetime.date(2025, 10, 20)
DAYS = 32
ROWS_A_DAY = 400
PAGES = ["/", "/cart", "/a,b", '/say "hi"', "/search", "/très"]
KILLS = 50
TRAFFIC = "7658aefee62d08135eca40a71e38096c6b27800fa7f892fd0c2576d33ec501d0"  # traffic.sh 1 2000
Row = collections.namedtuple("Row", "time page user ms")


def day_name(number):
    return str(FIRST_DAY + datetime.timedelta(days=number))


def random_lag(rng):
    """Most rows come at once, some a day or six late, a few when their day has left every range."""
    kind = rng.random()
    if kind < 0.9:
        return rng.randrange(3_600_000)
    if kind < 0.96:
        return rng.randrange(DAY_MS * 3 // 2)
    return rng.randrange(6 * DAY_MS) if kind < 0.995 else rng.randrange(10 * DAY_MS, 15 * DAY_MS)


def generate(seed, rows_a_day=ROWS_A_DAY, days=DAYS, pages=PAGES):
    """Rows by the day of their arrival, in the order of arrival; times in milliseconds since the first day."""
    rng = random.Random(seed)
    arrived = []
    for day in range(days):
        arrivals = sorted(rng.randrange(DAY_MS) for _ in range(rows_a_day))
        arrived.append([Row(day * DAY_MS + at - random_lag(rng), rng.choice(pages), f"u{rng.randrange(60)}",
                            rng.randrange(20) if rng.random() < 0.9 else rng.randrange(5000)) for at in arrivals])
    return arrived


def iso(ms):
    moment = datetime.datetime.combine(FIRST_DAY, datetime.time()) + datetime.timedelta(milliseconds=ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def write_raw(folder, number, rows):
    (folder / "raw").mkdir(exist_ok=True)
    with open(folder / "raw" / f"{day_name(number)}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows((iso(row.time), *row[1:]) for row in rows)


class Batch:
    """All rows that have arrived, in a database."""

    def __init__(self):
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE TABLE rows (time INTEGER, day INTEGER, page TEXT, user TEXT, ms INTEGER)")

    def add(self, rows):
        # Days before the first one are negative: divided toward the past.
        self.database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)",
                                  [(row.time, row.time // DAY_MS, *row[1:]) for row in rows])

    def visits(self):
        """Lines of the days that are complete at a delay of one day."""
        return self.database.execute("""
            SELECT day, page, count(*), sum(ms), max(ms) FROM rows
            WHERE (day + 1) * 86400000 <= (SELECT max(time) FROM rows) - 86400000
            GROUP BY day, page ORDER BY day, CAST(page AS BLOB)""").fetchall()

    def latency(self, begin, end):
        """Lines of the days from begin to before end; the percentile by nearest rank."""
        return self.database.execute("""
            SELECT day, page, count(*), sum(ms) * 1.0 / count(*),
                   max(CASE WHEN place = (95 * total + 99) / 100 THEN ms END), count(DISTINCT user)
            FROM (SELECT *, row_number() OVER (PARTITION BY day, page ORDER BY ms) AS place,
                         count(*) OVER (PARTITION BY day, page) AS total FROM rows)
            WHERE day >= ? AND day < ? GROUP BY day, page ORDER BY day, CAST(page AS BLOB)""", (begin, end)).fetchall()


def table_of(path, columns):
    """Rows of a table as SQLite gives them: the number of the day, the page, numbers."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    if lines[0] != ["window_start", "window_end", "page", *columns]:
        raise ValueError(f"{path.name} begins with {lines[0]}")
    rows = []
    for start, end, page, *numbers in lines[1:]:
        day = (datetime.date.fromisoformat(start[:10]) - FIRST_DAY).days
        if start != f"{day_name(day)}T00:00:00Z" or end != f"{day_name(day + 1)}T00:00:00Z":
            raise ValueError(f"{path.name} has a window {start}, {end}")
        rows.append((day, page, *map(float, numbers)))
    return rows


def visits_of(folder, name="published.csv"):
    return table_of(folder / name, ["count", "ms_sum", "ms_max"])


def latency_of(folder):
    return table_of(folder / "latency.csv", ["count", "ms_avg", "ms_p95", "user_distinct"])


def start(script, *args):
    return subprocess.Popen([EXAMPLES / script, *map(str, args)], env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, start_new_session=True)


def run(script, *args, status=0):
    """Runs a script, which must end with that status; what it said."""
    with start(script, *args) as process:
        said = process.communicate(timeout=harness.TIMEOUT_SECONDS)[1].decode()
    if process.returncode != status or (status == 0 and said):
        raise ValueError(f"{script} {' '.join(map(str, args))}: status {process.returncode}\n{said}")
    return said


def first_difference(got, want):
    pairs = [(g, w) for g, w in zip(got, want) if g != w]
    return f"got {pairs[0][0]}, not {pairs[0][1]}" if pairs else f"{len(got)} rows, not {len(want)}"


def law_quarantine(tap, folder):
    batch, fault, before, nights, late_rows = Batch(), None, b"", 0, 0
    for number, rows in enumerate(generate(SEED)):
        write_raw(folder, number, rows)
        batch.add(rows)
        # At the first there is nothing that is complete; a night now and then is missed.
        if number % 5 == 3 and number != DAYS - 1:
            continue
        run("quarantine.sh", folder)
        nights += 1
        got, want = visits_of(folder), batch.visits()
        daily, published = (folder / "daily.csv").read_bytes(), (folder / "published.csv").read_bytes()
        late_rows = (folder / "late.csv").read_bytes().count(b"\n") - 1
        run("quarantine.sh", folder)
        if got != want:
            fault = f"{day_name(number)}: {first_difference(got, want)}"
        elif not daily.startswith(before):
            fault = f"{day_name(number)}: what daily.csv had is no longer there"
        elif (folder / "published.csv").read_bytes() != published or (folder / "daily.csv").read_bytes() != daily:
            fault = f"{day_name(number)}: a repeat changed the table"
        elif sum(row[2] for row in visits_of(folder, "daily.csv")) + late_rows != sum(row[2] for row in want):
            fault = f"{day_name(number)}: daily.csv and late.csv are not all rows of the complete days"
        if fault:
            break
        before = daily
    else:
        # Or nothing was tested.
        if late_rows < 100 or len(want) < 150:
            fault = f"{late_rows} late rows, {len(want)} rows published"
    left = sorted(path.name for path in folder.iterdir())
    if not fault and left != ["daily.csv", "late.csv", "lock", "published.csv", "raw", "rejects.ndjson", "state",
                              "state.lock", "state.prev"]:
        fault = f"left behind: {left}"
    # What was read is not read again: without the raw files of all nights but the last two the table is the same.
    for number in range(DAYS - 2):
        (folder / "raw" / f"{day_name(number)}.csv").unlink()
    run("quarantine.sh", folder)
    if not fault and (folder / "published.csv").read_bytes() != published:
        fault = "raw files that were read are needed again"
    tap.ok(fault is None, f"quarantine: {nights} nights, {late_rows} late rows, each table as by SQLite",
           f"WM_SEED={SEED}", fault or "")


def law_replay(tap, folder):
    batch, fault, want = Batch(), None, {}
    for number, rows in enumerate(generate(SEED + 1)):
        write_raw(folder, number, rows)
        batch.add(rows)
        begin, end = number - 7, number + 1
        run("replay.sh", folder, day_name(begin), day_name(end))
        want = {day: lines for day, lines in want.items() if day < begin or day >= end}
        for line in batch.latency(begin, end):
            want.setdefault(line[0], []).append(line)
        lines = [line for day in sorted(want) for line in want[day]]
        got, once = latency_of(folder), (folder / "latency.csv").read_bytes()
        run("replay.sh", folder, day_name(begin), day_name(end))
        if got != lines:
            fault = f"{day_name(number)}: {first_difference(got, lines)}"
        elif (folder / "latency.csv").read_bytes() != once:
            fault = f"{day_name(number)}: a repeat changed the table"
        if fault:
            break
    else:
        # Rows that came when their day had left the range need a longer one.
        everything = batch.latency(-30, DAYS)
        if latency_of(folder) == everything:
            fault = "no row came too late for the range: nothing was tested"
        run("replay.sh", folder, day_name(-30), day_name(DAYS))
        if not fault and latency_of(folder) != everything:
            fault = f"the long range: {first_difference(latency_of(folder), everything)}"
    left = sorted(path.name for path in folder.iterdir())
    if not fault and left != ["latency.csv", "lock", "raw", "rejects.ndjson"]:
        fault = f"left behind: {left}"
    tap.ok(fault is None, f"replay: {DAYS} nights, and then all days, as by SQLite", f"WM_SEED={SEED}", fault or "")


def small_folder(folder, days=12):
    for number, rows in enumerate(generate(SEED, 40, days)):
        write_raw(folder, number, rows)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def law_locked(tap, folder):
    small_folder(folder)
    fault = None
    for script in ("quarantine.sh", "replay.sh"):
        run(script, folder, *(["2025-10-20", "2025-11-01"] if script == "replay.sh" else []))
        before = contents(folder)
        write_raw(folder, 12, generate(SEED, 40, 13)[12])
        before[f"raw/{day_name(12)}.csv"] = (folder / "raw" / f"{day_name(12)}.csv").read_bytes()
        with open(folder / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            said = run(script, folder, status=1)
        if said != f"{script}: another run is at work in {folder}\n" or contents(folder) != before:
            fault = f"{script}: {said}"
        (folder / "raw" / f"{day_name(12)}.csv").unlink()
    tap.ok(fault is None, "locked: a second run leaves at once", fault or "")


def law_broken(tap, folder):
    small_folder(folder)
    faults = []
    days = (day_name(0), day_name(12))
    tables = ("published.csv", "latency.csv")
    run("quarantine.sh", folder)
    run("replay.sh", folder, *days)
    good = [(folder / name).read_bytes() for name in tables]

    def refused(what, words, *command):
        said = run(*command, status=words[0])
        if words[1] not in said or [(folder / name).read_bytes() for name in tables] != good:
            faults.append(f"{what}: {said}")

    # A record that cannot be read is told of, and does not stop the night.
    raw = folder / "raw" / f"{day_name(13)}.csv"
    raw.write_text("time,page,user,ms\nsoon,/,u1,1\n")
    for script, args in (("quarantine.sh", ()), ("replay.sh", days)):
        with start(script, folder, *args) as process:
            said = process.communicate()[1].decode()
        if process.returncode != 0 or said != f"{script}: 1 records could not be read: see {folder}/rejects.ndjson\n":
            faults.append(f"a record that is none: {process.returncode}: {said}")
        if b"soon" not in (folder / "rejects.ndjson").read_bytes():
            faults.append("a record that is none: it is not in rejects.ndjson")
    # A last line that may not be whole is told of, and read when it is: then its page is among the open windows.
    raw.write_text(f"time,page,user,ms\n{day_name(13)}T09:00:00Z,/unfinished,u1,1")
    (folder / "rejects.ndjson").unlink()
    with start("quarantine.sh", folder) as process:
        said = process.communicate()[1].decode()
    if process.returncode != 0 or said != (f"quarantine.sh: the last line of {folder}/raw/{raw.name} has no line end, and is "
                                           "not counted before it has one\n"):
        faults.append(f"a line without end: {process.returncode}: {said}")
    state = (folder / "state").read_bytes()
    with open(raw, "a", encoding="utf-8") as file:
        file.write("\n")
    run("quarantine.sh", folder)
    if b"/unfinished" in state or b"/unfinished" not in (folder / "state").read_bytes():
        faults.append("a line without end is read before it has one, or not when it has")
    good[0] = (folder / "published.csv").read_bytes()
    # A file that cannot be read, one with other columns.
    raw.unlink()
    raw.mkdir()
    refused("a folder", (3, "Is a directory"), "quarantine.sh", folder)
    refused("a folder", (3, "Is a directory"), "replay.sh", folder, *days)
    raw.rmdir()
    raw.write_text("at,page,ms\n2025-10-21,/,1\n")
    refused("other columns", (2, "another column 'at'"), "quarantine.sh", folder)
    refused("other columns", (2, "another column 'at'"), "replay.sh", folder, *days)
    raw.unlink()
    # Raw files that are gone: the table must not lose the range.
    refused("no rows", (1, "has no rows from 2025-09-01 to before 2025-09-02: the table stays as it is"), "replay.sh",
            folder, "2025-09-01", "2025-09-02")
    refused("older files alone", (1, f"{folder}/raw has no file of 2025-11-05 or later: the table stays as it is\n"),
            "replay.sh", folder, "2025-11-05", "2025-11-06")
    for path in (folder / "raw").iterdir():
        path.unlink()
    refused("no files", (1, f"{folder}/raw has no *.csv: there is nothing to count"), "quarantine.sh", folder)
    refused("no files", (1, f"{folder}/raw has no file of {days[0]} or later"), "replay.sh", folder, *days)
    left = sorted(path.name for path in folder.glob("*.new"))
    if left:
        faults.append(f"files are left: {left}")
    # What is typed wrong.
    for command in (("quarantine.sh",), ("quarantine.sh", folder, folder), ("replay.sh",), ("replay.sh", folder, "2025-11-05"),
                    ("replay.sh", folder, "yesterday", "today"), ("pipeline/day.sh",)):
        refused(command, (2, f"usage: {command[0].removeprefix('pipeline/')} FOLDER"), *command)
    tap.ok(not faults, "broken: what cannot be read leaves the tables as they were", *faults)


class Reader(threading.Thread):
    """Opens a table again and again; it must be one of two."""

    def __init__(self, path, sums):
        super().__init__()
        self.path, self.sums = path, sums
        self.reads, self.fault, self.is_over = 0, None, False

    def run(self):
        while not self.is_over and not self.fault:
            data = self.path.read_bytes()
            self.reads += 1
            if hashlib.sha256(data).digest() not in self.sums:
                self.fault = f"a reader found a table of {len(data)} bytes, neither the old nor the new one"
            time.sleep(0.0005)


def put(path, data):
    """As the jobs do it."""
    new = path.with_name("put.new")
    new.write_bytes(data)
    new.rename(path)


def read_all(folder, names):
    return {name: (folder / name).read_bytes() for name in names if (folder / name).exists()}


def kill_often(tap, folder, name, table, command, late_name, goes_on=(), outputs=()):
    """Kills a job at moments of all kinds, among them when the new table is being written.

    goes_on are files that the next run goes on from, outputs those of them that are in the end as without a kill."""
    rng = random.Random(SEED)
    table = folder / table
    old, begun = table.read_bytes(), read_all(folder, goes_on)
    begin = time.monotonic()
    run(*command)
    seconds = time.monotonic() - begin
    new, ended = table.read_bytes(), read_all(folder, outputs)
    put(table, old)
    reader = Reader(table, {hashlib.sha256(old).digest(), hashlib.sha256(new).digest()})
    reader.start()
    killed, while_writing, afterwards, fault = 0, 0, 0, None
    for attempt in range(10 * KILLS):
        if killed == KILLS or fault:
            break
        put(table, old)
        for path, data in begun.items():
            (folder / path).write_bytes(data)
        with start(*command) as process:
            if attempt % 2:
                time.sleep(rng.random() * seconds)
            else:
                # When there is a new table beside the old one.
                while process.poll() is None and not list(folder.glob(late_name)):
                    time.sleep(0.0005)
                time.sleep(rng.random() * seconds * 0.3)
            is_writing = bool(list(folder.glob(late_name)))
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            is_killed = process.wait() == -signal.SIGKILL
            killed += is_killed
            while_writing += is_killed and is_writing
        data = table.read_bytes()
        if data not in (old, new):
            fault = f"killed {killed} times: a table of {len(data)} bytes, neither the old nor the new one"
        afterwards += data == new
        if goes_on and not fault:
            # A process of the group may be dying still, and holds the lock.
            with open(folder / "lock", "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
            run(*command)
            if table.read_bytes() != new or read_all(folder, outputs) != ended:
                fault = f"killed {killed} times: the next run does not end as one that was not killed"
    reader.is_over = True
    reader.join()
    run(*command)
    fault = fault or reader.fault
    if not fault and table.read_bytes() != new:
        fault = "the run after the kills gives another table"
    if not fault and [path for path in folder.iterdir() if path.name.startswith(".") or path.suffix == ".new"]:
        fault = f"left behind: {sorted(path.name for path in folder.iterdir())}"
    if not fault and (old == new or while_writing == 0):
        fault = f"nothing was tested: {while_writing} kills while the table was written"
    tap.ok(fault is None and killed == KILLS,
           f"killed: {name} {killed} times, {while_writing} of them while it wrote, {reader.reads} reads: "
           "the old table or the new", fault or f"{killed} kills of {KILLS}")
    tap.note(f"{afterwards} times the new table was in place already")


def law_killed(tap, folder):
    # A long table, so that its rewriting takes a while; its days are before those of the raw rows.
    replay = folder / "replay"
    replay.mkdir()
    small_folder(replay)
    days = (day_name(0), day_name(12))
    run("replay.sh", replay, day_name(0), day_name(6))
    lines = (replay / "latency.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    days_before = [str(FIRST_DAY + datetime.timedelta(days=number)) for number in range(-700, -30)]
    history = [f"{day}T00:00:00Z,{after}T00:00:00Z,/{page:03d},{page + 1},1.5,2,3\n"
               for day, after in zip(days_before, days_before[1:]) for page in range(300)]
    (replay / "latency.csv").write_text("".join([lines[0], *history, *lines[1:]]), encoding="utf-8")
    kill_often(tap, replay, "replay.sh", "latency.csv", ("replay.sh", replay, *days), ".latency.csv.*")

    quarantine = folder / "quarantine"
    quarantine.mkdir()
    arrived = generate(SEED, 10_000, 12, [f"/{i:04d}" for i in range(3000)])
    for number, rows in enumerate(arrived[:-2]):
        write_raw(quarantine, number, rows)
    run("quarantine.sh", quarantine)
    for number, rows in enumerate(arrived[-2:]):
        write_raw(quarantine, 10 + number, rows)
    outputs = ("daily.csv", "late.csv", "rejects.ndjson")
    kill_often(tap, quarantine, "quarantine.sh", "published.csv", ("quarantine.sh", quarantine), "published.new",
               ("state", "state.prev", *outputs), outputs)


def traffic(folder, seed, events):
    """The rows, the truth and what is said of them."""
    command = [EXAMPLES / "pipeline/traffic.sh", str(seed), str(events), "truth.csv"]
    result = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, timeout=harness.TIMEOUT_SECONDS,
                            check=True)
    return result.stdout.decode(), (folder / "truth.csv").read_text(encoding="utf-8"), result.stderr.decode()


class Day:
    """Traffic as SQLite sees it: how many events are of which kind, and the table of those whose time can be."""

    def __init__(self, rows):
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE TABLE rows (arrived TEXT, time TEXT, id TEXT, host TEXT, page TEXT, ms INTEGER)")
        self.database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", rows)
        self.database.execute("""CREATE VIEW events AS SELECT min(arrived) AS arrived, time, id, page, ms,
            strftime('%s', min(arrived)) - strftime('%s', time) AS lag FROM rows GROUP BY id""")

    def number(self, condition):
        return self.database.execute(f"SELECT count(*) FROM events WHERE {condition}").fetchone()[0]

    def table(self):
        lines = self.database.execute("""
            SELECT strftime('%Y-%m-%dT%H:%M:00Z', time) AS minute, strftime('%Y-%m-%dT%H:%M:00Z', time, '+1 minute'), page,
                   count(*), sum(ms), max(ms)
            FROM events WHERE lag BETWEEN 0 AND 80000 GROUP BY minute, page ORDER BY minute, page""")
        return ["window_start,window_end,page,count,ms_sum,ms_max", *(",".join(map(str, line)) for line in lines)]


def merged_day(folder, header, rows):
    """What the tools make of rows of which each has an id of its own."""
    lines = [header, *(",".join(row) for row in rows)]
    (folder / "rows.csv").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    window = ["wm-window", "-q", "-t", "time", "--tumbling", "1m", "-g", "page", "-a", "count,sum:ms,max:ms"]
    on_time = ["-w", "10m", "--ingest", "arrived", "--max-ahead", "1h", "--late", "late.csv", "--rejects", "rejects.ndjson"]
    (folder / "daily.csv").write_bytes(harness.run([*window, *on_time, "rows.csv"], cwd=folder).stdout)
    (folder / "late-daily.csv").write_bytes(harness.run([*window, "late.csv"], cwd=folder).stdout)
    rules = ["-k", "window_start,window_end,page", "--sum", "count,ms_sum", "--max", "ms_max"]
    return harness.run(["wm-merge", *rules, "daily.csv", "late-daily.csv"], cwd=folder).stdout.decode().splitlines()


def law_traffic(tap, folder):
    text, truth, said = traffic(folder, SEED, 30_000)
    header, *lines = text.splitlines()
    rows = [line.split(",") for line in lines]
    day = Day(rows)
    want = day.table()
    faults = []
    # The time of a wrong clock does not say how late its row was: these may be late or not.
    late, twice, wrong = day.number("lag BETWEEN 1000 AND 80000"), len(rows) - 30_000, day.number("lag < 0 OR lag > 80000")
    words = [int(word) for word in said.split() if word.isdigit()]
    if words[0] != 30_000 or words[2:] != [twice, wrong] or not late <= words[1] <= late + wrong:
        faults.append(f"it says {said}there are {late} late, {twice} sent twice, {wrong} with a wrong clock")
    if not (400 < late < 900 and 600 < twice < 1200 and 80 < wrong < 250):
        faults.append(f"shares: {late} late, {twice} sent twice, {wrong} with a wrong clock")
    if day.number("lag BETWEEN 301 AND 1799") != 0:
        faults.append("rows arrive between 5 and 30 minutes late")
    if day.number("time LIKE '1970-01-01T00:00:%'") == 0 or day.number("lag < -80000") == 0:
        faults.append("clocks are wrong in one way alone")
    if [row[0] for row in rows] != sorted(row[0] for row in rows):
        faults.append("rows do not stand in the order of their arrival")
    if truth.splitlines() != want:
        faults.append(f"truth.csv: {first_difference(truth.splitlines(), want)}")
    if traffic(folder, SEED, 30_000) != (text, truth, said):
        faults.append("the same seed gives other rows")
    # On every machine.
    if hashlib.sha256(traffic(folder, 1, 2000)[0].encode()).hexdigest() != TRAFFIC:
        faults.append("seed 1 gives other rows than it gave when this test was written")
    if traffic(folder, SEED + 1, 30_000)[0] == text:
        faults.append("another seed gives the same rows")
    tap.ok(not faults, f"traffic: {late} late, {twice} sent twice, {wrong} with a wrong clock, and the truth", *faults)

    # Each id once, and no clock of 1970; a clock that is ahead is seen by wm-window.
    once = {row[2]: row for row in reversed(rows) if not row[1].startswith("1970")}
    got = merged_day(folder, header, [row for row in rows if once.get(row[2]) is row])
    late = (folder / "late.csv").read_bytes().count(b"\n") - 1
    tap.ok(got == want and late >= 200, f"traffic: {late} late rows folded in give the truth", first_difference(got, want))


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def law_pipeline(tap, folder):
    events, day_folder = 60_000, folder / "day"
    result = subprocess.run([EXAMPLES / "pipeline/run.sh", day_folder, str(SEED), str(events), "3"], env=ENVIRONMENT,
                            capture_output=True, timeout=harness.TIMEOUT_SECONDS, check=False)
    said = result.stdout.decode()
    if result.returncode != 0 or result.stderr:
        raise ValueError(f"run.sh: status {result.returncode}\n{said}{result.stderr.decode()}")
    header, *lines = lines_of(day_folder / "traffic.csv")
    rows = [line.split(",") for line in lines]
    day = Day(rows)
    faults = []

    # Rows, not events: of each kind the ones that were sent again too.
    delay = datetime.timedelta(minutes=10)
    highest, seen = datetime.datetime.min, set()
    kinds, want, on_time = collections.Counter(), collections.defaultdict(list), []
    for line, row in zip(lines, rows):
        arrived, moment = (datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ") for text in row[:2])
        if moment - arrived > datetime.timedelta(hours=1) or moment.year < 2025:
            kind = "rejected"
        else:
            highest = max(highest, moment)
            kind = "late" if moment < highest - delay else "again" if row[2] in seen else "on time"
        if kind == "on time":
            seen.add(row[2])
            on_time.append(row)
        kinds[kind] += 1
        want[kind].append(line)
    rejects = [json.loads(line) for line in lines_of(day_folder / "rejects.ndjson")]
    if [reject["raw"] for reject in rejects] != want["rejected"]:
        faults.append("rejects.ndjson does not hold the rows with a wrong clock")
    if {reject["reason"] for reject in rejects} != {"implausible-time"}:
        faults.append("rejects.ndjson has other reasons")
    for name, kind in (("late.csv", "late"), ("again.csv", "again")):
        got = lines_of(day_folder / name)
        # Two columns more than the traffic.
        if not got[0].startswith(header + ",") or [line.rsplit(",", 2)[0] for line in got[1:]] != want[kind]:
            faults.append(f"{name} does not hold the rows that are of this kind")
    tables = {"on-time.csv": Day(on_time).table(), "published.csv": day.table()}
    for name, table in tables.items():
        got = lines_of(day_folder / name)
        if got != table:
            faults.append(f"{name}: {first_difference(got, table)}")
    if lines_of(day_folder / "truth.csv") != tables["published.csv"]:
        faults.append("truth.csv is not the truth")

    lacking = len(set(tables["published.csv"]) - set(tables["on-time.csv"]))
    for words in (f" {len(rows)} rows in ", f"  {kinds['rejected']} rejected,", f"  {kinds['again']} sent again ",
                  f"  {kinds['late']} late,", f"  {kinds['on time']} counted on time ",
                  f"  {day.number('lag BETWEEN 0 AND 80000')} with the late ones, ",
                  f"  {lacking} are not in on-time.csv,", "  0 are not in published.csv\n"):
        if words not in said:
            faults.append(f"it does not say '{words.strip()}':\n{said}")
    if not said.endswith(" kills and one run to the end all tables are the same, byte for byte.\n"):
        faults.append(said)
    if min(kinds.values()) < 200 or lacking < 500:
        faults.append(f"nothing was tested: {kinds}, {lacking}")
    tap.ok(not faults, f"pipeline: {len(rows)} rows, " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()),
           f"WM_SEED={SEED}", *faults)


def kill_some(process, folder, tool):
    """Kills processes of a tool that work in a folder; how many."""
    killed = 0
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(path / "cwd") == str(folder) and (path / "comm").read_text().strip() == tool:
                # Not one that has taken the number since: the group is ours.
                if os.getpgid(int(path.name)) == process.pid:
                    os.kill(int(path.name), signal.SIGKILL)
                    killed += 1
        except OSError:
            pass
    return killed


def law_pipe_killed(tap, folder):
    folder = folder.resolve()
    rng = random.Random(SEED)
    whole, again = folder / "whole", folder / "again"
    whole.mkdir()
    (whole / "traffic.csv").write_text(traffic(folder, SEED, 150_000)[0], encoding="utf-8")
    begin = time.monotonic()
    run("pipeline/day.sh", whole)
    seconds = time.monotonic() - begin
    names = ("on-time.csv", "published.csv", "late.csv", "again.csv", "rejects.ndjson")
    want = read_all(whole, names)
    kills, amid, fault = collections.Counter(), 0, None
    for history in range(12):
        again.mkdir()
        os.link(whole / "traffic.csv", again / "traffic.csv")
        told = []
        for _ in range(rng.randint(2, 5)):
            tool = rng.choice(["all", "wm-stamp", "wm-dedup", "wm-window"])
            told.append(tool)
            with start("pipeline/day.sh", again) as process:
                time.sleep(rng.random() * seconds * 0.7)
                if tool != "all":
                    kills[tool] += kill_some(process, again, tool)
                else:
                    try:
                        os.killpg(process.pid, signal.SIGKILL)
                        kills[tool] += 1
                    except ProcessLookupError:
                        pass
                process.communicate(timeout=harness.TIMEOUT_SECONDS)
            table = again / "on-time.csv"
            amid += table.exists() and 0 < table.stat().st_size < len(want["on-time.csv"])
        run("pipeline/day.sh", again)
        # And once more, with nothing left to do.
        run("pipeline/day.sh", again)
        got = read_all(again, names)
        if got != want:
            fault = f"history {history}: killed {', '.join(told)}: {[name for name in names if got.get(name) != want[name]]}"
            break
        left = [path.name for path in again.iterdir() if path.suffix == ".new" or path.name == "failed"]
        if left:
            fault = f"left behind: {left}"
            break
        shutil.rmtree(again)
    if not fault and (amid < 5 or len(kills) < 4):
        fault = f"nothing was tested: {dict(kills)}, {amid} of them amid the table"
    tap.ok(fault is None, f"pipe-killed: {sum(kills.values())} kills, {amid} times amid the table: the same in the end",
           f"WM_SEED={SEED}", fault or "")
    tap.note(", ".join(f"{count} {tool}" for tool, count in sorted(kills.items())))


LAWS = {"quarantine": law_quarantine, "replay": law_replay, "locked": law_locked, "broken": law_broken,
        "traffic": law_traffic, "pipeline": law_pipeline, "pipe-killed": law_pipe_killed, "killed": law_killed}


def main():
    tap = harness.Tap()
    for name in sys.argv[1:] or LAWS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                LAWS[name](tap, pathlib.Path(folder))
            except (OSError, ValueError) as error:
                tap.ok(False, name, error)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
