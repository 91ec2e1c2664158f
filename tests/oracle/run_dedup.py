#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold wm-dedup to answers recorded from Spark (tests/oracle/spark/README.md).

Each case runs once: its batches are FILEs, one batch each. The rows of every batch, as a multiset of bytes, the watermark
by which the batch was judged, and the numbers of keys held, added and removed and of rows dropped must be Spark's. Names
on the command line run those cases alone.
"""

import collections
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
import run_spark

CASES = run_spark.CASES / "dedup"

# What differs on purpose. A row without event time is rejected here and a row like others in Spark: left out are such
# rows, those of a key that one of them had, and the numbers. All else of the case is compared and must agree.
NULL_TIMES = {
    "06_dedup_null_time_id", "06_dedup_null_time_id_time", "06_dedup_null_time_within", "11_rand00_dedup",
    "11_rand03_dedup", "11_rand04_dedup", "11_rand07_dedup", "11_rand08_dedup", "11_rand12_dedup", "11_rand16_dedup",
    "11_rand19_dedup",
}
NULL_TIME = "rows without event time are rejected"
EXCEPTIONS = {name: NULL_TIME for name in NULL_TIMES} | {
    "12_restart_dedup_within": "run without its restarts, which need checkpoints",
}


class Case(run_spark.Case):
    def __init__(self, path):
        super().__init__(path)
        self.keys = self.options["keys"].split()

    def command(self):
        keys = [name for name in self.keys if name != "event_time"]
        args = ["wm-dedup", "-t", "event_time", "-k", ",".join(keys)]
        if self.options["threshold"] != "none":
            args += ["-w", self.options["threshold"]]
        if keys != self.keys:
            args += ["--with-time"]
        elif self.options["kind"] == "dropDuplicates":
            args += ["--forever"]
        return args + ["--trigger", "file", "--eof", "trigger", "--compat", "spark", "--report", "report.ndjson"]

    def identity(self, row):
        fields = dict(zip(self.columns, row.split(",")))
        return tuple(fields[name] for name in self.keys)

    def has_time(self, row):
        return row.split(",")[self.columns.index("event_time")] != ""


def judge(case, folder):
    """None if the tool agrees with Spark, else the first difference."""
    names = []
    for number, (_, rows, _) in enumerate(case.batches):
        names.append(f"batch{number:03d}.csv")
        text = "".join(f"{line}\n" for line in [",".join(case.columns), *rows])
        (folder / names[-1]).write_text(text, encoding="utf-8")
    args = case.command()
    result = harness.run([*args, *names], cwd=folder)
    if result.returncode not in (0, 1) or not (folder / "report.ndjson").exists():
        return f"exit status {result.returncode} of {' '.join(args)}\n{result.stderr.decode(errors='replace')}"

    progress, report = harness.read_report(folder / "report.ndjson")
    if fault := harness.ledger_fault(report):
        return fault
    timeless = [row for _, rows, _ in case.batches for row in rows if not case.has_time(row)]
    if bool(timeless) != (case.name in NULL_TIMES):
        return f"{len(timeless)} rows without event time"
    if report["rows_rejected"] != len(timeless) or result.returncode != bool(timeless):
        return f"exit status {result.returncode}, {report['rows_rejected']} rows rejected, expected {len(timeless)}"
    lines = result.stdout.decode().splitlines()
    if not lines or lines[0].split(",") != case.output:
        return f"header {lines[:1]}, not {case.output}"
    if [entry["batchId"] for entry in progress] != list(range(len(case.batches))):
        return f"progress of batches {[entry['batchId'] for entry in progress]}"
    if sum(entry["sink"]["numOutputRows"] for entry in progress) != len(lines) - 1:
        return "the progress objects count other rows than were written"

    left_out = {case.identity(row) for row in timeless}
    kept = lambda rows: collections.Counter(row for row in rows if case.identity(row) not in left_out)
    rows = iter(lines[1:])
    for number, ((watermark, _, expected), entry) in enumerate(zip(case.batches, progress)):
        got = [next(rows) for _ in range(entry["sink"]["numOutputRows"])]
        if kept(got) != kept(expected):
            return f"batch {number}: Spark's rows\n" + "\n".join(expected) + "\nours\n" + "\n".join(got)
        got_watermark = entry["eventTime"].get("watermark")
        instants = [text and harness.parse_instant(text) for text in (watermark, got_watermark)]
        if instants[0] != instants[1]:
            return f"batch {number}: judged by watermark {got_watermark}, Spark's is {watermark}"
        if not timeless and (fault := run_spark.count_fault(number, entry, case.counts[number], ())):
            return fault
    for name, member in {"dropped": "rows_late", "duplicate": "rows_duplicate"}.items():
        want = sum(counts[name] for counts in case.counts)
        if not timeless and report[member] != want:
            return f"{member} {report[member]}, Spark's {name} are {want}"
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
            except (OSError, ValueError, KeyError, IndexError) as error:
                fault = f"{type(error).__name__}: {error}"
        name = f"spark {path.stem}"
        if path.stem in EXCEPTIONS:
            name += " (excepted in part)"
            excepted += 1
        if tap.ok(fault is None, name, fault) and path.stem not in EXCEPTIONS:
            passed += 1
    print("# exceptions: case, why; all else of the case was compared")
    for name, why in sorted(EXCEPTIONS.items()):
        if not wanted or name in wanted:
            print(f"#   {name} | {why}")
    print(f"# spark dedup: {passed} passed, {excepted} excepted")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
