#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold wm-join to answers recorded from Spark and Flink (the README.md beside the cases).

Each case of Spark runs once: both sides have a column with the number of the batch (--trigger column:batch). The rows of every
batch, as a multiset, the watermark by which the batch was judged, and the numbers of rows held, taken in, removed and
dropped must be Spark's. Names on the command line run those cases alone.

A side is NDJSON if one of its fields is NULL, which CSV does not have, else CSV; so both formats are joined, and with each
other. The number of a batch in which neither side has a row is told by one without a time, which is rejected.

Of the cases of Flink the rows are compared as a set. Late rows, which Flink does not drop, are left out of its answer; who had
no other match has none then.
"""

import collections
import json
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
import run_spark

CASES = run_spark.CASES / "join"
FLINK_CASES = run_spark.CASES.parent / "flink/join"
SIDES = ("left", "right")

# What differs on purpose. "counts" are not compared; rows of which "without" is true are left out; of "batches" only so many
# are compared. All else of a case is compared and must agree.
NULL_TIMES = {"counts": {"total", "updated"},
              "why": "rows without event time are rejected; on a preserved side Spark holds them for ever"}
NULL_KEYS = {"counts": run_spark.COUNTS, "without": lambda row: has_null_key(row),
             "why": "Spark's full outer join takes NULL for equal to NULL; here a NULL key matches nothing"}
CONDITION = {"counts": run_spark.COUNTS, "without": lambda row: row.get("l_val") == "no" or has_null_key(row),
             "why": "an extra condition on the preserved side alone: such rows, and where NULL matches NULL those"}
FILTER = {"why": "an extra condition on the left alone: its rows are filtered before"}
RESTART = {"batches": 4, "why": "run without its restarts, after which Spark's watermark waits for both sides anew"}
EXCEPTIONS = {
    "07_join_condition_watermark_inner": FILTER,
    "07_join_condition_watermark_left_outer": CONDITION,
    "07_join_condition_watermark_left_semi": FILTER,
    "07_join_condition_watermark_right_outer": FILTER,
    "07_join_left_only_condition_full_outer": CONDITION,
    "07_join_left_only_condition_left_outer": CONDITION,
    "07_join_nulls_full_outer": NULL_KEYS,
    "07_join_nulls_left_outer": NULL_TIMES,
    "07_join_nulls_right_outer": NULL_TIMES,
    "07_join_nulls_window_eq_full_outer": NULL_KEYS,
    "11_rand12_join_full_outer": NULL_KEYS,
    "12_restart_join_full_outer_min": RESTART,
    "12_restart_join_left_outer_max": {"why": "run without its restarts"},
    "12_restart_join_left_outer_min": RESTART,
} | {f"11_rand{number:02d}_join_{kind}": NULL_TIMES for kind, numbers in {
    "left_outer": (0, 1, 3, 4, 6, 8, 13, 14, 16), "right_outer": (5,), "full_outer": (9, 19)}.items() for number in numbers}


def has_null_key(row):
    return any(row.get(f"{side}_event_time", row.get(f"{side}_window_start")) is not None and row.get(f"{side}_id") is None
               for side in "lr")


class Case:
    def __init__(self, path):
        self.name = path.stem
        self.options = {}
        self.stages = []
        self.batches = []
        for line in path.read_text(encoding="utf-8").splitlines():
            word, _, rest = line.partition(" ")
            if word in ("l", "r"):
                self.batches[-1]["left" if word == "l" else "right"].append(self.row(rest))
            elif word == ">":
                self.batches[-1]["expected"].append(self.row(rest))
            elif word == "<":
                self.batches[-1]["input"].append(self.row(rest))
            elif word == "batch":
                words = rest.split()
                watermark = None if words[2] == "none" else harness.parse_instant(self.instant(words[2]))
                self.batches.append({"left": [], "right": [], "input": [], "expected": [], "watermark": watermark,
                                     **dict(zip(words[3::2], map(int, words[4::2])))})
            elif word == "stage":
                kind, _, details = rest.partition(" ")
                self.stages.append((kind, json.loads(details or "{}")))
            elif word:
                self.options[word] = rest
        self.output = self.options["output"].split()

    def instant(self, text):
        """The times of a case are short: of its date alone, in UTC."""
        is_short = len(text) >= 8 and text[2] == text[5] == ":"
        return f"{self.options['date']}T{text}Z" if is_short else text

    def row(self, text):
        """The fields of a row; NULL is None."""
        return tuple(self.instant(field) if field else None for field in text.split(","))

    def names(self, side):
        """A side's columns: those of the other have other names."""
        return [f"{side[0]}_{column.split(':')[0]}" for column in self.options[side].split()]

    def range_end(self, name):
        """An end of --between; an empty one is open."""
        sign, _, duration = self.options.get(name, "<= ").partition(" ")
        return sign == "<", duration

    def condition(self):
        if "window_equality" in self.options:
            return ["--tumbling", self.options["window_equality"]]
        if "time_equality" in self.options:
            return ["--between", "0s,0s"]
        if "lower" not in self.options and "upper" not in self.options:
            return []
        (is_low_strict, low), (is_high_strict, high) = self.range_end("lower"), self.range_end("upper")
        return ["--between", f"{'[('[is_low_strict]}{low},{high}{'])'[is_high_strict]}"]

    def command(self):
        kind = self.options["join"].removesuffix("_outer")
        args = ["wm-join", "--type", "semi" if kind == "left_semi" else kind, *self.condition()]
        keys = self.options["keys"].split()
        for side in SIDES:
            args += [f"--{side}-key", ",".join(f"{side[0]}_{key}" for key in keys)]
            args += [f"--{side}-time", f"{side[0]}_event_time"]
            args += [f"--{side}-delay", self.options[f"{side}_threshold"]]
        if self.options["policy"] != "min":
            args += ["--policy", self.options["policy"]]
        return args + ["--compat", "spark", "--trigger", "column:batch", "--eof", "trigger", "-o", "ndjson"]

    def rows(self, side, batch):
        """A side's rows of a batch. The condition is one of the left alone: a row that fails it is left out, or, where it is
        to come out in the end, has no key."""
        rows = batch[side]
        if side == "right" or "condition" not in self.options:
            return rows
        if self.options["condition"] != "l_val <> 'no'":
            raise ValueError(f"condition {self.options['condition']}")
        if self.options["join"] not in ("left_outer", "full_outer"):
            return [row for row in rows if row[2] != "no"]
        return [row if row[2] != "no" else (row[0], None, row[2]) for row in rows]

    def write(self, folder):
        """The two inputs; returns their names and how many rows have no event time."""
        paths, timeless = [], 0
        for side in SIDES:
            names = [*self.names(side), "batch"]
            rows = []
            for number, batch in enumerate(self.batches):
                rows += [(*row, str(number)) for row in self.rows(side, batch)]
                if side == "left" and not batch["left"] and not batch["right"]:
                    rows.append((*[None] * (len(names) - 1), str(number)))
            timeless += sum(row[names.index(f"{side[0]}_event_time")] is None for row in rows)
            if any(None in row for row in rows):
                text = "".join(json.dumps(dict(zip(names, row))) + "\n" for row in rows)
                paths.append(f"{side}.ndjson")
            else:
                text = "".join(",".join(row) + "\n" for row in [names, *rows])
                paths.append(f"{side}.csv")
            (folder / paths[-1]).write_text(text, encoding="utf-8")
        return paths, timeless


