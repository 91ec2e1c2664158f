#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options crossed: random command lines on random inputs, held to what the tools promise for every one.

    tests/crossed/crossed.py              the cases that tests/run runs
    tests/crossed/crossed.py 20000        many more (make crossed N=20000)
    tests/crossed/crossed.py --only 4711  one case by its seed; its folder is kept and named

same       bytes, status, messages and ledger are the same from FILEs and from pipes that give a few bytes at a time; those
           are read by the tools of WM_ASAN_BIN, where that is set
ledger     rows_in is the sum of its classes
split      cut into several runs on one checkpoint, an input gives the bytes and the ledger of one run
ends       within 8 s of processor time, by a status that the man page has, never by a signal
messages   each is one line that begins with the name of the tool; a refused command line writes nothing else
kept       wm-checkpoint reads every checkpoint that a run leaves

Options are those of --help=all: one that options.py does not know fails.  WM_SEED starts the seeds elsewhere.
"""

import collections
import json
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
import options
import streams

SEED = int(os.environ.get("WM_SEED", "1"))
CASES = 500
OTHER_BIN = pathlib.Path(os.environ.get("WM_ASAN_BIN", harness.BIN)).resolve()
CPU_SECONDS = 8
WALL_SECONDS = 90
MEMORY_BYTES = 4 << 30
FAULTS_SHOWN = 6
KEPT = harness.ROOT / "build/crossed"
STATUSES = (0, 1, 2, 3, 4, 5)
# Under it a sync takes no time, and the clock of a checkpoint stands still.
STILL = harness.BIN / "tests/fault/kill_at.so"
SANITIZERS = {"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")}
RESULTS = ("out", "result", "late", "rejects", "duplicates", "main", "main.old")
# What a report says of the machine and not of the rows.
TIMES = re.compile(r'"(timestamp|\w+RowsPerSecond|batchDuration|memoryUsedBytes|durationMs)":("[^"]*"|[-0-9.e+]+|null)')


class Fault(Exception):
    """What a case has found."""


class Ended:
    def __init__(self, status, errors):
        self.status = status
        self.errors = errors


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))


def limits_with_memory():
    limits()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def pour(path, data, sizes, opened):
    """Writes into a FIFO, or what else is opened, in pieces of these sizes."""
    try:
        descriptor = os.open(path, os.O_WRONLY)
        opened.append(path)
        with os.fdopen(descriptor, "wb", buffering=0) as pipe:
            at = 0
            while at < len(data):
                size = sizes[at % len(sizes)]
                pipe.write(data[at:at + size])
                at += size
    except OSError:
        pass  # the tool has ended


def start(folder, line, files, stdin, binaries, env):
    """Runs a tool in a folder; results are appended to `out`. files: what FIFOs are fed with."""
    # The memory of a process with sanitizers cannot be bounded so.
    is_plain = binaries == harness.BIN and b"libasan" not in (binaries / line[0]).read_bytes()[:1 << 16]
    feeders = []
    opened = []
    with open(folder / "out", "ab") as out, open(stdin or os.devnull, "rb") if not isinstance(stdin, bytes) else \
            open(os.devnull, "rb") as source:
        process = subprocess.Popen([str(binaries / line[0]), *line[1:]], cwd=folder, stdout=out, stderr=subprocess.PIPE,
                                   stdin=subprocess.PIPE if isinstance(stdin, bytes) else source,
                                   preexec_fn=limits_with_memory if is_plain else limits, env={**os.environ, **SANITIZERS, **env})
        for path, data, sizes in files:
            feeders.append(threading.Thread(target=pour, args=(path, data, sizes, opened), daemon=True))
            feeders[-1].start()
        try:
            if isinstance(stdin, bytes):
                _, errors = process.communicate(stdin, timeout=WALL_SECONDS)
            else:
                _, errors = process.communicate(timeout=WALL_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Fault(f"hangs: not over after {WALL_SECONDS} s: {shlex.join(line)}") from None
        finally:
            for path, _, _ in files:
                release(path)
    return Ended(process.returncode, errors)


def release(path):
    """Lets go whoever waits for a reader of a FIFO that nobody opens any more."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        pass


