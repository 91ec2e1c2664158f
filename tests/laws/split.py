#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A law: however an input is split into runs on one checkpoint, they write the bytes of one run.

growing    one file grows between the runs, and is cut anywhere: within a record, a line end, the header
files      several files, one after the other, the last one growing
pipe       each run gets the next bytes through a pipe
replay     each run gets all that there is through a pipe (--resume replay)

Each with every command of histories.py that goes on from run to run, in CSV and NDJSON. The one run that they are held to
keeps no checkpoint. WM_SEED starts the seeds elsewhere; names of commands run those alone.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
import histories

SEED = int(os.environ.get("WM_SEED", "1"))
ROUNDS = 3
ROWS = 160
MODES = ("growing", "files", "pipe", "replay")
# Nothing is lost by leaving out fsync(): no machine goes down here.
LIBRARY = harness.BIN / "tests/fault/kill_at.so"
ENV = {"LD_PRELOAD": str(LIBRARY), "WM_STILL_CLOCK": "1",
       "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}


def run(folder, arguments, files=(), stdin=None, out="out"):
    if stdin is None:
        process = histories.start(folder, arguments, files, env=ENV, out=out)
        _, errors = process.communicate(timeout=60)
    else:
        process = histories.start(folder, arguments, files, stdin=subprocess.PIPE, env=ENV, out=out)
        _, errors = process.communicate(stdin, timeout=60)
    if process.returncode not in (0, 1):
        raise ValueError(f"status {process.returncode}: {errors.decode(errors='replace')}")


def cuts(rng, size, count):
    return sorted(rng.randrange(size + 1) for _ in range(count)) + [size]


def check(folder, rng, name, form, mode):
    """None, or what is wrong."""
    arguments = histories.command(name)
    header, lines = histories.stream(rng, ROWS, form)
    end = rng.choice(["hold", "flush"])
    kept = ["-C", "st", "--checkpoint-every", rng.choice(["1rows", "10rows", "30s"])]
    each = name in histories.EACH_RUN
    one = folder / "one"
    many = folder / "many"
    one.mkdir()
    many.mkdir()
    count = rng.randint(1, 4)
    if mode == "files":
        parts = sorted(rng.randrange(len(lines) + 1) for _ in range(rng.randint(1, 2)))
        pieces = [header + b"".join(lines[a:b]) for a, b in zip([0, *parts], [*parts, len(lines)])]
        # A line of a record with a line end in it is no record; and several FILEs are another way to sort.
        if name.startswith("sort") or any(b"l\nf" in line or line.count(b'"') % 2 for line in lines):
            pieces = [header + b"".join(lines)]
        names = [f"in{i}" for i in range(len(pieces))]
        for file, piece in zip(names, pieces):
            (one / file).write_bytes(piece)
        run(one, [*arguments, "--eof", end], names)
        done = []
        for file, piece in zip(names, pieces):
            done.append(file)
            stops = cuts(rng, len(piece), rng.randint(0, 2))
            for stop in stops:
                (many / file).write_bytes(piece[:stop])
                is_last = file == names[-1] and stop is stops[-1]
                if each:
                    (many / "out").unlink(missing_ok=True)
                run(many, [*arguments, *kept, "--eof", end if is_last else "hold"], done)
    else:
        text = header + b"".join(lines)
        (one / "in").write_bytes(text)
        run(one, [*arguments, "--eof", end], ["in"])
        before = 0
        stops = cuts(rng, len(text), count)
        for i, stop in enumerate(stops):
            last = ["--eof", end if i + 1 == len(stops) else "hold"]
            if each:
                (many / "out").unlink(missing_ok=True)
            if mode == "growing":
                (many / "in").write_bytes(text[:stop])
                run(many, [*arguments, *kept, *last], ["in"])
            elif mode == "pipe":
                run(many, [*arguments, *kept, *last], stdin=text[before:stop])
            else:
                run(many, [*arguments, *kept, *last, "--resume", "replay"], stdin=text[:stop])
            before = stop
    want = histories.outputs(one)
    got = histories.outputs(many)
    if mode in ("pipe", "replay"):
        for side in (want, got):
            side["rejects"] = side["rejects"].replace(b'"standard input"', b'"in"')
    return histories.difference(want, got)


def main():
    wanted = set(sys.argv[1:])
    tap = harness.Tap()
    if not LIBRARY.exists():
        sys.exit(f"{LIBRARY} is not there: make tests")
    for name, form in histories.cases():
        if wanted and name not in wanted:
            continue
        faults = []
        for mode in MODES:
            for round_number in range(ROUNDS):
                seed = f"{SEED + round_number} {name} {form} {mode}"
                folder = pathlib.Path(tempfile.mkdtemp(prefix="wm-split-"))
                try:
                    fault = check(folder, random.Random(seed), name, form, mode)
                except (ValueError, subprocess.TimeoutExpired) as error:
                    fault = str(error)
                shutil.rmtree(folder)
                if fault:
                    faults.append(f"{mode}, WM_SEED={SEED + round_number}: {fault}")
        tap.ok(not faults, f"{name}, {form}: any split into runs gives the bytes of one", *faults[:4])
    return tap.done()


sys.exit(main())