def window_of(case, text):
    """The bounds of the window of a time, as Spark shows them in its place."""
    size = int(case.options["window_equality"].split()[0]) * 1_000_000
    time = harness.parse_instant(text)
    return time - time % size, time - time % size + size


def meaning(case, row, columns):
    """What a row says, with the windows of its times where Spark has those."""
    values = []
    for name in columns:
        value = row.get(name)
        if "window_equality" in case.options and name.endswith("_window_start"):
            time = row.get(name[0] + "_event_time")
            values += [None, None] if time is None else list(window_of(case, time))
        elif "window_equality" not in case.options or not name.endswith("_window_end"):
            instant = harness.parse_instant(value) if value is not None else None
            values.append(value if instant is None else instant)
    return tuple(values)


def judge(case, folder):
    """None if the tool agrees with Spark, else the first difference."""
    exception = EXCEPTIONS.get(case.name, {})
    paths, timeless = case.write(folder)
    args = [*case.command(), "--report", "report.ndjson"]
    result = harness.run([*args, *paths], cwd=folder)
    if result.returncode not in (0, 1) or not (folder / "report.ndjson").exists():
        return f"exit status {result.returncode} of {' '.join(args)}\n{result.stderr.decode(errors='replace')}"

    progress, report = harness.read_report(folder / "report.ndjson")
    if fault := harness.ledger_fault(report):
        return fault
    if report["rows_rejected"] != timeless or result.returncode != bool(timeless):
        return f"exit status {result.returncode}, {report['rows_rejected']} rows rejected, expected {timeless}"
    if [entry["batchId"] for entry in progress] != list(range(len(case.batches))):
        return f"progress of batches {[entry['batchId'] for entry in progress]}, expected 0 to {len(case.batches) - 1}"
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    if sum(entry["sink"]["numOutputRows"] for entry in progress) != len(rows):
        return "the progress objects count other rows than were written"

    is_told = lambda row: not exception.get("without", lambda row: False)(row)
    rows = iter(rows)
    for number, (batch, entry) in enumerate(list(zip(case.batches, progress))[:exception.get("batches")]):
        got = [next(rows) for _ in range(entry["sink"]["numOutputRows"])]
        want = [dict(zip(case.output, row)) for row in batch["expected"]]
        told = collections.Counter(meaning(case, row, case.output) for row in got if is_told(row))
        wanted = collections.Counter(
            tuple(harness.parse_instant(value) if value and harness.parse_instant(value) is not None else value
                  for value in row.values()) for row in want if is_told(row))
        if told != wanted:
            return (f"batch {number}: Spark's rows, not ours\n" + "\n".join(map(str, (wanted - told).elements())) +
                    "\nours, not Spark's\n" + "\n".join(map(str, (told - wanted).elements())))
        watermark = entry["eventTime"].get("watermark")
        instant = watermark and harness.parse_instant(watermark)
        if instant != batch["watermark"]:
            return f"batch {number}: judged by watermark {watermark}, Spark's is {harness.print_instant(batch['watermark'])}"
        if fault := run_spark.count_fault(number, entry, batch, exception.get("counts", ())):
            return fault
    return None