def hold_end(line, ended):
    """The laws of an end, whatever it is."""
    shown = shlex.join(line)
    text = ended.errors.decode(errors="replace")
    if ended.status not in STATUSES:
        raise Fault(f"ends: status {ended.status} of {shown}\n{text[:3000]}")
    if not ended.errors.isascii():
        try:
            ended.errors.decode()
        except UnicodeDecodeError:
            raise Fault(f"messages: no UTF-8: {ended.errors[:400]!r} of {shown}") from None
    for number, message in enumerate(text.split("\n")[:-1]):
        is_json = message.startswith("{") and "json" in line
        if not is_json and not re.fullmatch(re.escape(line[0]) + r": [^\x00-\x1f\x7f]+", message):
            raise Fault(f"messages: line {number + 1} is {message!r} of {shown}")
    if text and not text.endswith("\n"):
        raise Fault(f"messages: the last line has no end: {text!r} of {shown}")
    if ended.status != 0 and not text:
        raise Fault(f"messages: status {ended.status} without a word of {shown}")


def left(folder):
    """The bytes of all results, and the final report."""
    found = {name: (folder / name).read_bytes() for name in RESULTS if (folder / name).exists()}
    report = None
    if (folder / "report").exists():
        last = (folder / "report").read_bytes().splitlines()[-1:]
        if last and last[0].startswith(b'{"type":"report"'):
            report = json.loads(last[0])
    return found, report


def hold_ledger(line, ended, report):
    if report is None:
        return
    if fault := harness.ledger_fault(report):
        raise Fault(f"ledger: {fault}: {shlex.join(line)}")
    if report["status"] != ended.status:
        raise Fault(f"ledger: the report says status {report['status']}, it was {ended.status}: {shlex.join(line)}")


def counts_of(report):
    return {name: value for name, value in report.items() if re.match(r"rows_|windows_missed|rejected$|disorder|lines_|headers_", name)}


def first_difference(want, got, what):
    for name in sorted({*want, *got}):
        a, b = want.get(name, b""), got.get(name, b"")
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            begin = max(0, at - 60)
            return f"{what}: {name} differs from byte {at}:\n  {a[begin:at + 140]!r}\n  {b[begin:at + 140]!r}"
    return None


