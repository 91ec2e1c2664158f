#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold wm-window to answers recorded from Beam and Flink (README.md in tests/oracle/beam and tests/oracle/flink).

Each case runs once, its rows written into a pipe one by one; what comes out before the tool waits for the next row is
what the row let go. Rows of results, their order, the row after which each came, the late rows and the watermark that
judged them must be as recorded. Names on the command line run those cases alone.
"""

import csv
import fcntl
import os
import pathlib
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

HERE = pathlib.Path(__file__).resolve().parent
PANE_COLUMNS = ["_pane", "_pane_index"]


class Case:
    def __init__(self, path):
        self.name = f"{path.parent.name} {path.stem}"
        self.options = {}
        self.rows = []
        self.late = {}  # number of a row, from 1: the watermark that judged it
        self.expected = []  # (number of a row or "end", line)
        after = 0
        for line in path.read_text(encoding="utf-8").splitlines():
            word, _, rest = line.partition(" ")
            if word == "<":
                self.rows.append(rest)
                after = len(self.rows)
            elif word == "late":
                self.late[after] = rest
            elif word == ">":
                self.expected.append((after, rest))
            elif word == "end":
                after = "end"
            elif word:
                self.options[word] = rest
        self.input = self.options["input"].split()
        self.output = self.options["output"].split()


class Fed:
    """A tool that reads a pipe, and what it has written when it waits for more."""

    def __init__(self, args, cwd):
        with open(cwd / "stderr", "wb") as stderr:
            self.tool = subprocess.Popen([str(harness.BIN / args[0]), *args[1:]], bufsize=0, cwd=cwd,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
        os.set_blocking(self.tool.stdout.fileno(), False)

    def _waits(self):
        """It has taken all of its input and sleeps, which it then does in a read; or it has ended."""
        taken = fcntl.ioctl(self.tool.stdin.fileno(), termios.FIONREAD, b"\0\0\0\0")
        if struct.unpack("i", taken)[0] != 0:
            return self.tool.poll() is not None
        with open(f"/proc/{self.tool.pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in "SZ"

    def feed(self, text):
        self.tool.stdin.write(text.encode())
        limit = time.monotonic() + harness.TIMEOUT_SECONDS
        while not self._waits():
            if time.monotonic() > limit:
                raise TimeoutError("the tool neither reads nor ends")
        return (self.tool.stdout.read() or b"").decode()

    def end(self):
        self.tool.stdin.close()
        os.set_blocking(self.tool.stdout.fileno(), True)
        rest = self.tool.stdout.read().decode()
        self.tool.wait(harness.TIMEOUT_SECONDS)
        return rest

    def stop(self):
        self.tool.kill()
        self.tool.wait()


def batch_ends(case):
    """For each row the number of the last row of its batch: of itself, where there are no batches."""
    if "batch" not in case.input:
        return {number: number for number in range(1, len(case.rows) + 1)}
    place = case.input.index("batch")
    last = {row.split(",")[place]: number for number, row in enumerate(case.rows, 1)}
    return {number: last[row.split(",")[place]] for number, row in enumerate(case.rows, 1)}


def run(case, folder):
    """The tool's header and its rows as (row after which it came, line)."""
    args = shlex.split(case.options["command"]) + ["--late", "late.csv", "--late-info", "--report", "report.ndjson"]
    ends = batch_ends(case)
    lines = []
    fed = Fed(args, folder)
    try:
        out = fed.feed(",".join(case.input) + "\n")
        lines += [(0, line) for line in out.splitlines()]
        for number, row in enumerate(case.rows, 1):
            # A batch is over when the first row of the next one is there.
            after = number if ends[number] == number and "batch" not in case.input else number - 1
            lines += [(after, line) for line in fed.feed(row + "\n").splitlines()]
        lines += [("end", line) for line in fed.end().splitlines()]
    except BrokenPipeError:
        fed.end()
    finally:
        fed.stop()
    return fed.tool.returncode, lines


def judge(case, folder):
    """None if the tool agrees, else the first difference."""
    status, lines = run(case, folder)
    if status != 0:
        return f"exit status {status} of {case.options['command']}\n" + (folder / "stderr").read_text(errors="replace")
    report = harness.read_report(folder / "report.ndjson")[1]
    fault = harness.ledger_fault(report)
    if fault:
        return fault
    header = lines.pop(0)[1].split(",") if lines else []
    expected = list(case.expected)
    if header[-2:] == PANE_COLUMNS:
        if header != case.output[:-2] + PANE_COLUMNS:
            return f"header {header}"
    else:
        # Where a window is written once there are no such columns.
        if header != [name for name in case.output if not name.startswith("pane")]:
            return f"header {header}"
        if "pane" in case.output:
            if not all(line.endswith(",on-time,0") for _, line in expected):
                return "no pane columns, but panes that are not on-time"
            expected = [(after, line.removesuffix(",on-time,0")) for after, line in expected]
    if "batch" in case.input:
        # What the last batch lets go comes with the end.
        expected = [("end" if after == len(case.rows) else after, line) for after, line in expected]
    for got, want in zip(lines + [None] * len(expected), expected + [None] * len(lines)):
        if got != want:
            return f"recorded (after row, row) {want}\nours {got}"

    with open(folder / "late.csv", encoding="utf-8", newline="") as file:
        late = [[*(row[name] for name in case.input), row["_late_watermark"]] for row in csv.DictReader(file)]
    want = [case.rows[number - 1].split(",") + [watermark] for number, watermark in case.late.items()]
    if late != want:
        return f"late rows\n{want}\nours\n{late}"
    for name in ("rows_late", "rows_partly_late", "windows_missed"):
        if name in case.options and report[name] != int(case.options[name]):
            return f"{name} {case.options[name]}, ours {report[name]}"
    return None


def main():
    tap = harness.Tap()
    wanted = sys.argv[1:]
    differing = []
    passed = 0
    for path in sorted([*(HERE / "beam").glob("*.case"), *(HERE / "flink").glob("*.case")]):
        if wanted and path.stem not in wanted:
            continue
        case = Case(path)
        with tempfile.TemporaryDirectory() as folder:
            try:
                fault = judge(case, pathlib.Path(folder))
            except (OSError, ValueError, KeyError, TimeoutError) as error:
                fault = f"{type(error).__name__}: {error}"
        if "differs" not in case.options:
            passed += tap.ok(fault is None, case.name, fault)
            continue
        # A difference on purpose that is none any more is to be looked at.
        differing.append((case.name, case.options["differs"]))
        is_known = fault is not None and fault.startswith(("recorded", "late rows"))
        tap.ok(is_known, f"{case.name} (differs on purpose)", fault or "agrees with the recorded answer")
    print("# differ on purpose: case, why")
    for row in differing:
        print("#   " + " | ".join(row))
    print(f"# beam and flink: {passed} passed, {len(differing)} differ")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