class FlinkCase:
    def __init__(self, path):
        self.name = path.stem
        self.options = {}
        self.rows = {"l": [], "r": []}  # (number, time, key)
        self.pairs = set()
        count = 0
        for line in path.read_text(encoding="utf-8").splitlines():
            word, _, rest = line.partition(" ")
            if word in self.rows:
                count += 1
                time, key = rest.split(",")
                self.rows[word].append((count, f"{self.options['date']}T{time}Z", key))
            elif word == ">":
                self.pairs.add(tuple(None if number == "-" else int(number) for number in rest.split()))
            elif word:
                self.options[word] = rest
        self.late = {int(number) for number in self.options.get("late", "").split()}

    def expected(self):
        """Flink's answer without the late rows."""
        kept = {pair for pair in self.pairs if not set(pair) & self.late}
        for number, side in enumerate(("left", "right")):
            if self.options["join"] in (side, "full"):
                told = {pair[number] for pair in kept}
                for pair in self.pairs - kept:
                    if pair[number] is not None and pair[number] not in self.late | told:
                        kept.add((pair[number], None) if side == "left" else (None, pair[number]))
        return kept


def judge_flink(case, folder):
    """None if the tool agrees with Flink, else the first difference."""
    for side, rows in case.rows.items():
        lines = [f"time,key,{side}", *(f"{time},{key},{number}" for number, time, key in rows)]
        (folder / f"{side}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = harness.run(["wm-join", "-q", "-t", "time", "-w", case.options["delay"], "--type", case.options["join"], "-k", "key",
                          f"--between={case.options['between']}", "--late-left", "late.l", "--late-right", "late.r",
                          "--report", "report.ndjson", "l.csv", "r.csv"], cwd=folder)
    if result.returncode != 0:
        return f"exit status {result.returncode}\n{result.stderr.decode(errors='replace')}"
    if fault := harness.ledger_fault(harness.read_report(folder / "report.ndjson")[1]):
        return fault
    late = {int(line.split(",")[2]) for side in case.rows for line in (folder / f"late.{side}").read_text().splitlines()[1:]}
    if late != case.late:
        return f"late rows {sorted(late)}, expected {sorted(case.late)}"
    header, *lines = [line.split(",") for line in result.stdout.decode().splitlines()]
    places = [header.index(side) for side in case.rows]
    got = [tuple(int(line[place]) if line[place] else None for place in places) for line in lines]
    want = case.expected()
    if len(got) != len(set(got)) or set(got) != want:
        return f"Flink's, not ours: {want - set(got)}; ours, not Flink's: {set(got) - want}; {len(got)} rows, {len(want)} expected"
    return None


def main():
    tap = harness.Tap()
    wanted = sys.argv[1:]
    passed = excepted = 0
    for path in sorted(CASES.glob("*.case")):
        if wanted and path.stem not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                fault = judge(Case(path), pathlib.Path(folder))
            except (OSError, ValueError, KeyError, IndexError, StopIteration) as error:
                fault = f"{type(error).__name__}: {error}"
        name = f"spark {path.stem}"
        if path.stem in EXCEPTIONS:
            name += " (excepted in part)"
            excepted += 1
        if tap.ok(fault is None, name, fault) and path.stem not in EXCEPTIONS:
            passed += 1
    flink = 0
    for path in sorted(FLINK_CASES.glob("*.case")):
        if wanted and path.stem not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                fault = judge_flink(FlinkCase(path), pathlib.Path(folder))
            except (OSError, ValueError, KeyError, IndexError) as error:
                fault = f"{type(error).__name__}: {error}"
        flink += tap.ok(fault is None, f"flink {path.stem}", fault)
    print("# exceptions: case, why; all else of the case was compared")
    for name, exception in sorted(EXCEPTIONS.items()):
        if not wanted or name in wanted:
            print(f"#   {name} | {exception['why']}")
    print(f"# spark join: {passed} passed, {excepted} excepted; flink join: {flink} passed")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
