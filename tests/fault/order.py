#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The order in which a run with -C makes things durable, by a log of its system calls.

    tests/fault/order.py

No machine goes down in the tests, so a sync that is missing or comes too late harms nothing there. Here each call is held to
what a disk may do that keeps what was synced and nothing else:
  - an output is synced before the checkpoint that counts its bytes is renamed;
  - the temporary file is synced before FILE.prev is made of FILE, and before it is renamed;
  - no output is written or cut while the name of the last checkpoint may still be lost;
  - what is cut from an output is kept beside it, synced, under a name that is synced, before it is cut.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

LIBRARY = harness.BIN / "tests/fault/kill_at.so"
OUTPUTS = ("out", "late", "rejects", "duplicates")
COMMAND = ["wm-window", "-q", "-t", "ts", "-w", "1s", "--tumbling", "2s", "-C", "st", "--checkpoint-every", "3rows",
           "--out", "out", "--late", "late", "--rejects", "rejects", "in"]
ROWS = [f"{i % 7 + i // 2}.25" if i % 9 else "x" for i in range(60)]


def calls_of(log):
    """The calls in a WM_LOG, with the names of their files."""
    calls = [line.split(" ") for line in log.read_text().splitlines()] if log.exists() else []
    return [(call[0], *(pathlib.Path(path).name for path in call[1:])) for call in calls]


def start(folder, env):
    """The status of a run, and its calls."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    done = subprocess.run([str(harness.BIN / COMMAND[0]), *COMMAND[1:]], cwd=folder, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=harness.TIMEOUT_SECONDS, check=False,
                          env={**os.environ, "LD_PRELOAD": str(LIBRARY), "WM_LOG": str(log), "WM_STILL_CLOCK": "1", **env,
                               "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")})
    return done.returncode, calls_of(log)


def faults_of(calls, folder_name, is_whole):
    """What is out of order in the calls of a run; and how many commits and cuts there were."""
    faults = []
    dirty = set()  # files with bytes that were not synced
    named = set()  # names that may be lost
    kept = set()  # files beside an output, with what is cut from it
    commits = cuts = 0
    for number, call in enumerate(calls):
        def fault(what):
            faults.append(f"call {number}, {' '.join(call)}: {what}")
        if call[0] in ("write", "ftruncate") and call[1] in OUTPUTS and "st" in named:
            fault("the checkpoint's name is not synced")
        if call[0] == "write":
            if call[1].endswith(".uncommitted"):
                named.add(call[1])
                kept.add(call[1])
            dirty.add(call[1])
        elif call[0] == "ftruncate" and call[1] in OUTPUTS:
            cuts += 1
            beside = call[1] + ".uncommitted"
            if beside not in kept or beside in dirty or beside in named:
                fault("what is cut is not kept")
            dirty.add(call[1])
        elif call[0] == "fsync":
            if call[1] == folder_name:
                named.clear()
            dirty.discard(call[1])
        elif call[0] == "link" and "st.tmp" in dirty:
            fault("st.tmp is not synced")
        elif call[0] == "rename":
            if call[1] in dirty or (call[1] == "st.prev.tmp" and "st.tmp" in dirty):
                fault("it is renamed and not synced")
            if call[2] == "st" and dirty & set(OUTPUTS):
                fault(f"{', '.join(dirty & set(OUTPUTS))} is not synced")
            named.add(call[2])
            commits += call[2] == "st"
    if is_whole and (named or dirty & set(OUTPUTS)):
        faults.append(f"at the end {', '.join(named | dirty & set(OUTPUTS))} is not synced")
    return faults, commits, cuts


def main():
    tap = harness.Tap()
    if not LIBRARY.exists():
        sys.exit(f"{LIBRARY} is not there: make tests")
    with tempfile.TemporaryDirectory(prefix="wm-order-") as name:
        folder = pathlib.Path(name)
        (folder / "in").write_text("ts\n" + "\n".join(ROWS) + "\n")
        _, calls = start(folder, {})
        faults, commits, _ = faults_of(calls, folder.name, True)
        tap.ok(not faults, "a run from its beginning to its end", *faults[:5])
        tap.ok(commits > 10, "with commits in its middle")
        total = len(calls)
        cut = 0
        faults = []
        for at in range(1, total, 7):
            for path in folder.iterdir():
                if path.name != "in":
                    path.unlink()
            start(folder, {"WM_KILL_AT": str(at)})
            # Another program, or a write that no commit counts: there is something to cut.
            if (folder / "st").exists():
                with open(folder / "out", "a", encoding="utf-8") as file:
                    file.write("more\n")
            status, calls = start(folder, {})
            found, _, cuts = faults_of(calls, folder.name, True)
            cut += cuts
            faults += [f"killed at call {at}, then {each}" for each in found]
            if status not in (0, 1):
                faults.append(f"killed at call {at}, then status {status}")
        tap.ok(not faults, "runs that go on where one was killed", *faults[:5])
        tap.ok(cut > 10, "with outputs that are cut back")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