class Case:
    """One random command line and its inputs, the same for the same seed."""

    def __init__(self, seed):
        self.seed = seed
        rng = self.rng = random.Random(f"crossed {seed}")
        self.tool = rng.choice(options.TOOLS + ("wm-window", "wm-join", "wm-merge"))
        self.is_merge = self.tool == "wm-merge"
        self.files = {}  # name: bytes
        self.side = {}  # what stands in side files beforehand
        self.operands = []
        if self.is_merge:
            self._draw_merge()
        else:
            self._draw_stream()
        self.sizes = [rng.choice((1, 2, 7, 40, 400, 5000)) for _ in range(rng.randint(1, 4))]
        if sum(map(len, self.files.values())) > 20_000:
            self.sizes = [997, 4096, 65_536]
        # Inputs are put in order only if they can be looked into, and a table is as wide as the rows that came at once.
        self.has_short_reads = rng.random() < 0.5 or {"--order", "table"} & {*self.line}

    def _draw_stream(self):
        rng = self.rng
        stream = self.stream = streams.Stream(rng)
        count = rng.choice((0, 1, 2, 10, 30, 30, 60, 60, 120, 2000 if rng.random() < 0.1 else 60))
        stream.draw_rows(count)
        if self.tool == "wm-join":
            other = [row for row in stream.rows if rng.random() < 0.5]
            parts = [[row for row in stream.rows if rng.random() < 0.7], other]
            if rng.random() < 0.2:
                parts[rng.randrange(2)] = rng.choice(([], stream.rows[:3], stream.rows[-2:]))
        else:
            pieces = rng.choice((1, 1, 1, 2, 3))
            if rng.random() < 0.5:
                cuts = sorted(rng.randrange(len(stream.rows) + 1) for _ in range(pieces - 1))
                parts = [stream.rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream.rows)])]
            else:
                parts = [[] for _ in range(pieces)]
                for row in stream.rows:
                    rng.choice(parts).append(row)
        if stream.format in ("csv", "ndjson") and not stream.is_split_time and self.tool != "wm-join" and rng.random() < 0.15:
            stream.is_stamped = True
        for number, part in enumerate(parts):
            data = stream.render(part)
            if stream.is_stamped:
                data = stamped(rng, stream, data)
            self.files[f"in{number}"] = streams.harm(rng, data) if rng.random() < 0.35 else data
        self.operands = list(self.files)
        command = self.command = options.Command(rng, self.tool, stream)
        command.base()
        command.cross()
        self.has_clock = command.has_clock
        if "files0-from" in command.names:
            self.side["names"] = b"".join(name.encode() + b"\0" for name in self.operands)
            self.operands = []
        for name in ("late", "rejects", "report", "result"):
            if {"append", "overwrite"} & command.names and rng.random() < 0.3:
                self.side[name] = rng.choice((b"", b"old\n", b"no end", b'{"type":"old"}\n'))
        if "report" not in command.names and rng.random() < 0.7:
            command.args += ["--report", "report"]
        # One FILE may come by standard input.
        self.has_stdin = len(self.operands) == 1 and rng.random() < 0.3
        if self.has_stdin:
            self.operands = rng.choice(([], ["-"]))
        self.line = command.line(command.has_checkpoint, command.eof) + self.operands

    def _draw_merge(self):
        rng = self.rng
        self.has_clock = self.has_stdin = False
        stream = self.stream = streams.Stream(rng, rng.choice(("csv", "csv", "ndjson", "tsv", "semicolon")))
        args = [arg for name in ("state-limit", "no-output-header", "ofmt", "output-format", "tz") if rng.random() < 0.15
                for arg in ("--" + name, *options.DRAWS[name](options.Command(rng, self.tool, stream)))]
        self.command = None
        if rng.random() < 0.4:
            # Parts of wm-window --partial.
            stream.draw_rows(rng.choice((0, 3, 40)))
            parts = [stream.rows[::2], stream.rows[1::2]]
            command = options.Command(rng, "wm-window", stream)
            command._input()
            window = ["wm-window", *command.args, "--tumbling", command.duration(10, 60), "-g", "k", "-a",
                      "count,sum:v,avg:v,p50:v,distinct:id,first:t,min:v,max:t", "--partial", "-q"]
            for name, part in zip(("main", "late1"), parts):
                self.files[name] = harness.run(window, stdin=stream.render(part)).stdout
            args += [rng.choice(("--partial", "--partial", "--keep-partial"))]
        else:
            names = [name for name in streams.ROLES]
            for name in ("main", "late1", "late2")[:rng.randint(2, 3)]:
                stream.rows = []
                stream.draw_rows(rng.choice((0, 1, 5, 30)))
                if rng.random() < 0.7:
                    stream.rows = list({row["key"] + row["id"]: row for row in stream.rows}.values())
                    stream.rows.sort(key=lambda row: row["key"])
                self.files[name] = stream.render(stream.rows)
            if rng.random() < 0.3:
                begin = stream.base_us + rng.randrange(1000) * stream.step_us
                ends = [harness.print_instant(begin + far * stream.step_us) for far in (0, rng.randrange(5000))]
                args += ["--replace", ",".join(ends), "-t", "ts"]
            else:
                args += ["-k", rng.choice(("k,id", "k", "k,id,s"))]
                rest = [streams.PLAIN_NAMES[name] for name in names if name not in ("key", "id", "source")]
                ways = [rng.choice(("--sum", "--min", "--max", "--last", "--last")) for _ in rest]
                for way in dict.fromkeys(ways):
                    args += [way, ",".join(name for name, other in zip(rest, ways) if other == way)]
            if rng.random() < 0.3:
                args += ["--in-place"] + (["--backup", ".old"] if rng.random() < 0.5 else [])
        if stream.format == "semicolon":
            args += ["-d", ";"]
        elif stream.format == "tsv":
            args += ["-i", "tsv"]
        for name in self.files:
            if rng.random() < 0.2:
                self.files[name] = streams.harm(rng, self.files[name])
        self.operands = list(self.files)
        self.line = [self.tool, *args, *self.operands]

    def fill(self, folder):
        folder.mkdir()
        for name, data in self.side.items():
            (folder / name).write_bytes(data)

    def env(self, has_checkpoint):
        return {"LD_PRELOAD": str(STILL), "WM_STILL_CLOCK": "1"} if has_checkpoint else {}

    # What is held

    def hold(self, top):
        whole = top / "files"
        self.fill(whole)
        for name, data in self.files.items():
            (whole / name).write_bytes(data)
        has_checkpoint = "-C" in self.line
        stdin = whole / next(iter(self.files)) if self.has_stdin else None
        ended = start(whole, self.line, [], stdin, harness.BIN, self.env(has_checkpoint))
        hold_end(self.line, ended)
        found, report = left(whole)
        hold_ledger(self.line, ended, report if "report" not in self.side else None)
        if ended.status == 2:
            self.hold_refused(whole, found)
        if not self.has_clock:
            self.hold_same(top, ended, found, report)
        if has_checkpoint and (whole / "st").exists():
            self.hold_kept(whole)
        if self.can_split() and ended.status in (0, 1):
            self.hold_split(top)
        return ended

    def hold_refused(self, folder, found):
        for name, data in found.items():
            if data != self.side.get(name, self.files.get(name, b"")):
                raise Fault(f"messages: {name} was written though the command was refused: {shlex.join(self.line)}")

    def is_of_cr(self):
        """Lines that end in CR alone are read from FILEs, and are an error on a pipe."""
        return any(b"\r" in data and b"\n" not in data for data in self.files.values())

    def hold_same(self, top, ended, found, report):
        """From pipes, or by short reads, with another zone and locale, the same comes out."""
        folder = top / "pipes"
        self.fill(folder)
        env = {"TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8"}
        has_checkpoint = "-C" in self.line
        env |= self.env(has_checkpoint)
        feeds = []
        stdin = None
        is_short = self.is_merge or self.has_short_reads or self.is_of_cr()
        if is_short:
            for name, data in self.files.items():
                (folder / name).write_bytes(data)
            library = str(harness.BIN / "tests/fault/short_reads.so")
            env["LD_PRELOAD"] = ":".join([library, *([str(STILL)] if has_checkpoint else [])])
            env["WM_SHORT_READS_SEED"] = str(self.seed)
            stdin = folder / next(iter(self.files)) if self.has_stdin else None
        elif self.has_stdin:
            stdin = next(iter(self.files.values()))
        else:
            for name, data in self.files.items():
                os.mkfifo(folder / name)
                feeds.append((folder / name, data, self.sizes))
        other = start(folder, self.line, feeds, stdin, OTHER_BIN, env)
        hold_end(self.line, other)
        shown = f"{shlex.join(self.line)}\n  {'short reads' if is_short else f'pipes, pieces of {self.sizes}'}"
        if ended.status == 2 and feeds:
            return  # FILEs are looked at beforehand, a pipe when its turn has come, and one that is empty not at all
        if other.status != ended.status:
            raise Fault(f"same: status {ended.status} and {other.status} of {shown}\n  {ended.errors.decode()}\n  {other.errors.decode()}")
        results, other_report = left(folder)
        if fault := first_difference({n: d for n, d in found.items() if n not in self.files or is_short},
                                     {n: d for n, d in results.items() if n not in self.files or is_short}, f"same: {shown}"):
            raise Fault(fault)
        if report and other_report and counts_of(report) != counts_of(other_report):
            raise Fault(f"same: ledgers differ: {counts_of(report)}\n  {counts_of(other_report)}\n  {shown}")
        if "json" not in self.line and ended.errors != other.errors and not has_checkpoint:
            raise Fault(first_difference({"stderr": ended.errors}, {"stderr": other.errors}, f"same: {shown}"))

    def hold_kept(self, folder):
        for words in (["verify", "st"], ["show", "st"], ["dump", "st"], ["watermark", "st"], ["position", "st"],
                      ["why", "st", harness.print_instant(self.stream.base_us)]):
            line = ["wm-checkpoint", *words]
            with open(folder / "said", "wb") as said:
                done = subprocess.run([str(OTHER_BIN / line[0]), *line[1:]], cwd=folder, stdout=said, stderr=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, preexec_fn=limits, check=False, env={**os.environ, **SANITIZERS})
            hold_end(line, Ended(done.returncode, done.stderr))
            if done.returncode != 0 and words[0] in ("verify", "show", "dump"):
                raise Fault(f"kept: status {done.returncode} of {shlex.join(line)}: {done.stderr.decode()}")
            if words[0] == "dump":
                for text in (folder / "said").read_bytes().splitlines():
                    try:
                        json.loads(text)
                    except ValueError:
                        raise Fault(f"kept: dump writes {text[:300]!r}, which is no JSON") from None

    def can_split(self):
        """Whether it is promised that runs on one checkpoint give what one run gives."""
        if self.is_merge or self.has_clock or not self.command.has_checkpoint:
            return False
        command = self.command
        args = self.line
        if command.names & {"strict", "order", "merge", "position", "max-file-age", "files0-from", "merge-sorted", "state-limit",
                            "append", "overwrite", "plot", "resume"}:
            return False
        if any(word in args for word in ("table", "file", "eof", "complete")):
            return False
        # What the sides of a join share under --compat spark, and stamps, depend on which is read when.
        if self.tool == "wm-join" and command.names & {"compat", "stamp"}:
            return False
        # What needs a watermark to be written at all waits for ever without one.
        has_delay = command.has_delay and not (self.tool == "wm-join" and "none" in args)
        return has_delay and (len(self.files) == 1 or self.tool == "wm-join") and not self.side

    def hold_split(self, top):
        command = self.command
        rng = random.Random(f"split {self.seed}")
        end = command.eof or "hold"
        names = list(self.files)
        is_join = self.tool == "wm-join"
        # A tail that is unfinished stays so under hold; here the whole and the parts must agree on it.
        one = top / "one"
        many = top / "many"
        one.mkdir()
        many.mkdir()
        for name, data in self.files.items():
            (one / name).write_bytes(data)
        # Only where there is another run a join waits with its header until the columns of both sides are known, and a
        # last line without its end is left.
        is_kept = is_join or not all(data.endswith(b"\n") for data in self.files.values())
        first = start(one, command.line(is_kept, end) + names, [], None, harness.BIN, self.env(is_kept))
        if first.status not in (0, 1):
            return
        steps = rng.randint(1, 4)
        stops = [[*sorted(rng.randrange(len(data) + 1) for _ in range(steps)), len(data)] for data in self.files.values()]
        way = "growing" if is_join or self.is_of_cr() else rng.choice(("growing", "growing", "pipe", "replay"))
        shown = f"split, {way} at {stops}: "
        for number in range(steps + 1):
            is_last = number == steps
            line = command.line(True, end if is_last else "hold")
            stdin = None
            if way == "growing":
                for stop, (name, data) in zip(stops, self.files.items()):
                    (many / name).write_bytes(data[:stop[number]])
                line += names
            else:
                data = next(iter(self.files.values()))
                stdin = data[0 if way == "replay" or number == 0 else stops[0][number - 1]:stops[0][number]]
                line += ["--resume", "replay"] if way == "replay" else []
            if self.tool == "wm-lag" and not command.closes_windows():
                (many / "out").unlink(missing_ok=True)
                (many / "result").unlink(missing_ok=True)
            ended = start(many, line, [], stdin, harness.BIN, self.env(True))
            hold_end(line, ended)
            if ended.status not in (0, 1, 5):
                raise Fault(f"{shown}run {number + 1} ends with {ended.status}: {shlex.join(line)}\n{ended.errors.decode()}")
        (want, report), (got, reports) = left(one), left(many)
        if way != "growing":
            want, got = ({n: d.replace(b'"standard input"', b'"in0"') for n, d in side.items()} for side in (want, got))
        if is_join:
            want, got = ({n: b"".join(sorted(d.splitlines(keepends=True))) for n, d in side.items()} for side in (want, got))
        if fault := first_difference(want, got, shown + shlex.join(line)):
            raise Fault(fault)
        a, b = ({n: v for n, v in counts_of(each or {}).items() if self.tool != "wm-lag" or n != "rows_out"}
                for each in (report, reports))  # wm-lag writes its table anew
        if report and reports and a != b:
            raise Fault(f"{shown}ledgers differ: {({n: (a[n], b.get(n)) for n in a if a[n] != b.get(n)})}: {shlex.join(line)}")


