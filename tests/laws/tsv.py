#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of TSV: random inputs with fixed seeds, held to a model of the rules of tsv.h that shares nothing with the tools.

values  wm-stamp passes the rows that the model reads, byte for byte, and rejects the others for the same reasons; as
        NDJSON the values are the model's; wm-window counts them by key
twice   what becomes NDJSON or CSV, and TSV again, says the same
ends    a file whose lines end in CR alone gives what the same file with LF gives

Names of laws on the command line run those alone; WM_SEED starts the seeds elsewhere.
"""

import collections
import json
import os
import pathlib
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
HEADER = b"ts\tk\tv\n"
MEANT = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"\\": b"\\", b"\t": b"\t", b"\n": b"\n", b"\r": b"\r"}
PIECES = (b"a", b"b", b"\\", b"\\\\", b"\\t", b"\\n", b"\\r", b"\\\t", b"\\\n", b"\\\r\n", b"\\\r", b"\"", b"\"q\"", b"C:\\dir",
          b"\\N", b"\r", b" ", b",", b"")
STRAY = (b"\t", b"\n", b"\r\n", b"\\\n", b"\n\n", b"x")
FOLDER = pathlib.Path()  # of all files; set in use()


class Record:
    """The record at a place of a text: its fields as they say, where it ends, and where to go on if it is rejected."""

    def __init__(self, text, at, has_escapes):
        self.begin, self.fields, self.ends_open, self.ends_in_escape = at, [b""], False, False
        taken = None  # the last CR or LF that a backslash took along
        is_cr = False
        while at < len(text):
            byte, behind = text[at:at + 1], text[at + 1:at + 2]
            self.ends_open = self.ends_in_escape = False
            if byte == b"\\" and has_escapes and behind in MEANT and behind:
                self.fields[-1] += MEANT[behind]
                at += 2
                if behind in b"\r\n":
                    taken, self.ends_open = at - 1, True
                if behind == b"\r" and text[at:at + 1] == b"\n":
                    self.fields[-1] += b"\n"
                    taken = at
                    at += 1
                is_cr = False
                continue
            at += 1
            if byte == b"\n":
                break
            self.ends_in_escape = byte == b"\\" and has_escapes
            is_cr = byte == b"\r"
            if byte == b"\t":
                self.fields.append(b"")
            else:
                self.fields[-1] += byte
        if is_cr:
            self.fields[-1] = self.fields[-1][:-1]
        self.end = at
        self.raw = text[self.begin:at]
        self.has_end = self.raw.endswith(b"\n") and not self.ends_open
        line_end = text.find(b"\n", self.begin if taken is None else taken)
        self.cut_end = self.end if line_end < 0 or line_end >= self.end else line_end + 1

    def is_blank(self):
        return self.raw in (b"\n", b"\r\n", b"\r")

    def reason(self):
        if self.ends_open:
            return "malformed-tsv"
        if len(self.fields) != 3:
            return "ragged"
        if not self.fields[0]:
            return "no-time"
        return None if self.fields[0].isdigit() and len(self.fields[0]) < 11 else "bad-time"

    def line(self):
        """The row as it is written: a line end that it lacks is put behind it."""
        if self.has_end:
            return self.raw
        raw = self.raw[:-1] if self.raw.endswith(b"\r") else self.raw
        return raw + (b"\\\n" if self.ends_in_escape else b"\r\n" if raw.endswith(b"\r") else b"\n")


def read(text, has_escapes):
    """The records behind the header that are rows, and the others by reason."""
    at, rows, rejected = len(HEADER), [], collections.Counter()
    while at < len(text):
        record = Record(text, at, has_escapes)
        at = record.end
        if record.is_blank() or record.raw.rstrip(b"\r\n") == HEADER[:-1]:
            continue
        reason = record.reason()
        if reason is None:
            rows.append(record)
            continue
        rejected[reason] += 1
        if reason in ("malformed-tsv", "ragged"):
            at = record.cut_end
    return rows, rejected


def random_text(rng, is_clean=False):
    pieces = [p for p in PIECES if not is_clean or (b"\n" not in p and b"\r" not in p)]
    text = HEADER
    for i in range(rng.randrange(0, 40)):
        fields = [b"%d" % (1_764_410_400 + i)] + [b"".join(rng.choices(pieces, k=rng.randrange(0, 4))) for _ in range(2)]
        text += b"\t".join(fields) + (b"\r\n" if not is_clean and rng.random() < 0.1 else b"\n")
        if not is_clean and rng.random() < 0.1:
            text += rng.choice(STRAY)
    return text[:-1] if text != HEADER and rng.random() < 0.3 else text


def tool(args, text):
    """A run on a file of that text: what it wrote, and its final report."""
    (FOLDER / "in.tsv").write_bytes(text)
    (FOLDER / "report").unlink(missing_ok=True)
    done = harness.run(args + ["-q", "-t", "ts", "--time-format", "s", "--report", "report", "in.tsv"], FOLDER)
    return done.stdout, harness.read_report(FOLDER / "report")[1]


def sort(text, *options):
    return tool(["wm-sort", "-w", "1d", *options], text)


def values(seed):
    rng = random.Random(seed)
    text, has_escapes = random_text(rng), rng.random() < 0.8
    options = ["-i", "tsv"] + ([] if has_escapes else ["--tsv-escapes", "none"])
    rows, rejected = read(text, has_escapes)
    want = [HEADER] + [row.line() for row in sorted(rows, key=lambda row: int(row.fields[0]))]
    got, report = sort(text, *options)
    if got != b"".join(want):
        return f"WM_SEED={seed}: rows {got!r}, want {b''.join(want)!r} of {text!r}"
    if report["rejected"] != rejected or harness.ledger_fault(report):
        return f"WM_SEED={seed}: rejected {report['rejected']}, want {dict(rejected)} of {text!r}"
    stdout, _ = tool(["wm-stamp", "-w", "1d", "-o", "ndjson", *options], text)
    got = [json.loads(line, parse_int=str, parse_float=str) for line in stdout.splitlines()]
    got = [(row["ts"], row["k"], row["v"]) for row in got]
    want = [tuple(field.decode() or None for field in row.fields) for row in rows]
    if got != want:
        return f"WM_SEED={seed}: values {got}, want {want} of {text!r}"
    stdout, _ = tool(["wm-window", "-w", "1d", "--tumbling", "1000d", "-g", "k", "-o", "ndjson", *options], text)
    got = {row["k"]: row["count"] for row in map(json.loads, stdout.splitlines())}
    counts = collections.Counter(row[1] for row in want)
    return None if got == counts else f"WM_SEED={seed}: counts {got}, want {dict(counts)} of {text!r}"


def twice(seed):
    text = random_text(random.Random(seed))
    want, _ = sort(text, "-i", "tsv", "-o", "ndjson")
    for by in ("ndjson", "csv"):
        middle, _ = sort(text, "-i", "tsv", "-o", by)
        again, _ = sort(middle, "-i", by, "-o", "tsv")
        got, _ = sort(again, "-i", "tsv", "-o", "ndjson")
        if got != want:
            return f"WM_SEED={seed}: by {by} {got!r}, want {want!r} of {text!r}"
    return None


def ends(seed):
    rng = random.Random(seed)
    text = random_text(rng, is_clean=True)
    if rng.random() < 0.5:
        text = text.replace(b"\\\t", b"").replace(b",", b"").replace(b'"', b"").replace(b"\t", b",")
    options = rng.choice(([], ["-o", "ndjson"]))
    want, report = sort(text, *options)
    got, other = sort(text.replace(b"\n", b"\r"), *options)
    is_same = got == want and all(report[name] == other[name] for name in ("rows_in", "rejected"))
    # A header whose CR is the last byte may go on with an LF: it is as it was before.
    return None if is_same or text == HEADER else f"WM_SEED={seed}: {got!r}, want {want!r} of {text!r}"


LAWS = {
    "values": (values, 250, "random inputs, against the model"),
    "twice": (twice, 150, "inputs through NDJSON and CSV and back"),
    "ends": (ends, 150, "inputs with CR for LF"),
}


def use(folder):
    global FOLDER
    FOLDER = folder


if __name__ == "__main__":
    sys.exit(harness.run_streams(LAWS, SEED, use))
