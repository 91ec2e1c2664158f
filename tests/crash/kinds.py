#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills (kill -9) where they hurt most, by kind: at commits in the middle of a run, and where inputs or outputs are no plain files.

    tests/crash/kinds.py [KILLS [KIND...]]      120 kills over all kinds, or so many

commits    around a commit in the middle of a run: before, in and behind it. Also the order of syncs in each attempt.
reader     standard output is a pipe with a slow reader: each attempt hands out what follows the rows of its checkpoint, and
           no row between two attempts is lost
fifos      two FIFOs, for a join and for --merge, whose writers bring everything again (--resume replay)
positions  the same with writers that begin where the checkpoint says (--position), or some rows before
pipeline   three stages in a pipe, each with a kill point of its own; the last one has the checkpoint
stages     three stages with files between them, each with a checkpoint and kills of its own
rotation   logs that are rotated between runs and between a kill and the next attempt (tests/rotations.py)

In the end the outputs have the bytes of one run without a kill over files, which is counted independently where the rows of
the input are made here. WM_SEED starts elsewhere.
"""

import collections
import contextlib
import csv
import errno
import fcntl
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fault")]
import harness
import histories
import order
import rotations

SEED = int(os.environ.get("WM_SEED", "1"))
ENV = {"WM_STILL_CLOCK": "1", **rotations.ENV}
ATTEMPTS = 4
ENDED = (0, 1)
# Steps of a commit, in their order.
COMMIT_CALLS = ("fsync", "link", "rename")


class Fault(Exception):
    """The law does not hold."""


class Told:
    """What was done in a history, and how many of its processes were killed."""

    def __init__(self):
        self.kills = collections.Counter()
        self.lines = []

    def ended(self, stage, env, status, errors=""):
        """Whether a process ended by itself; anything but that or a kill is a fault."""
        point = " ".join(f"{name[3:]}={value}" for name, value in env.items() if name.startswith("WM_KILL"))
        self.lines.append(f"{stage} {point or 'to its end'}: {status}")
        if status == -9:
            self.kills[stage] += 1
        elif status not in ENDED:
            raise Fault(f"{stage}: status {status}: {errors}")
        return status in ENDED


def near_commit(rng, commits=6):
    """A point shortly before, in or behind one of the first commits."""
    return {"WM_KILL_CALL": rng.choice(COMMIT_CALLS), "WM_KILL_AT": str(rng.randint(1, 3 * commits)),
            "WM_KILL_LATER": str(rng.randrange(9))}


def anywhere(rng, calls):
    return {"WM_KILL_AT": str(rng.randint(1, calls))}


def point(rng, calls=60):
    return near_commit(rng) if rng.random() < 0.6 else anywhere(rng, calls)


# Rows that are counted here as well

def make_rows(rng, count, key_count=4):
    """(id, event time in ms, key, v): in order but for a few that are within the delay of 5 s, or late."""
    rows = []
    now = 1_700_000_000_000 + rng.randrange(3_600_000)
    for number in range(1, count + 1):
        now += rng.choice([0, 1, 250, 999, 1000])
        back = rng.choice([0, 0, 0, rng.randrange(4000)]) if rng.random() < 0.98 else rng.randrange(6000, 60_000)
        rows.append((number, now - back, "abcdefgh"[rng.randrange(key_count)], rng.randrange(100)))
    return rows


def late_ids(rows, delay_ms=5000):
    """Those before the watermark that all rows up to them make."""
    highest, late = 0, set()
    for number, time_ms, _, _ in rows:
        highest = max(highest, time_ms)
        if time_ms < highest - delay_ms:
            late.add(number)
    return late


def text_of(rows, form):
    """Header and lines."""
    def second(ms):
        return f"{ms // 1000}.{ms % 1000:03d}"
    if form == "json":
        return b"", [f'{{"id":{n},"ts":{second(t)},"k":"{k}","v":{v}}}\n'.encode() for n, t, k, v in rows]
    return b"id,ts,k,v\n", [f"{n},{second(t)},{k},{v}\n".encode() for n, t, k, v in rows]


def run(folder, arguments, stdin=b"", env=None):
    """The standard output of a run to its end."""
    done = harness.run(arguments, cwd=folder, stdin=stdin, env={**ENV, **(env or {})})
    if done.returncode not in ENDED:
        raise Fault(f"{' '.join(arguments)}: status {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def ids_of(text):
    """How often each id is there: the first column, or member. Punctuation has none."""
    lines = [line for line in text.decode().splitlines() if not line.startswith(("id,", ",", '{"_'))]
    return collections.Counter(int(line.removeprefix('{"id":').partition(",")[0]) for line in lines)


def counted(text):
    """The sum of the results of count."""
    lines = text.decode().splitlines()
    if lines[0].startswith("{"):
        return sum(json.loads(line)["count"] for line in lines)
    return sum(int(row["count"]) for row in csv.DictReader(lines))


def same(name, want, got):
    if fault := histories.difference({"": want}, {"": got}):
        raise Fault(f"{name}{fault}")


# The kinds: each a history with kills; a Fault, or nothing

def commits(rng, folder, told):
    name, form = rng.choice([case for case in histories.cases() if case[0] not in histories.EACH_RUN])
    header, lines = histories.stream(rng, rng.choice([600, 1500]), form)
    arguments = [*histories.command(name), "-C", "st", "--checkpoint-every", rng.choice(["20rows", "100rows"]), "--out", "out",
                 "in0"]
    for part in ("one", "many"):
        (folder / part).mkdir()
        (folder / part / "in0").write_bytes(header + b"".join(lines))
    run(folder / "one", arguments, env={"WM_COUNT": "count"})
    calls = int((folder / "one/count").read_text())
    want = histories.outputs(folder / "one")
    many = folder / "many"
    for attempt in range(ATTEMPTS + 1):
        # With 20 rows a commit there are dozens of them.
        env = {} if attempt == ATTEMPTS else near_commit(rng, 20) if rng.random() < 0.8 else anywhere(rng, calls)
        log = many / "log"
        log.unlink(missing_ok=True)
        done = harness.run(arguments, cwd=many, env={**ENV, **env, "WM_LOG": str(log)})
        is_over = told.ended(name, env, done.returncode, done.stderr)
        faults, named, _ = order.faults_of(order.calls_of(log), many.name, is_over)
        if faults:
            raise Fault(f"{name}: out of order: {faults[:3]}")
        told.kills["amid a run"] += not is_over and named > 1
        if is_over:
            break
    for output, text in histories.outputs(many).items():
        same(f"{name}, {form}, {output}", want[output], text)


def narrow_pipe():
    """Its two ends; it is full soon."""
    ends = os.pipe()
    fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 4096)
    return ends


def read_slowly(rng, fd):
    text = b""
    while piece := os.read(fd, rng.choice([100, 1000, 4096])):
        text += piece
        time.sleep(rng.choice([0, 0, 0, 0.0005]))
    return text


def reader(rng, folder, told):
    form = rng.choice(["csv", "json"])
    header, lines = text_of(make_rows(rng, 1500), form)
    (folder / "in").write_bytes(header + b"".join(lines))
    tool = rng.choice([["wm-stamp", "--add", "late,watermark"], ["wm-sort"], ["wm-dedup", "-k", "k,v"],
                       ["wm-window", "--tumbling", "2s", "-g", "k", "-a", "count,sum:v"]])
    plain = [*tool, "-q", "-t", "ts", "-w", "5s", "--eof", "hold"]
    arguments = [*plain, "-C", "st", "--checkpoint-every", rng.choice(["30rows", "100rows"]), "in"]
    whole = run(folder, [*plain, "in"])
    head = whole[:whole.index(b"\n") + 1] if form == "csv" else b""
    body = whole[len(head):]
    handed = 0  # bytes of it that the reader has
    for attempt in range(ATTEMPTS + 1):
        env = {} if attempt == ATTEMPTS else near_commit(rng, 12) if rng.random() < 0.6 else anywhere(rng, 250)
        begin = 0
        if (folder / "st").exists():
            # Rows of input that the checkpoint counts, and what a run over them alone writes.
            at = int(run(folder, ["wm-checkpoint", "position", "st", "in"]))
            begin = max(0, len(run(folder, plain, stdin=(folder / "in").read_bytes()[:at])) - len(head)) if at else 0
        if begin > handed:
            raise Fault(f"{tool}: the checkpoint counts {begin} bytes of results, and {handed} were handed out")
        from_tool, into = narrow_pipe()
        with subprocess.Popen([harness.BIN / arguments[0], *arguments[1:]], cwd=folder, stdin=subprocess.DEVNULL, stdout=into,
                              stderr=subprocess.PIPE, env={**os.environ, **ENV, **env}) as process:
            os.close(into)
            got = read_slowly(rng, from_tool)
            os.close(from_tool)
            errors = process.stderr.read()
        got = b"" if head.startswith(got) else got.removeprefix(head)
        is_over = told.ended(tool[0], env, process.returncode, errors)
        want = body[begin:] if is_over else body[begin:begin + len(got)]
        same(f"{tool}, {form}, attempt {attempt} from byte {begin}", want, got)
        handed = max(handed, begin + len(got))
        if is_over:
            return
    raise Fault("it never ended")


def feed(rng, path, text, process):
    """Writes into a FIFO in pieces of any size; not for ever."""
    with contextlib.suppress(BrokenPipeError):
        while True:
            try:
                fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError as error:
                if error.errno != errno.ENXIO or process.poll() is not None:
                    return
                time.sleep(0.0005)
        os.set_blocking(fd, True)
        try:
            while text:
                size = rng.choice([1, 50, 700, 5000])
                os.write(fd, text[:size])
                text = text[size:]
                time.sleep(rng.choice([0, 0, 0, 0, 0.0005]))
        finally:
            os.close(fd)


FIFO_COMMANDS = (
    ["wm-join", "-k", "k", "--between=-2s,2s"],
    ["wm-join", "-k", "k", "--between=-1s,3s", "--type", "full"],
    ["wm-join", "-k", "k", "--asof", "backward", "--tolerance", "5s", "--type", "left"],
    ["wm-join", "-k", "k", "--between=-2s,2s", "--trigger", "column:id"],
    ["wm-sort", "--merge"],
    ["wm-stamp", "--merge"],
    ["wm-dedup", "--merge", "-k", "k,v"],
    ["wm-window", "--merge", "--tumbling", "2s", "-g", "k", "-a", "count,sum:v,first:id"],
)


def of_two_fifos(rng, folder, told, has_positions):
    form = rng.choice(["csv", "json"])
    command = rng.choice(FIFO_COMMANDS)
    rows = {"l": make_rows(rng, rng.choice([100, 400])), "r": make_rows(rng, rng.choice([3, 100, 400]))}
    texts = {name: text_of(rows[name], form) for name in rows}
    arguments = [*command, "-q", "-t", "ts", "-w", "5s", "--eof", "flush", "--out", "out"]
    (folder / "one").mkdir()
    many = folder / "many"
    many.mkdir()
    for name, (header, lines) in texts.items():
        (folder / "one" / name).write_bytes(header + b"".join(lines))
        os.mkfifo(many / name)
    run(folder / "one", [*arguments, "-C", "st", "l", "r"])
    kept = ["-C", "st", "--checkpoint-every", rng.choice(["7rows", "40rows"]),
            *(["--position", "id"] if has_positions else ["--resume", "replay"])]
    for attempt in range(ATTEMPTS + 1):
        env = {} if attempt == ATTEMPTS else point(rng, 150)
        pieces = {}
        for name, (header, lines) in texts.items():
            begin = 0
            if has_positions and (many / "st").exists():
                done = harness.run(["wm-checkpoint", "position", "st", name], cwd=many, env=ENV)
                begin = int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 0
                begin = max(0, begin - rng.choice([0, 0, 1, 20]))
            pieces[name] = header + b"".join(lines[begin:])
        with subprocess.Popen([harness.BIN / arguments[0], *arguments[1:], *kept, "l", "r"], cwd=many,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env={**os.environ, **ENV, **env}) as process:
            feeders = [threading.Thread(target=feed, args=(random.Random(rng.random()), many / name, text, process))
                       for name, text in pieces.items()]
            for feeder in feeders:
                feeder.start()
            errors = process.stderr.read()
            process.wait(60)
            for feeder in feeders:
                feeder.join()
        if told.ended(command[0], env, process.returncode, errors):
            break
    want, got = ((folder / part / "out").read_bytes() for part in ("one", "many"))
    same(f"{' '.join(arguments)}, {form}", want, got)
    if command[0] == "wm-stamp" and ids_of(got) != collections.Counter(row[0] for side in rows.values() for row in side):
        raise Fault("not each row is there once")


def fifos(rng, folder, told):
    of_two_fifos(rng, folder, told, False)


def positions(rng, folder, told):
    of_two_fifos(rng, folder, told, True)


# Stages that read what the one before has written; the first one reads "in".
STAGES = (
    [["wm-stamp", "-t", "ts", "-w", "5s"], ["wm-dedup", "-k", "id", "--with-time"], ["wm-window", "--tumbling", "2s", "-g", "k"]],
    [["wm-stamp", "-t", "ts", "-w", "5s", "--trigger", "3rows"], ["wm-window", "--tumbling", "2s", "-g", "k"]],
    [["wm-dedup", "-t", "ts", "-w", "5s", "-k", "id"], ["wm-sort", "-t", "ts", "-w", "5s"],
     ["wm-window", "-t", "ts", "-w", "0s", "--tumbling", "2s", "-g", "k"]],
    [["wm-stamp", "-t", "ts", "-w", "5s"], ["wm-dedup", "-k", "id", "--with-time"], ["wm-join", "-k", "k", "--between=0s,1s", "-", "right"]],
    [["wm-window", "-t", "ts", "-w", "5s", "--tumbling", "1s", "-g", "k", "--stamp"],
     ["wm-window", "--tumbling", "4s", "-a", "sum:count"]],
)


def stages_of(rng, folder, form):
    """Stages, their input in each folder, and what they write in the end, from one run of each over a file."""
    stages = [[*stage, "-q"] for stage in rng.choice(STAGES)]
    rows = make_rows(rng, rng.choice([300, 900]))
    if "wm-dedup" in (stages[0][0], stages[1][0]):
        # Some come again, at once.
        rows = [row for row in rows for _ in range(rng.choice([1, 1, 2]))]
    header, lines = text_of(rows, form)
    folder.joinpath("in").write_bytes(header + b"".join(lines))
    right = run(folder, ["wm-stamp", "-t", "ts", "-w", "5s", "-q"], stdin=(folder / "in").read_bytes())
    folder.joinpath("right").write_bytes(right)
    text = (folder / "in").read_bytes()
    for stage in stages:
        text = run(folder, [*stage, "--eof", "flush"], stdin=text)
    on_time = len({row[0] for row in rows} - late_ids(rows))
    if "wm-dedup" in (stages[0][0], stages[1][0]) and stages[-1][0] == "wm-window" and counted(text) != on_time:
        raise Fault(f"{stages}: {counted(text)} rows are counted, and {on_time} are on time")
    return stages, text


def same_in_the_end(stages, want, folder):
    got = (folder / "out").read_bytes()
    if stages[-1][0] == "wm-join":
        # The order of its rows depends on where runs end.
        want, got = (b"".join(sorted(text.splitlines(keepends=True))) for text in (want, got))
    same(stages, want, got)


# Of the last stage, where another one was killed before it had written what was read before: nothing is touched.
TOO_SHORT = (b"does not begin as before", b" was processed up to byte ", b" was read up to byte ")


def pipeline(rng, folder, told):
    form = rng.choice(["csv", "json"])
    stages, want = stages_of(rng, folder, form)
    last = len(stages) - 1
    for attempt in range(ATTEMPTS + 1):
        # Mostly one dies, and the others have to come to terms with it.
        killed = set() if attempt == ATTEMPTS else set(rng.sample(range(last + 1), rng.choice([1, 1, 1, 2])))
        processes = []
        for number, stage in enumerate(stages):
            env = point(rng) if number in killed and number == last else anywhere(rng, 25) if number in killed else {}
            arguments = list(stage)
            if number == last:
                arguments += ["-C", "st", "--checkpoint-every", rng.choice(["10rows", "50rows"]), "--resume", "replay", "--out",
                              "out", "--eof", "flush" if attempt == ATTEMPTS else "hold"]
            elif number and attempt < ATTEMPTS:
                arguments += ["--eof", "hold"]
            if number == 0:
                arguments.append("in")
            processes.append((arguments[0], env, subprocess.Popen(
                [harness.BIN / arguments[0], *arguments[1:]], cwd=folder,
                stdin=processes[-1][2].stdout if processes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if number < last else subprocess.DEVNULL, stderr=subprocess.PIPE,
                env={**os.environ, **ENV, **env})))
            if number:
                processes[-2][2].stdout.close()
        for number, (tool, env, process) in enumerate(processes):
            errors = process.stderr.read()
            process.stderr.close()
            status = process.wait(60)
            # Whoever reads it is gone.
            if status == -13 and number < last:
                told.lines.append(f"{tool}: SIGPIPE")
                continue
            if number == last and status == 3 and any(words in errors for words in TOO_SHORT) and killed - {last}:
                told.lines.append(f"{tool}: its input ends too early")
                continue
            told.ended(f"{tool}, stage {number + 1}", env, status, errors)
    same_in_the_end(stages, want, folder)


def stages(rng, folder, told):
    form = rng.choice(["csv", "json"])
    commands, want = stages_of(rng, folder, form)
    text = (folder / "in").read_bytes()
    (folder / "in").unlink()
    stops = sorted(rng.randrange(len(text)) for _ in range(2)) + [len(text)]
    for number, stop in enumerate(stops):
        with open(folder / "in", "ab") as file:
            file.write(text[file.tell():stop])
        source = "in"
        for place, command in enumerate(commands):
            end = "flush" if number == len(stops) - 1 else "hold"
            out = f"out{place}" if place < len(commands) - 1 else "out"
            arguments = [*command, "-C", f"st{place}", "--checkpoint-every", "20rows", "--eof", end, "--out", out]
            arguments = [source if argument == "-" else argument for argument in arguments]
            arguments += [] if "right" in command else [source]
            for attempt in range(3):
                env = point(rng) if attempt < 2 and rng.random() < 0.6 else {}
                done = harness.run(arguments, cwd=folder, env={**ENV, **env})
                if told.ended(f"{command[0]}, stage {place + 1}", env, done.returncode, done.stderr):
                    break
            source = out
    same_in_the_end(commands, want, folder)


class KilledLog(rotations.Log):
    """Runs are killed, and things happen to the log before they are started again."""

    def __init__(self, folder, rng, form, told):
        super().__init__(folder, rng, form)
        self.kills = told
        self.is_over = False

    def run(self):
        while self.parts and not self.is_over and self.rng.random() < 0.5:
            env = point(self.rng, 80)
            status, errors = self.attempt({**env, "WM_STILL_CLOCK": "1"}, ["--checkpoint-every", "1rows"])
            if self.kills.ended("wm-stamp", env, status, errors):
                break
            for rows in self.parts.values():
                self.maybe |= set(rows)
            if self.rng.random() < 0.5:
                return
        super().run()


def rotation(rng, folder, told):
    log = KilledLog(folder, rng, rng.choice(["csv", "json"]), told)
    try:
        for _ in range(14):
            log.step()
        log.is_over = True
        fault = log.end()
    except ValueError as error:
        fault = str(error)
    if fault:
        raise Fault(fault + "\n  " + "\n  ".join(log.told))


KINDS = {"commits": commits, "reader": reader, "fifos": fifos, "positions": positions, "pipeline": pipeline,
         "stages": stages, "rotation": rotation}


def kills_of(name, wanted):
    """Histories of a kind until so many kills: how many of both, by what was killed, and what is at fault."""
    kills, faults, number = collections.Counter(), [], 0
    while sum(kills.values()) - kills["amid a run"] < wanted and len(faults) < 3 and number < 20 * wanted + 20:
        rng = random.Random(f"{SEED} {name} {number}")
        told = Told()
        folder = pathlib.Path(tempfile.mkdtemp(prefix="wm-kinds-"))
        fault = None
        try:
            KINDS[name](rng, folder, told)
        except (Fault, subprocess.TimeoutExpired, OSError) as error:
            fault = f"history {number}: {type(error).__name__}: {error}\n  " + "\n  ".join(told.lines)
        if fault:
            faults.append(fault)
        if fault and os.environ.get("WM_CRASH_KEEP"):
            faults[-1] += f"\n  in {folder}"
        else:
            shutil.rmtree(folder)
        kills += told.kills
        number += 1
    return kills, number, faults


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    names = sys.argv[2:] or KINDS
    tap = harness.Tap()
    if not rotations.LIBRARY.exists():
        sys.exit(f"{rotations.LIBRARY} is not there: make tests")
    everything = 0
    for name in names:
        begin = time.monotonic()
        kills, histories_count, faults = kills_of(name, -(-wanted // len(names)))
        amid = kills.pop("amid a run", None)
        count = sum(kills.values())
        everything += count
        tap.ok(not faults, f"{name}: killed anywhere, in the end it is as without a kill", *faults)
        if amid is not None:
            tap.ok(amid * 2 > count, f"{name}: most kills came behind a commit in the middle of a run", f"{amid} of {count}")
        tap.note(f"{name}: {count} kills in {histories_count} histories, {time.monotonic() - begin:.0f} s")
        tap.note(", ".join(f"{number} {what}" for what, number in sorted(kills.items())))
    tap.note(f"kinds: {everything} kills")
    return tap.done()


sys.exit(main())