def stamped(rng, stream, data):
    """The same rows behind wm-stamp, as a filter may have left them."""
    args = ["-t", stream.time_column(), "-w", options.duration(rng.choice((0, 3, 30)) * stream.step_us), "--trigger",
            rng.choice(("each", "each", "3rows")), "-q"]
    lines = harness.run(["wm-stamp", *args], stdin=data).stdout.splitlines(keepends=True)
    share = rng.choice((0, 0, 0.2))
    return b"".join(line for number, line in enumerate(lines) if number == 0 or rng.random() >= share)


def attempt(seed, kept=None):
    """The fault of a case or None, and how its first run ended."""
    case = Case(seed)
    top = kept or pathlib.Path(tempfile.mkdtemp(prefix="wm-crossed-"))
    try:
        return None, case, case.hold(top)
    except Fault as fault:
        return fault, case, None
    finally:
        if not kept:
            shutil.rmtree(top)


def shown(case, fault):
    inputs = "".join(f"\n  {name}: {data[:1500]!r}" for name, data in {**case.side, **case.files}.items())
    return f"seed {case.seed} (tests/crossed/crossed.py --only {case.seed}): {fault}\n  command: {shlex.join(case.line)}{inputs}"


def kind_of(fault):
    return str(fault).split(":")[0].split(",")[0]


