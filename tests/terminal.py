#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bar on a real terminal: where it is drawn, how wide, and that nothing is left of it.

The tool runs on a pseudo-terminal. So that work on a file of a few megabytes takes longer than two seconds on any machine
it is stopped and continued (SIGSTOP, SIGCONT) while it reads: its clock goes on.
"""

import contextlib
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata

sys.dont_write_bytecode = True
import harness

BAR = re.compile(r" *\d+%( \[[#-]+\]|( \[[\u2588\u2591]+\]))?( \d+ rows)?.*")
# Blocks of a thousand rows that go back in time; a delay that covers them leaves nothing late.
BLOCK = b"".join(b"%d,k%d\n" % (1_700_000_000 + i, i % 7) for i in range(1000))
BLOCKS = 6000
JOB = ["-t", "ts", "--time-format", "s", "-w", "1h", "--tumbling", "10s", "-g", "key", "-a", "count,avg:ts,max:ts"]
FULL_SECONDS = 40


class Screen:
    """As much of a terminal as a line needs: CR, LF, the wiping of a line, and where a line would wrap."""

    def __init__(self, columns):
        self.columns = columns
        self.lines = [""]
        self.at = 0
        self.shown = set()  # every state of the last line
        self.widest = 0
        self.unknown = ""

    def write(self, text):
        for piece in re.findall(r"\x1b\[K|\x1b.?|[^\x1b]", text, re.DOTALL):
            line = self.lines[-1]
            if piece == "\r":
                self.shown.add(line)
                self.at = 0
            elif piece == "\n":
                self.lines.append("")
                self.at = 0
            elif piece == "\x1b[K":
                self.lines[-1] = line[:self.at]
            elif piece.isprintable():
                self.lines[-1] = line[:self.at].ljust(self.at) + piece + line[self.at + 1:]
                self.at += 1
                self.widest = max(self.widest, self.at)
            else:
                self.unknown += piece
        self.shown.add(self.lines[-1])


class Job:
    """wm-window with standard error on a terminal; standard output in a file, or there too."""

    def __init__(self, folder, args, stdin, columns=80, is_stdout_terminal=False, env=None):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        settings = termios.tcgetattr(slave)
        settings[1] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LC_")}
        environment |= {"TERM": "xterm", "LANG": "C", **(env or {})}
        self.out = folder / "out.csv"
        with open(self.out, "wb") as out:
            self.process = subprocess.Popen([harness.BIN / "wm-window", *JOB, *args], stdin=stdin, stderr=slave,
                                            stdout=slave if is_stdout_terminal else out, env=environment, cwd=folder)
        os.close(slave)
        self.master = master
        self.screen = Screen(columns)
        self.raw = b""
        self.writes = []  # (time, bytes)

    def read(self, seconds):
        """What comes within that time; false at the end."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                return True
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other side was closed
                return False
            self.writes.append((time.monotonic(), data))
            self.raw += data
        return True

    def has_begun(self):
        """Whether it has read some of its input, and not all: it has not ended."""
        for fd in pathlib.Path(f"/proc/{self.process.pid}/io").read_text().splitlines():
            if fd.startswith("rchar:"):
                return int(fd.split()[1]) > len(BLOCK) * 200
        return False

    def pause(self, seconds):
        os.kill(self.process.pid, signal.SIGSTOP)
        self.read(seconds)
        os.kill(self.process.pid, signal.SIGCONT)

    def finish(self):
        until = time.monotonic() + FULL_SECONDS
        while self.read(0.2) and time.monotonic() < until:
            pass
        status = self.process.wait(FULL_SECONDS)
        os.close(self.master)
        self.screen.write(self.raw.decode("utf-8", errors="replace"))
        return status

    def bars(self):
        return [line for line in self.screen.shown if line and BAR.fullmatch(line)]


def run(folder, args=(), stdin=subprocess.DEVNULL, pauses=(2.2,), signals=(), **options):
    """Run a job with pauses while it reads."""
    job = Job(folder, args, stdin, **options)
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        until = time.monotonic() + FULL_SECONDS
        while not job.has_begun() and time.monotonic() < until and job.process.poll() is None:
            job.read(0.002)
        for seconds in pauses:
            job.pause(seconds)
            job.read(0.02)
        for number in signals:
            os.kill(job.process.pid, number)
    job.status = job.finish()
    return job


def notes(job):
    return f"status {job.status}", f"standard error: {job.raw[-2000:]!r}"


