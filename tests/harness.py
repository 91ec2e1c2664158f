# SPDX-License-Identifier: Apache-2.0
"""What the test programs written in Python share.

TAP output, the tools under test, instants, and the ledger that every report must close:
rows_in = rows_punctuation + rows_rejected + rows_late + rows_duplicate + rows_used.
"""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Folder of the tools: another variant is tested with WM_BIN=build/asan.
BIN = pathlib.Path(os.environ.get("WM_BIN", ROOT / "build/release")).resolve()
TIMEOUT_SECONDS = 60


class Tap:
    """Numbered results on stdout, the plan at the end."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, good, name, *notes):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}", flush=True)
        if not good:
            self.note(*notes)
        return good

    def skip(self, name, why):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}", flush=True)

    def note(self, *notes):
        for note in notes:
            for line in str(note).splitlines():
                print(f"#   {line}")
        sys.stdout.flush()

    def done(self):
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed else 0


def run(args, cwd=None, stdin=b"", env=None, timeout=TIMEOUT_SECONDS):
    """Run a tool by name with bytes on its standard input; a CompletedProcess of bytes."""
    command = [str(BIN / args[0]), *args[1:]]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, timeout=timeout, check=False,
                          env={**os.environ, **(env or {})})


def run_streams(laws, seed, use):
    """Hold laws to random streams: those named on the command line, or all; the exit status.

    laws has by name (stream, count, words): stream(seed) gives what is wrong with one stream, or None. use(folder) tells
    the streams of a law where their files go.
    """
    tap = Tap()
    for name in sys.argv[1:] or laws:
        stream, count, words = laws[name]
        faults = []
        with tempfile.TemporaryDirectory(prefix="wm-laws-") as folder:
            use(pathlib.Path(folder))
            for number in range(seed, seed + count):
                try:
                    fault = stream(number)
                except (ValueError, OSError, KeyError) as error:
                    fault = f"WM_SEED={number}: {type(error).__name__}: {error}"
                if fault:
                    faults.append(fault)
        tap.ok(not faults, f"{name}: {count} {words}", f"{len(faults)} at fault", *faults[:2])
    return tap.done()


def read_report(path):
    """The progress objects and the final report of a --report file."""
    with open(path, encoding="utf-8") as file:
        objects = [json.loads(line) for line in file]
    finals = [o for o in objects if o.get("type") == "report"]
    if len(finals) != 1 or objects[-1] is not finals[0]:
        raise ValueError(f"{path}: {len(finals)} final reports among {len(objects)} objects")
    return objects[:-1], finals[0]


def ledger_fault(report):
    """None if the ledger of a final report closes, else what does not add up."""
    parts = ("rows_punctuation", "rows_rejected", "rows_late", "rows_duplicate", "rows_used")
    missing = [name for name in ("rows_in", "rejected", *parts) if name not in report]
    if missing:
        return f"the report lacks {', '.join(missing)}"
    total = sum(report[name] for name in parts)
    if total != report["rows_in"]:
        return f"rows_in {report['rows_in']} but its classes add up to {total}"
    reasons = sum(report["rejected"].values())
    if reasons != report["rows_rejected"]:
        return f"rows_rejected {report['rows_rejected']} but its reasons add up to {reasons}"
    return None


_INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?Z")


def parse_instant(text):
    """Microseconds since the epoch of a time in UTC, or None if the text is none."""
    match = _INSTANT.fullmatch(text)
    if not match:
        return None
    year, month, day, hour, minute, second = (int(group) for group in match.groups()[:6])
    # datetime has no year 0, but the calendar repeats every 400 years.
    shift = 400 if year == 0 else 0
    days = (datetime.date(year + shift, month, day) - datetime.date(1970 + shift, 1, 1)).days
    return ((days * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000 + int((match[7] or "0").ljust(6, "0"))


def print_instant(us):
    """As the tools print it: 3 or 6 digits of the second only where they are not zero."""
    # A window of the first day of year 1 may start in year 0.
    shift = 400 if us < 0 else 0
    moment = datetime.datetime(1970 + shift, 1, 1) + datetime.timedelta(microseconds=us)
    text = f"{moment.year - shift:04d}-{moment:%m-%dT%H:%M:%S}"
    fraction = us % 1_000_000
    if fraction % 1000:
        return f"{text}.{fraction:06d}Z"
    return f"{text}.{fraction // 1000:03d}Z" if fraction else f"{text}Z"