def only(seed):
    shutil.rmtree(KEPT / str(seed), ignore_errors=True)
    (KEPT / str(seed)).mkdir(parents=True)
    fault, case, _ = attempt(seed, KEPT / str(seed))
    print(shown(case, fault) if fault else f"seed {seed}: no fault: {shlex.join(case.line)}")
    print(f"its files are in {KEPT / str(seed)}")
    return 1 if fault else 0


def main():
    if sys.argv[1:2] == ["--only"]:
        return only(int(sys.argv[2]))
    count = int(sys.argv[1]) if sys.argv[1:] else CASES
    tap = harness.Tap()
    for tool in (*options.TOOLS, "wm-merge"):
        missing = options.unknown(tool)
        tap.ok(not missing, f"{tool}: options.py knows every option", f"unknown: {', '.join(missing)}")
    begin = time.monotonic()
    faults = collections.defaultdict(list)
    statuses = collections.Counter()
    refused = collections.Counter()
    for seed in range(SEED, SEED + count):
        fault, case, ended = attempt(seed)
        statuses[ended.status if ended else "fault"] += 1
        if ended and ended.status == 2:
            refused[re.sub(r"'[^']*'|\d+", "#", ended.errors.decode(errors="replace").strip())] += 1
        if fault:
            faults[kind_of(fault)].append(shown(case, fault))
            KEPT.mkdir(parents=True, exist_ok=True)
            with open(KEPT / "faults", "a", encoding="utf-8") as file:
                file.write(shown(case, fault) + "\n")
        if (seed - SEED + 1) % 1000 == 0:
            tap.note(f"{seed - SEED + 1} of {count} cases, {sum(map(len, faults.values()))} faults, {time.monotonic() - begin:.0f} s")
    for law in ("same", "ledger", "split", "ends", "hangs", "messages", "kept"):
        found = faults.pop(law, [])
        tap.ok(not found, f"{law}: {count} random command lines", *found[:FAULTS_SHOWN], f"{len(found)} faults")
    assert not faults, faults
    tap.note(f"statuses: {dict(statuses)}; {time.monotonic() - begin:.0f} s")
    if "-v" in os.environ.get("WM_CROSSED", ""):
        tap.note(*[f"{number} {message}" for message, number in refused.most_common(40)])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
