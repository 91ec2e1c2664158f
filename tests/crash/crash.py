#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Histories of runs that are killed (kill -9) and started again end in the bytes of the same history without a kill.

    tests/crash/crash.py [KILLS]        200 kills, or so many

A history is a command of histories.py, and an input that grows from run to run. Each run is started again until one of
its attempts ends by itself; attempts before that are killed, half of them after a random time from outside, half at a
random system call (tests/fault/kill_at.c), also in the middle of a write. One in six attempts of the first kind gets SIGTERM
instead, which ends a run well wherever it stands. WM_SEED starts elsewhere.
"""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
import histories

SEED = int(os.environ.get("WM_SEED", "1"))
LIBRARY = harness.BIN / "tests/fault/kill_at.so"
ASAN = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
MODES = ("file", "out", "files", "replay")


class History:
    """The runs of one history: what each is started with, and the input that it finds."""

    def __init__(self, rng, name, form, mode):
        self.arguments = histories.command(name) + ["-C", "st", "--checkpoint-every", rng.choice(["50rows", "200rows", "1000rows"])]
        self.each = name in histories.EACH_RUN
        header, lines = histories.stream(rng, rng.choice([1500, 4000, 8000]), form)
        text = header + b"".join(lines)
        stops = sorted(rng.randrange(len(text)) for _ in range(rng.randint(0, 3))) + [len(text)]
        if name in histories.JOINS:
            mode = "out" if mode == "out" else "join"
            header, lines = histories.stream(rng, 3000, form)
        self.mode = mode
        if mode == "out":
            self.arguments += ["--out", "out"]
        if mode == "replay":
            self.arguments += ["--resume", "replay"]
        if mode == "files" and not name.startswith("sort") and form != "csv":
            middle = len(lines) // 2
            pieces = [header + b"".join(lines[:middle]), header + b"".join(lines[middle:])]
            self.steps = [{"in0": pieces[0][:len(pieces[0]) // 2]}, {"in0": pieces[0]},
                          {"in1": pieces[1][:len(pieces[1]) // 3]}, {"in1": pieces[1]}]
        else:
            self.steps = [{"in0": text[:stop]} for stop in stops]
        if name in histories.JOINS:
            right = header + b"".join(lines)
            for step in self.steps:
                step["in1"] = right[:rng.randrange(len(right))]
            self.steps[-1]["in1"] = right

    def start(self, folder, step, env):
        files = sorted({name for s in self.steps[:step + 1] for name in s})
        for name, text in self.steps[step].items():
            path = folder / name
            old = path.stat().st_size if path.exists() else 0
            with open(path, "ab") as file:
                file.write(text[old:])  # nothing, where it has grown further before
        env = {"LD_PRELOAD": str(LIBRARY), "WM_STILL_CLOCK": "1", "ASAN_OPTIONS": ASAN, **env}
        out = "nothing" if self.mode == "out" else "out"
        if self.mode != "replay":
            return histories.start(folder, self.arguments, files, env=env, out=out)
        process = histories.start(folder, self.arguments, stdin=subprocess.PIPE, env=env, out=out)
        text = (folder / "in0").read_bytes()

        def feed():
            try:
                process.stdin.write(text)
            except BrokenPipeError:
                pass
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass

        threading.Thread(target=feed, daemon=True).start()
        return process


def finish(process):
    errors = process.stderr.read()
    process.stderr.close()
    return process.wait(60), errors.decode(errors="replace")


def undisturbed(history, folder):
    """The outputs in the end, and of each run how long it took and how many calls it made."""
    took = []
    for step in range(len(history.steps)):
        before = len(histories.outputs(folder)["out"])
        begin = time.monotonic()
        status, errors = finish(history.start(folder, step, {"WM_COUNT": "count"}))
        if status not in (0, 1):
            raise ValueError(f"status {status} without a kill: {errors}")
        took.append((time.monotonic() - begin, int((folder / "count").read_text())))
    want = histories.outputs(folder)
    if history.each:
        want["out"] = want["out"][before:]
    return want, took


def disturbed(history, folder, rng, took):
    """The outputs in the end, and how many kills there were."""
    kills = 0
    told = []
    for step, (seconds, calls) in enumerate(took):
        attempts = rng.choice([0, 1, 1, 2, 3])
        for attempt in range(attempts + 1):
            env = {}
            number = signal.SIGKILL
            if attempt < attempts and rng.random() < 0.5:
                env["WM_KILL_AT"] = str(rng.randint(1, calls + 3))
                told.append(f"step {step}: call {env['WM_KILL_AT']}")
            process = history.start(folder, step, env)
            if attempt < attempts and not env:
                wait = rng.random() * seconds
                number = signal.SIGKILL if history.each or rng.random() < 0.85 else signal.SIGTERM
                time.sleep(wait)
                process.send_signal(number)
                told.append(f"step {step}: {number.name} after {wait:.4f} s")
            status, errors = finish(process)
            if status == -signal.SIGKILL:
                kills += 1
            elif status == -signal.SIGTERM:
                told.append("ended by SIGTERM")
            elif status in (0, 1):
                break
            else:
                raise ValueError(f"status {status} after {', '.join(told)}: {errors}")
    return histories.outputs(folder), kills, told


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    tap = harness.Tap()
    if not LIBRARY.exists():
        sys.exit(f"{LIBRARY} is not there: make tests")
    kills = 0
    faults = []
    number = 0
    cases = histories.cases() + histories.joins()
    begin = time.monotonic()
    random.Random(SEED).shuffle(cases)
    while kills < wanted and len(faults) < 5:
        name, form = cases[number % len(cases)]
        rng = random.Random(f"{SEED} {number}")
        mode = rng.choice(MODES)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="wm-crash-"))
        (folder / "one").mkdir()
        (folder / "many").mkdir()
        try:
            history = History(rng, name, form, mode)
            want, took = undisturbed(history, folder / "one")
            got, count, told = disturbed(history, folder / "many", rng, took)
            kills += count
            # A run that was killed behind its last commit was whole, and what follows is one more.
            if history.each and got["out"].endswith(want["out"].partition(b"\n")[2]):
                got["out"] = want["out"]
            fault = histories.difference(want, got)
            if fault:
                fault += f"\n  {', '.join(told)}"
        except (ValueError, subprocess.TimeoutExpired) as error:
            fault = str(error)
        if fault:
            faults.append(f"history {number}: {name}, {form}, {mode}: {fault}")
            if os.environ.get("WM_CRASH_KEEP"):
                faults[-1] += f"\n  in {folder}"
        if not fault or not os.environ.get("WM_CRASH_KEEP"):
            shutil.rmtree(folder)
        number += 1
    tap.ok(not faults, "killed at any moment, histories end in the bytes of those without a kill", *faults)
    tap.note(f"crash: {kills} kills in {number} histories, {time.monotonic() - begin:.0f} s")
    return tap.done()


sys.exit(main())
