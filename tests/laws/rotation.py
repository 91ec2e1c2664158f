#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A law: of logs that are rotated in any way between runs on one checkpoint, each row is read once.

A history is a log and its rotated parts, and random things that happen to them: rows are added, to the log and to the part
that a program still writes to; lines are torn; the log is renamed or copied and truncated, also while it is empty or holds
a header alone; the new log is absent, empty, or has its header; the oldest part goes away. Between them wm-stamp reads all
parts there are. A row that went away unread must have been said; all others are in the output once. WM_SEED starts elsewhere.
"""

import os
import pathlib
import random
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness
import rotations

SEED = int(os.environ.get("WM_SEED", "1"))
HISTORIES = 100
STEPS = 14


def history(seed, form, folder):
    """None, or what is wrong; and how many runs there were."""
    log = rotations.Log(folder, random.Random(f"{SEED} {seed} {form}"), form)
    try:
        for _ in range(STEPS):
            log.step()
        fault = log.end()
    except ValueError as error:
        fault = str(error)
    return fault and fault + "\n  " + "\n  ".join(log.told), sum(t.startswith("run") for t in log.told), log.losses


def main():
    tap = harness.Tap()
    if not rotations.LIBRARY.exists():
        sys.exit(f"{rotations.LIBRARY} is not there: make tests")
    for form in ("csv", "json"):
        runs = losses = 0
        faults = []
        for seed in range(HISTORIES):
            with tempfile.TemporaryDirectory(prefix="wm-rotation-") as folder:
                fault, some, lost = history(seed, form, pathlib.Path(folder))
            runs += some
            losses += lost
            if fault:
                faults.append(f"history {seed}: {fault}")
        tap.ok(not faults, f"{form}: each row of a log that is rotated is read once", *faults[:3], f"{len(faults)} faults")
        tap.ok(losses > 3, f"{form}: and one that went away unread is said")
        tap.note(f"{form}: {runs} runs, {losses} losses")
    return tap.done()


sys.exit(main())