def main():
    tap = harness.Tap()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with open(folder / "in.csv", "wb") as file:
            file.write(b"ts,key\n")
            for _ in range(BLOCKS):
                file.write(BLOCK)
        whole = run(folder, ["in.csv"], pauses=())
        want = whole.out.read_bytes()
        tap.ok(whole.status == 0 and whole.raw == b"" or harness.BIN.name != "release",
               "work that is done within two seconds has no bar", *notes(whole))

        for columns in (80, 200):
            job = run(folder, ["in.csv"], pauses=(2.2, 0.2, 0.2), columns=columns)
            bars = job.bars()
            tap.ok(job.status == 0 and bars and all("rows" in bar and "left" in bar for bar in bars),
                   f"{columns} columns: there is a bar after two seconds", *notes(job))
            tap.ok(job.screen.widest < columns and not job.screen.unknown,
                   f"{columns} columns: it stays on its line, and sends nothing else", job.screen.widest, *notes(job))
            tap.ok(job.screen.lines == [""], f"{columns} columns: nothing is left of it", *notes(job))
            tap.ok(job.out.read_bytes() == want, f"{columns} columns: results are as without it")
            if columns == 200:
                tap.ok(all(word in max(bars, key=len, default="") for word in ("% [", "/s", "0 late", "watermark 20")),
                       "200 columns have room for all of it", *bars)
        job = run(folder, ["in.csv"], columns=20)
        tap.ok(job.screen.widest < 20 and any(re.fullmatch(r" *\d+%.*left", bar) for bar in job.bars()),
               "20 columns: what is done and what is left", *notes(job))

        with open(folder / "in.csv", "rb") as file:
            job = run(folder, stdin=file)
        tap.ok(job.bars(), "a file as standard input", *notes(job))
        cat = subprocess.Popen(["cat", folder / "in.csv"], stdout=subprocess.PIPE)
        job = run(folder, stdin=cat.stdout)
        cat.stdout.close()
        cat.wait()
        tap.ok(job.raw == b"", "no bar: a pipe as input", *notes(job))
        job = run(folder, ["in.csv"], is_stdout_terminal=True)
        tap.ok(b"%" not in job.raw and b"\x1b" not in job.raw, "no bar: results go to the terminal", *notes(job))
        job = run(folder, ["--progress", "none", "in.csv"])
        tap.ok(job.raw == b"", "no bar: --progress none", *notes(job))
        job = run(folder, ["in.csv"], env={"TERM": "dumb"})
        tap.ok(job.raw == b"", "no bar: a terminal that cannot wipe", *notes(job))
        job = run(folder, ["--progress", "bar", "in.csv"], pauses=())
        tap.ok(job.bars() and job.screen.lines == [""], "--progress bar: at once", *notes(job))

        job = run(folder, ["in.csv"], env={"LANG": "C.UTF-8", "NO_COLOR": "1"}, columns=120)
        tap.ok(any("\u2591" in bar for bar in job.bars()), "blocks in a UTF-8 locale", *notes(job))
        tap.ok(re.sub(rb"\x1b\[K", b"", job.raw).find(b"\x1b") == -1, "no colours", *notes(job))
        job = run(folder, ["in.csv"], pauses=(2.2,) + (0.03,) * 30)
        times = [at for at, data in job.writes if b"%" in data]
        tap.ok(len(times) <= (times[-1] - times[0]) * 10 + 2 if times else False,
               f"drawn {len(times)} times: at most ten times a second", *notes(job))

        # A message on the way, and the summary: whole lines, with nothing of the bar in them.
        with open(folder / "in.csv", "ab") as file:
            file.write(b"x,\x1b[31m\n1,k\n")
        job = run(folder, ["in.csv"])
        tap.ok(job.bars() and len(job.screen.lines) >= 4 and job.screen.lines[-1] == ""
               and all(line.startswith("wm-window: ") for line in job.screen.lines[:-1]),
               "messages stand on lines of their own", *job.screen.lines, *notes(job))
        tap.ok(job.screen.unknown == "", "and no escape from the data comes through", *notes(job))
        job = run(folder, ["in.csv"], signals=(signal.SIGTERM,))
        tap.ok(job.status == -signal.SIGTERM and job.screen.lines[-1] == "" and not any(
            BAR.fullmatch(line) for line in job.screen.lines if line), "SIGTERM: nothing is left of it", *notes(job))
        tables(tap, folder)
    return tap.done()


def places(text):
    """How many places a text takes: wide characters two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def tables(tap, folder):
    """-o table on a terminal: aligned, no wider than it, and nothing of the data steers it."""
    keys = ["plain", "日本語のキー", "e\u0301te\u0301", "\x1b[31mred\x1b[0m", "\x07", "long " * 30]
    rows = "".join(f"{number},{key}\n" for number, key in enumerate(keys))
    (folder / "keys.csv").write_text("ts,key\n" + rows, encoding="utf-8")
    for columns in (40, 80, 200):
        job = run(folder, ["-o", "table", "keys.csv"], pauses=(), columns=columns,
                  is_stdout_terminal=True, env={"LC_ALL": "C.UTF-8"})
        lines = job.raw.decode().replace("\r", "").splitlines()
        tap.ok(job.status == 0 and len(lines) == 8, f"{columns} columns: a table of six rows", *notes(job))
        tap.ok(all(places(line) <= columns for line in lines), f"{columns} columns: no line is wider", *lines)
        tap.ok(b"\x1b" not in job.raw and b"\x07" not in job.raw, f"{columns} columns: no escape comes through")
        # The count is right-aligned, so all rows end in one column.
        tap.ok(len({places(line) for line in lines if line[-1:].isdigit()}) == 1,
               f"{columns} columns: wide and combining characters stay in line", *lines)


if __name__ == "__main__":
    sys.exit(main())
