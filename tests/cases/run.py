#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the cases in this folder: small inputs behind real bug reports, each with the right answer.

A case is one text file, lines of which begin with a word:

    title TEXT               what it shows
    source TEXT              the public reports that suggested it
    file NAME                a file in the folder in which its commands run; content lines follow
    file NAME made by MAKER  the same, from one of the functions below
    $ COMMAND                a command line, run by bash; what follows is about it
    status N                 its exit status (default 0; 128 + n where it died of signal n)
    out                      its standard output, content lines follow; without `out` it is not looked at
    content NAME             a file that it wrote; content lines follow
    ledger NAME=N ...        members of the final report ("rejected.no-time" for one reason)
    err REGEX                found in its standard error
    err none                 its standard error is empty
    memory N                 it may use N MiB (not held under a sanitizer, which needs more)
    feed                     content lines for its standard input, which stays open
    shows                    content lines that appear on standard output before anything more is fed

A content line is |TEXT, or \\TEXT for what has escapes (\\r \\n \\x00) and whose line end, if any, is one of them.
$WM_DATA is the folder tests/data. Every run of a tool also gets --report, and its ledger must close. Names on the
command line run those cases alone.
"""

import dataclasses
import os
import pathlib
import re
import resource
import select
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

FOLDER = pathlib.Path(__file__).resolve().parent
LIVE_SECONDS = 5  # by then what is due must have been written
QUIET_SECONDS = 0.2  # for so long nothing may come where nothing is due


def long_lines():
    """Records of 5 MB among short ones: one plain, one with 10 000 line ends inside quotes."""
    return (b"ts,key,note\n1,a,short\n2,a," + b"x" * 5_000_000 + b'\n3,b,"' + (b"x" * 499 + b"\n") * 10_000 + b'"\n'
            + b"4,c,s\n" * 1000)


def many_rows():
    """In order, a new window every ten rows: a result far larger than any buffer."""
    return b"ts,key\n" + b"".join(b"%d,k%d\n" % (i, i % 3) for i in range(400_000))


def two_thousand_rows():
    """A row a second, seven keys by turns."""
    return b"ts,key\n" + b"".join(b"%d,k%d\n" % (i, i % 7) for i in range(2000))


def many_lines():
    """3000 rows; a stray quote in row 1000 goes up to row 2000, which ends with one."""
    rows = [b"%d,a,1\n" % (1_700_000_000 + i // 1000) for i in range(3000)]
    rows[1000] = b'1700001000,"a\n'
    rows[2000] = b'end",1\n'
    return b"ts,k,v\n" + b"".join(rows)


MAKERS = {"long_lines": long_lines, "many_lines": many_lines, "many_rows": many_rows, "two_thousand_rows": two_thousand_rows}


@dataclasses.dataclass
class Run:
    command: str
    status: int = 0
    memory_mib: int | None = None
    out: bytearray | None = None
    contents: dict = dataclasses.field(default_factory=dict)
    ledger: dict = dataclasses.field(default_factory=dict)
    errors: list = dataclasses.field(default_factory=list)
    talk: list = dataclasses.field(default_factory=list)  # of ("feed" or "shows", bytes)


class Case:
    def __init__(self, path):
        self.name = path.stem
        self.title = ""
        self.files = {}
        self.runs = []
        content = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            word, _, rest = line.partition(" ")
            if line.startswith("|") and content is not None:
                content += line[1:].encode() + b"\n"
                continue
            if line.startswith("\\") and content is not None:
                content += line[1:].encode().decode("unicode_escape").encode("latin-1")
                continue
            content = None
            run = self.runs[-1] if self.runs else None
            if word == "title":
                self.title = rest
            elif word == "file":
                name, _, maker = rest.partition(" made by ")
                content = self.files[name] = bytearray(MAKERS[maker]() if maker else b"")
            elif word == "$":
                self.runs.append(Run(rest))
            elif word == "status":
                run.status = int(rest)
            elif word == "memory":
                run.memory_mib = int(rest)
            elif word == "out":
                content = run.out = bytearray()
            elif word == "content":
                content = run.contents[rest] = bytearray()
            elif word == "ledger":
                run.ledger |= {name: int(value) for name, value in (pair.split("=") for pair in rest.split())}
            elif word == "err":
                run.errors.append(rest)
            elif word in ("feed", "shows"):
                content = bytearray()
                run.talk.append((word, content))
            elif word and word not in ("source", "#"):
                raise ValueError(f"{path.name}:{number}: unknown word '{word}'")


def converse(process, talk):
    """Feed and look by turns; what was shown so far, and None or what went wrong."""
    shown = bytearray()
    for word, content in talk:
        if word == "feed":
            os.write(process.stdin.fileno(), content)
            continue
        wait = LIVE_SECONDS if content else QUIET_SECONDS
        end = time.monotonic() + wait
        got = bytearray()
        while len(got) < max(len(content), 1) and (left := end - time.monotonic()) > 0:
            if select.select([process.stdout], [], [], left)[0]:
                piece = os.read(process.stdout.fileno(), 65536)
                if not piece:
                    break
                got += piece
        shown += got
        if got != content:
            return shown, f"within {wait} s it showed {bytes(got)!r}\nexpected {bytes(content)!r}"
    return shown, None


def execute(run, folder, env):
    """(standard output, standard error, status, None or a fault of the talk)."""
    def limit():
        if run.memory_mib and harness.BIN.name != "asan":
            resource.setrlimit(resource.RLIMIT_AS, (run.memory_mib << 20, run.memory_mib << 20))

    with tempfile.TemporaryFile() as err:
        with subprocess.Popen(["bash", "-c", run.command], cwd=folder, env=env, stderr=err, stdout=subprocess.PIPE,
                              stdin=subprocess.PIPE if run.talk else subprocess.DEVNULL, preexec_fn=limit) as process:
            try:
                shown, fault = converse(process, run.talk)
                rest, _ = process.communicate(timeout=harness.TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                rest, shown, fault = b"", b"", f"still running after {harness.TIMEOUT_SECONDS} s"
        err.seek(0)
        status = process.returncode if process.returncode >= 0 else 128 - process.returncode
        return bytes(shown) + rest, err.read().decode(errors="backslashreplace"), status, fault


def visible(content):
    """Bytes as lines in which a carriage return shows."""
    return content.decode(errors="backslashreplace").replace("\r", "\\r")


def lookup(report, name):
    group, _, reason = name.partition(".")
    return report.get(group, {}).get(reason, 0) if reason else report.get(group)


def faults_of(run, folder, reports, outcome):
    """Whatever is wrong with what a run did."""
    out, err, status, fault = outcome
    if fault:
        yield fault
    if status != run.status:
        yield f"exit status {status}, expected {run.status}"
    if run.out is not None and out != run.out:
        yield f"standard output\n{visible(out)}expected\n{visible(run.out)}"
    for name, want in run.contents.items():
        path = folder / name
        got = path.read_bytes() if path.exists() else b"(no such file)"
        if got != want:
            yield f"{name}\n{visible(got)}expected\n{visible(want)}"
    lines = err.splitlines()
    strange = [line for line in lines if not re.match(r"wm-[a-z]+: ", line)]
    if strange or len(lines) > 6:
        yield "standard error is not a few lines of messages"
    for pattern in run.errors:
        if (pattern == "none" and lines) or (pattern != "none" and not re.search(pattern, err)):
            yield f"standard error: expected {pattern}"
    paths = sorted(reports.iterdir())
    finals = []
    for path in paths:
        try:
            report = harness.read_report(path)[1]
        except ValueError as error:
            if status in (0, 1, 5):
                yield str(error)
            continue
        finals.append(report)
        if problem := harness.ledger_fault(report):
            yield problem
    if status in (0, 1, 5) and "wm-" in run.command and not finals:
        yield "no report was written"
    for name, want in run.ledger.items():
        got = lookup(finals[-1], name) if finals else None
        if got != want:
            yield f"{name} is {got}, expected {want}"


def run_case(tap, case):
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        tools = top / "bin"
        tools.mkdir()
        # Each tool under its own name, with a report asked for.
        for source in sorted((harness.ROOT / "cmd").glob("wm-*.c")):
            shim = tools / source.stem
            shim.write_text(f'#!/bin/sh\nexec "{harness.BIN}/{source.stem}" --report "$WM_REPORTS/$$" "$@"\n',
                            encoding="utf-8")
            shim.chmod(0o755)
        for number, run in enumerate(case.runs):
            folder = top / str(number) / "work"
            reports = top / str(number) / "reports"
            folder.mkdir(parents=True)
            reports.mkdir()
            for name, content in case.files.items():
                (folder / name).write_bytes(content)
            env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "WM_REPORTS": str(reports),
                   "WM_DATA": str(harness.ROOT / "tests/data")}
            outcome = execute(run, folder, env)
            faults = list(faults_of(run, folder, reports, outcome))
            if faults:
                faults += [f"$ {run.command}", f"standard error was:\n{outcome[1]}"]
            tap.ok(not faults, f"{case.name}: {case.title} [{number + 1}]", *faults)


def missing_tool(case):
    """The first tool of the case that this tree does not have, or None."""
    tools = (harness.ROOT / "Makefile").read_text(encoding="utf-8")
    known = re.search(r"^TOOLS := (.*)$", tools, re.MULTILINE)[1].split()
    used = {word for run in case.runs for word in re.findall(r"\bwm-[a-z]+\b", run.command)}
    return next(iter(sorted(used - set(known))), None)


def main():
    tap = harness.Tap()
    wanted = sys.argv[1:]
    for path in sorted(FOLDER.glob("*.case")):
        if wanted and path.stem not in wanted:
            continue
        case = Case(path)
        absent = missing_tool(case)
        if absent:
            tap.skip(f"{case.name}: {case.title}", f"there is no {absent} in this tree")
        else:
            run_case(tap, case)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
