#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of time zones, held to Python's zoneinfo on the same system data.

local     local times around every kind of clock change mean the instants that zoneinfo says, in either --repeated-hour
day       calendar days and their offsets in --tz begin at local midnight
calendar  days, weeks, months and years, n of them, begin where they do by the clock, with --offset too

WM_SEED takes other times, WM_ROUNDS all zones (0) or so many.
"""

import datetime
import os
import pathlib
import random
import sys
import tempfile
import zoneinfo

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
ZONES = int(os.environ.get("WM_ROUNDS", "40"))
ROWS = 400
SYSTEM = pathlib.Path("/usr/share/zoneinfo")
EPOCH = datetime.datetime(1970, 1, 1)
UTC_EPOCH = EPOCH.replace(tzinfo=datetime.timezone.utc)
MICROSECOND = datetime.timedelta(microseconds=1)


def zone_names():
    """Names that the system's data has in the tables of both readers."""
    table = SYSTEM / "zone1970.tab"
    if not table.exists():
        return []
    lines = table.read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[2] for line in lines if line and not line.startswith("#")]


def changes(zone, rng, count):
    """UTC seconds at which the offset of a zone changes, found by halving a stretch at whose ends it differs."""

    def offset(second):
        return (UTC_EPOCH + datetime.timedelta(seconds=second)).astimezone(zone).utcoffset()

    found = []
    for _ in range(count * 20):
        low = rng.randrange(-2_000_000_000, 4_000_000_000)
        high = low + rng.choice((86_400 * 40, 86_400 * 200))
        if offset(low) == offset(high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
        found.append(high)
        if len(found) == count:
            break
    return found


def local_times(zone, rng):
    """Local times without a zone: near changes of the clock and anywhere, down to the microsecond."""
    edges = changes(zone, rng, 12)
    times = []
    for _ in range(ROWS):
        if edges and rng.random() < 0.7:
            second = rng.choice(edges)
            offset = (UTC_EPOCH + datetime.timedelta(seconds=second - rng.choice((0, 1)))).astimezone(zone).utcoffset()
            local = EPOCH + datetime.timedelta(seconds=second) + offset
            local += datetime.timedelta(seconds=rng.choice((-3600, -1800, -1, 0, 1, 1799, 1800, 3599, 3600, 7200)))
        else:
            local = EPOCH + datetime.timedelta(seconds=rng.randrange(-2_000_000_000, 4_000_000_000))
        times.append(local + rng.choice((0, 0, 1, -1, 999_999, 500_000)) * MICROSECOND)
    return times


def stamped(folder, name, times, hour):
    (folder / "times.csv").write_text("t\n" + "".join(f"{time.isoformat(' ')}\n" for time in times))
    result = harness.run(["wm-stamp", "-q", "-t", "t", "--time-format", "iso", "--tz", name, "--repeated-hour", hour,
                          "--add", "time", "-o", "csv", "times.csv"], cwd=folder)
    if result.returncode != 0:
        raise ValueError(f"status {result.returncode}: {result.stderr.decode(errors='replace')}")
    return [line.rsplit(",", 1)[1] for line in result.stdout.decode().splitlines()[1:]]


def expected_instant(zone, local, hour):
    """A skipped time goes forward by the gap: what fold 0 gives, as it has the offset from before the change."""
    first = local.replace(tzinfo=zone, fold=0)
    second = local.replace(tzinfo=zone, fold=1)
    is_repeated = first.utcoffset() > second.utcoffset()
    aware = second if is_repeated and hour == "later" else first
    us = (local - aware.utcoffset() - EPOCH) // MICROSECOND
    return harness.print_instant(us)


def law_local(tap, folder, names):
    faults = []
    rows = 0
    for name in names:
        zone = zoneinfo.ZoneInfo(name)
        rng = random.Random(f"{SEED} {name}")
        times = local_times(zone, rng)
        for hour in ("earlier", "later"):
            got = stamped(folder, name, times, hour)
            want = [expected_instant(zone, time, hour) for time in times]
            rows += len(want)
            faults += [f"{name}, {hour}: {time}: got {g}, want {w}" for time, g, w in zip(times, got, want) if g != w]
            if len(got) != len(want):
                faults.append(f"{name}: {len(got)} rows of {len(want)}")
    tap.ok(not faults and rows > 0, f"local: {rows} times in {len(names)} zones", *faults[:6])


def midnight(zone, day):
    """The first instant of a local day, in microseconds of UTC: where midnight is skipped, the end of the gap."""
    local = datetime.datetime.combine(day, datetime.time())
    aware = local.replace(tzinfo=zone, fold=0)
    return (local - aware.utcoffset() - EPOCH) // MICROSECOND


def law_day(tap, folder, names):
    faults = []
    rows = 0
    for name in names:
        zone = zoneinfo.ZoneInfo(name)
        rng = random.Random(f"{SEED} {name} days")
        seconds = changes(zone, rng, 6)
        # Since 1970 alone: before, some zones lay on the other side of the date line, with days twice or not at all.
        instants = sorted({rng.choice(seconds) + rng.randrange(-90_000, 90_000) for _ in range(60)} if seconds else
                          {rng.randrange(0, 4_000_000_000) for _ in range(60)})
        instants = [second for second in instants if second > 0]
        (folder / "instants.csv").write_text("t\n" + "".join(f"{second}\n" for second in instants))
        result = harness.run(["wm-window", "-q", "-t", "t", "--time-format", "s", "--tz", name, "--tumbling", "1d",
                              "--output-time", "us", "instants.csv"], cwd=folder)
        if result.returncode != 0:
            raise ValueError(f"status {result.returncode}: {result.stderr.decode(errors='replace')}")
        counts = {}
        for second in instants:
            day = (UTC_EPOCH + datetime.timedelta(seconds=second)).astimezone(zone).date()
            window = midnight(zone, day), midnight(zone, day + datetime.timedelta(days=1))
            counts[window] = counts.get(window, 0) + 1
        want = [f"{start},{end},{count}" for (start, end), count in sorted(counts.items(), key=lambda item: item[0][::-1])]
        got = result.stdout.decode().splitlines()[1:]
        rows += len(want)
        if got != want:
            pair = next(((g, w) for g, w in zip(got, want) if g != w), (len(got), len(want)))
            faults.append(f"{name}: got {pair[0]}, want {pair[1]}")
    tap.ok(not faults and rows > 0, f"day: {rows} days in {len(names)} zones", *faults[:6])


# Days on which clocks change: by an hour, by half of one, at midnight, and by leaving out a whole day.
CHANGES = [("Europe/Berlin", 2025, 3, 30), ("Europe/Berlin", 2025, 10, 26), ("America/New_York", 2024, 11, 3),
           ("Australia/Sydney", 2025, 4, 6), ("Australia/Lord_Howe", 2025, 10, 5), ("America/Sao_Paulo", 2018, 11, 4),
           ("Pacific/Apia", 2011, 12, 30), ("Africa/Casablanca", 2024, 3, 10), ("America/St_Johns", 1988, 4, 3)]
CALENDAR_STREAMS = 60


def calendar_start(unit, number, offset_us, zone):
    """Where window `number` of a calendar unit starts; where the clock skips that time, forward by the gap."""
    if unit in ("mo", "y"):
        months = number if unit == "mo" else 12 * number
        day = datetime.datetime(1970 + months // 12, months % 12 + 1, 1)
    else:
        day = EPOCH + datetime.timedelta(days=number if unit == "d" else 7 * number + 4)
    local = day + offset_us * MICROSECOND
    return (local - local.replace(tzinfo=zone, fold=0).utcoffset() - EPOCH) // MICROSECOND


def calendar_fault(folder, seed):
    rng = random.Random(seed)
    name, *date = rng.choice(CHANGES)
    zone = zoneinfo.ZoneInfo(name)
    unit, count = rng.choice(["d", "d", "d", "w", "mo", "y"]), rng.choice([1, 1, 1, 2, 3])
    offset_us = round(rng.choice([0, 6, 2.5, -5, 30, 1, rng.uniform(-30, 30)]) * 3_600_000_000)
    middle = (datetime.datetime(*date) - EPOCH) // MICROSECOND
    times = [middle + rng.randrange(-50 * 3_600_000_000, 50 * 3_600_000_000) for _ in range(40)]
    days = {"d": 1, "w": 7, "mo": 31, "y": 366}[unit] * count
    counts = {}
    for time_us in times:
        number = time_us // (86_400_000_000 * days) - 3
        while calendar_start(unit, (number + 1) * count, offset_us, zone) <= time_us:
            number += 1
        window = tuple(calendar_start(unit, (number + i) * count, offset_us, zone) for i in (0, 1))
        counts[window] = counts.get(window, 0) + 1
    (folder / "times.csv").write_text("t\n" + "".join(f"{time_us}\n" for time_us in times))
    command = ["wm-window", "-q", "-t", "t", "--time-format", "us", "--output-time", "us", "--tz", name,
               "--tumbling", f"{count}{unit}", "--offset", f"{offset_us}us", "times.csv"]
    result = harness.run(command, cwd=folder)
    if result.returncode != 0:
        raise ValueError(f"status {result.returncode}: {result.stderr.decode(errors='replace')}")
    got = sorted(tuple(map(int, line.split(","))) for line in result.stdout.decode().splitlines()[1:])
    want = sorted((*window, rows) for window, rows in counts.items())
    return None if got == want else f"seed {seed}: {' '.join(command)}: got {got}, want {want}"


def law_calendar(tap, folder):
    faults = [fault for i in range(CALENDAR_STREAMS) if (fault := calendar_fault(folder, SEED + i))]
    tap.ok(not faults, f"calendar: windows of {CALENDAR_STREAMS} streams about changes of clocks", *faults[:3])


def main():
    tap = harness.Tap()
    names = zone_names()
    if not names:
        tap.skip("local", "the system has no table of zones")
        return tap.done()
    if ZONES:
        names = sorted(random.Random(SEED).sample(names, min(ZONES, len(names))))
    with tempfile.TemporaryDirectory(prefix="wm-zones-") as name:
        folder = pathlib.Path(name)
        law_local(tap, folder, names)
        law_day(tap, folder, names)
        law_calendar(tap, folder)
    return tap.done()


sys.exit(main())
