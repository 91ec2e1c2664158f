#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold two tools in a pipe to answers recorded from Spark (tests/oracle/spark/README.md).

The first has the batches of the case, and tells the one behind it the watermark in band; that one has no batches of its
own. The rows that come out must be Spark's, those of a batch before those of the next. Names on the command line run those
cases alone.
"""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
import run_join
import run_spark

CASES = run_spark.CASES / "chain"

# What differs on purpose.
EXCEPTIONS = {
    "10_join_window_eq_then_window_append": (
        "the time of a result is that of its left row, Spark's that of the window: the watermark behind the join is held "
        "back by a window, so the last ones are still open when the input ends; they are written for this comparison"),
}


def aggregates(stage):
    return ",".join(f"{name}={function}" + ("" if column == "*" else f":{column}")
                    for function, column, name in stage["aggregates"])


def window(stage, keys):
    args = ["wm-window", "--tumbling", stage["window"]]
    if stage.get("slide", stage["window"]) != stage["window"]:
        args = ["wm-window", "--sliding", f"{stage['window']},{stage['slide']}"]
    return args + (["-g", ",".join(keys)] if keys else []) + ["-a", aggregates(stage)]


def commands(case, paths):
    """The pipe: lists of arguments."""
    batches = ["--trigger", "file", "--eof", "trigger", "--compat", "spark", *paths]
    first = case.stages[0]
    if "join" in case.options:
        join = [*case.command()[:-1], "csv", "--stamp", "left", "--rejects", "rejects", *paths]
        stage = {"window": "10 seconds", **case.stages[0][1]}
        return [join, window(stage, ["l_id"]) + ["--compat", "spark"]]
    if first[0] == "dedup":
        keys = [key for key in first[1]["keys"] if key != "event_time"]
        with_time = keys != first[1]["keys"]
        dedup = ["wm-dedup", "-k", ",".join(keys), "--compat", "spark"]
        dedup += ["--with-time"] if with_time else ["--remember", case.options["threshold"]]
        stage = case.stages[1][1]
        return [["wm-stamp", "-t", "event_time", "-w", case.options["threshold"], *batches], dedup,
                window(stage, stage["keys"]) + ["--compat", "spark"]]
    start = window(first[1], first[1]["keys"]) + ["-t", "event_time", "-w", case.options["threshold"], "--stamp"]
    if case.stages[1][0] == "select_window_time":
        return [start + batches]
    stage = case.stages[1][1]
    return [start + batches, window(stage, stage["keys"]) + ["--compat", "spark"]]


def run(pipe, folder):
    """What the pipe writes, and what its parts say; the last one holds what is open."""
    processes = []
    stdin = subprocess.DEVNULL
    with open(folder / "said", "wb") as said:
        for args in pipe:
            process = subprocess.Popen([str(harness.BIN / args[0]), *args[1:]], cwd=folder, stdin=stdin,
                                       stdout=subprocess.PIPE, stderr=said)
            if stdin is not subprocess.DEVNULL:
                stdin.close()
            stdin = process.stdout
            processes.append(process)
        out = stdin.read().decode()
        stdin.close()
    return out, [process.wait(harness.TIMEOUT_SECONDS) for process in processes]


def judge(case, folder):
    """None if the pipe agrees with Spark, else the first difference."""
    if "join" in case.options:
        paths, _ = case.write(folder)
    else:
        columns = [column.split(":")[0] for column in case.options["input"].split()]
        paths = [f"batch{number:03d}.csv" for number in range(len(case.batches))]
        for path, batch in zip(paths, case.batches):
            rows = [columns, *([field or "" for field in row] for row in batch["input"])]
            (folder / path).write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    pipe = commands(case, paths)
    if len(pipe) > 1:
        pipe[-1] += ["--eof", "flush" if case.name in EXCEPTIONS else "hold"]
    out, statuses = run(pipe, folder)
    if any(statuses):
        said = (folder / "said").read_text(errors="replace")
        return f"exit statuses {statuses} of {' | '.join(' '.join(args) for args in pipe)}\n{said}"

    names = {"_time": "window_time"} if len(pipe) == 1 else {}
    names |= {"window_start": "l_window_start", "window_end": "l_window_end"} if "l_window_start" in case.output else {}
    header, *lines = out.splitlines()
    header = [names.get(name, name) for name in header.split(",")]
    if not set(case.output) <= set(header):
        return f"header {header}, not {case.output}"
    rows = []
    for line in lines:
        fields = dict(zip(header, line.split(",")))
        if fields["window_start" if "window_start" in fields else "l_window_start"]:
            rows.append(tuple(run_spark.canonical(fields[name]) for name in case.output))
    if case.name in EXCEPTIONS:
        missing = collections.Counter(
            tuple(run_spark.canonical(field or "") for field in row) for batch in case.batches for row in batch["expected"])
        missing -= collections.Counter(rows)
        return f"Spark's rows, not ours\n{list(missing.elements())}" if missing else None
    begin = 0
    for number, batch in enumerate(case.batches):
        want = [tuple(run_spark.canonical(field or "") for field in row) for row in batch["expected"]]
        got = rows[begin:begin + len(want)]
        begin += len(want)
        if collections.Counter(got) != collections.Counter(want):
            return f"batch {number}: Spark's rows\n" + "\n".join(map(str, want)) + "\nours\n" + "\n".join(map(str, got))
    if begin != len(rows):
        return "rows of no batch\n" + "\n".join(map(str, rows[begin:]))
    return None


def main():
    tap = harness.Tap()
    wanted = sys.argv[1:]
    passed = 0
    for path in sorted(CASES.glob("*.case")):
        if wanted and path.stem not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                fault = judge(run_join.Case(path), pathlib.Path(folder))
            except (OSError, ValueError, KeyError, IndexError) as error:
                fault = f"{type(error).__name__}: {error}"
        name = f"spark {path.stem}" + (" (excepted in part)" if path.stem in EXCEPTIONS else "")
        passed += tap.ok(fault is None, name, fault) and path.stem not in EXCEPTIONS
    print("# exceptions: case, why")
    for name, why in EXCEPTIONS.items():
        print(f"#   {name} | {why}")
    print(f"# spark chains: {passed} passed, {len(EXCEPTIONS)} excepted")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
