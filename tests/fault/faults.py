#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A system call or a request for memory fails at any moment of a run with -C: the run ends well, and so does the next.

    tests/fault/faults.py [TOOL...]

Each tool runs twice on one checkpoint, on an input that has grown meanwhile. One of the two runs is disturbed: its n-th call
of a kind fails, for every n (libraries fail_at and fail_memory). Then it must end with status 3 and one line that says what
failed, or as if nothing had happened; its checkpoint loads; and the same command without a fault ends in the bytes of
the undisturbed run. EINTR, short reads and short writes change nothing at all. WM_STEP=1 takes every request for memory,
not one in 13.
"""

import errno
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

STEP = int(os.environ.get("WM_STEP", "13"))
FAULTS_SHOWN = 5
BUILT = harness.BIN / "tests/fault"
# The first one also where memory is to fail: under it a sync takes no time.
CALLS = str(BUILT / "fail_at.so")
MEMORY = f"{CALLS}:{BUILT / 'fail_memory.so'}"
SIDES = ["--late", "late", "--rejects", "rejects"]
COMMON = ["-C", "st", "--checkpoint-every", "4rows", "-q"]
TOOLS = {
    "wm-window": (["-t", "ts", "-w", "5s", "--tumbling", "10s", "-g", "k", "-a", "count,sum:v,p50:v,distinct:k,first:k",
                   "--metrics", "m.prom", *SIDES], "csv"),
    "wm-dedup": (["-t", "ts", "-w", "5s", "-k", "k,v", "--duplicates", "duplicates", *SIDES], "json"),
    "wm-sort": (["-t", "ts", "-w", "5s", *SIDES], "csv"),
    "wm-join": (["-t", "ts", "-w", "5s", "-k", "k", "--between", "-5s,5s", "--type", "full", "--late-left", "late",
                 "--late-right", "duplicates", "--rejects", "rejects"], "csv"),
    "wm-stamp": (["-t", "ts", "-w", "5s", "--rejects", "rejects"], "json"),
    "wm-lag": (["-t", "ts", "-g", "k", "--rejects", "rejects"], "csv"),
}
OUTPUTS = ("out", "late", "rejects", "duplicates")
KEPT = ("st", "st.prev")
# The state is of more than one piece, and a text longer than one.
LONG = "long" * 20000
ROWS = [(1, "a", 5), (9, "b", 2), (3, LONG, 7), (12, "a", ""), ("x", "b", 1), (21, "b", 3), (2, "a", 4), (18, "b", 2), (33, "c", 8),
        (31, "a", 1), (30, "a", 6), (47, "b", 2), (5, "c", 9), (47, "b", 2)]

# What fails, and how. With errno 0 a read or a write is short.
FAILING = [("open", errno.EMFILE, ""), ("read", errno.EIO, ""), ("write", errno.ENOSPC, ""), ("write", errno.ENOSPC, "on"),
           ("write", errno.ENOSPC, "half"), ("sync", errno.EIO, ""), ("truncate", errno.EIO, ""), ("link", errno.EPERM, ""),
           ("rename", errno.EIO, ""), ("unlink", errno.EACCES, ""), ("seek", errno.EIO, ""),
           ("stat", errno.EIO, ""), ("close", errno.EIO, "")]
PASSING = [("open", errno.EINTR, ""), ("read", errno.EINTR, ""), ("write", errno.EINTR, ""), ("sync", errno.EINTR, ""),
           ("truncate", errno.EINTR, ""), ("read", 0, ""), ("write", 0, ""), ("read", 0, "on"), ("write", 0, "on")]


def tries_memory():
    """A sanitizer has an allocator of its own, which is not asked through the library."""
    return b"libasan" not in (harness.BIN / "wm-window").read_bytes()


def text_of(form, rows):
    if form == "csv":
        return ("ts,k,v\n" + "".join(f"{t},{k},{v}\n" for t, k, v in rows)).encode()
    return "".join(f'{{"ts":"{t}","k":"{k}","v":"{v}"}}\n' for t, k, v in rows).encode()


def start(tool, folder, library, env):
    arguments, _ = TOOLS[tool]
    files = ["in", "in2"] if tool == "wm-join" else ["in"]
    environment = {**os.environ, "LD_PRELOAD": library, **env,
                   "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
    with open(folder / "out", "ab") as out:
        done = subprocess.run([str(harness.BIN / tool), *arguments, *COMMON, *files], cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=out, stderr=subprocess.PIPE, timeout=harness.TIMEOUT_SECONDS, check=False,
                              env=environment)
    return done.returncode, done.stderr.decode(errors="replace")


def held(folder):
    """All that a run reads or leaves but its inputs."""
    return {name: (folder / name).read_bytes() for name in (*OUTPUTS, *KEPT) if (folder / name).exists()}


def put_back(folder, files):
    for name in os.listdir(folder):
        if name not in files and not name.startswith("in"):
            os.unlink(folder / name)
    for name, text in files.items():
        (folder / name).write_bytes(text)


def outputs(folder):
    return {name: (folder / name).read_bytes() if (folder / name).exists() else b"" for name in OUTPUTS}


class Scene:
    """One run of a tool that is to be disturbed: what it finds, what it leaves undisturbed."""

    def __init__(self, tool, folder, stop):
        self.tool = tool
        self.folder = folder
        form = TOOLS[tool][1]
        whole = text_of(form, ROWS)
        cut = text_of(form, ROWS[:7])
        put_back(folder, {})
        self.set_inputs(form, cut)
        if stop == "second":
            self.must_be_well(CALLS)
            self.set_inputs(form, whole)
        self.before = held(folder)
        put_back(folder, self.before)
        self.must_be_well(MEMORY if tries_memory() else CALLS, {"WM_COUNT": "count"})
        self.counts = {name: int(count) for name, count in
                       (line.split() for line in (folder / "count").read_text().splitlines())}
        self.want = outputs(folder)

    def set_inputs(self, form, text):
        for name, part in (("in", text), ("in2", text_of(form, [(t, k, f"{v}0") for t, k, v in ROWS[2:]]))):
            with open(self.folder / name, "ab") as file:
                file.write(part[file.tell():])

    def must_be_well(self, library, env=None):
        status, errors = start(self.tool, self.folder, library, env or {})
        if status not in (0, 1) or errors:
            raise ValueError(f"{self.tool}: status {status} without a fault: {errors}")

    def difference(self):
        got = outputs(self.folder)
        written = self.want["out"][len(self.before.get("out", b"")):]
        # Written anew by each run; and one that failed behind its last commit was whole.
        if self.tool == "wm-lag" and got["out"].startswith(self.want["out"]) and got["out"].endswith(written.partition(b"\n")[2]):
            got["out"] = self.want["out"]
        return next((f"{name}:\n want {text!r}\n got  {got[name]!r}" for name, text in self.want.items() if text != got[name]),
                    None)

    def fault_of(self, library, fault, changes):
        """What is not as it should be when this fails, or None. changes: it may end the run."""
        put_back(self.folder, self.before)
        status, errors = start(self.tool, self.folder, library, {"WM_FAULT": fault})
        lines = errors.splitlines()
        if status in (0, 1) and not errors:
            if difference := self.difference():
                return f"{fault}: status {status}, {difference}"
            return None
        if not changes:
            return f"{fault}: status {status}: {errors}"
        if status != 3 or len(lines) != 1 or not re.match(r"wm(-\w+)?: .*\w", lines[0]):
            return f"{fault}: status {status}: {errors}"
        status, errors = start(self.tool, self.folder, library, {})
        if status not in (0, 1):
            return f"{fault}: then status {status}: {errors} (it had said: {lines[0]})"
        if difference := self.difference():
            return f"{fault}: then {difference} (it had said: {lines[0]})"
        return None


def disturb(tap, scene, name, tried):
    """Every call of every kind fails once."""
    runs = 0
    faults = []
    for library, kind, error, how, changes in tried:
        step = STEP if kind == "memory" else 1
        # All calls that are short from one on: from the first.
        last = 1 if how == "on" and error == 0 else scene.counts[kind]
        for number in range(1, last + 1, step):
            fault = f"{kind}:{number}" + ("" if kind == "memory" else f":{error}:{how}".rstrip(":"))
            runs += 1
            if found := scene.fault_of(library, fault, changes):
                faults.append(found)
    tap.ok(runs > 0 and not faults, f"{scene.tool}: {name}", *faults[:FAULTS_SHOWN], f"{len(faults)} of {runs}")
    return runs


def main():
    tap = harness.Tap()
    begin = time.monotonic()
    wanted = sys.argv[1:] or list(TOOLS)
    for library in MEMORY.split(":"):
        if not pathlib.Path(library).exists():
            sys.exit(f"{library} is not there: make tests")
    runs = 0
    for tool in wanted:
        with tempfile.TemporaryDirectory(prefix="wm-fault-") as folder:
            for stop in ("first", "second"):
                scene = Scene(tool, pathlib.Path(folder), stop)
                runs += disturb(tap, scene, f"in its {stop} run a call fails",
                                [(CALLS, *each, True) for each in FAILING])
                runs += disturb(tap, scene, f"in its {stop} run a call is interrupted or short",
                                [(CALLS, *each, False) for each in PASSING])
                if tries_memory():
                    runs += disturb(tap, scene, f"in its {stop} run there is no memory", [(MEMORY, "memory", 0, "", True)])
                else:
                    tap.skip(f"{tool}: in its {stop} run there is no memory", "the allocator is that of the sanitizer")
    tap.note(f"faults: {runs} runs, {time.monotonic() - begin:.0f} s")
    return tap.done()


sys.exit(main())
