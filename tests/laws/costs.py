#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of cost: twice as much of one thing costs at most 2.5 times the instructions.

Instructions are counted by valgrind, never timed, so that the answer is the same on every machine and under any load.
Each law makes an input of n and of 2n of its thing (members, columns, keys, stray quotes, ...) and runs one command on
both. What a command needs to begin at all is measured on an input of next to nothing and taken off, so that it does
not hide what grows.

Names on the command line run the laws whose names begin so.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

HIGHEST = 2.5
TIMED = "-t ts --time-format s"
LIMIT_SECONDS = 300  # for a run that would not end


def one_object(n):
    """One record of n members."""
    members = ",".join(f'"m{i}":{i}' for i in range(n))
    return f'{{"ts":1700000000,{members}}}\n'


def many_orders(n):
    """The same n members in rows whose orders differ."""
    names = [f"m{i}" for i in range(n)]
    rows = [names, names[::-1], names[::2] + names[1::2]]
    return "".join('{"ts":1700000000,' + ",".join(f'"{name}":1' for name in row) + "}\n" for row in rows)


def repeated_member(n):
    """One member n times, with others below it."""
    return '{"ts":1700000000,' + ",".join('"a":{"b":1,"c":2}' for _ in range(n)) + "}\n"


def nested(n):
    """An array of n objects in a record."""
    return '{"ts":1700000000,"a":[' + ",".join('{"b":[1,2]}' for _ in range(n)) + "]}\n"


def csv_columns(n):
    """A header of n columns and two rows."""
    names = ",".join(f"m{i}" for i in range(n))
    row = ",".join("1" for _ in range(n))
    return f"ts,{names}\n1700000000,{row}\n1700000001,{row}\n"


def csv_reversed(n):
    """The same columns in the opposite order."""
    names = ",".join(f"m{i}" for i in reversed(range(n)))
    row = ",".join("1" for _ in range(n))
    return f"{names},ts\n{row},1700000002\n"


def keyed(n):
    """n rows, each with a key of its own."""
    return "ts,k,v\n" + "".join(f"{1700000000 + i % 100},k{i * 7919 % n},{i}\n" for i in range(n))


def same_rows(_n):
    """The same for every n: what grows is the command."""
    return "ts,k,v\n" + "".join(f"{1700000000 + i % 3600},k{i % 3},{i}\n" for i in range(5000))


def wide_rows(n):
    """A thousand rows of n columns."""
    head = ",".join(f"c{i}" for i in range(n))
    row = ",".join(str(i % 7) for i in range(n))
    return f"ts,{head}\n" + "".join(f"{1700000000 + i},{row}\n" for i in range(1000))


def bridges(n, step):
    """n sessions of one key that the rows behind them bridge, to the right or to the left."""
    apart = [1700000000 + 20 * i for i in range(n)]
    between = [at + 10 for at in apart[:-1]]
    rows = apart + between[::step]
    return "ts,k,v\n" + "".join(f"{at},a,{i}\n" for i, at in enumerate(rows))


def stray_pairs(n):
    """Each record of two lines is ragged: it is cut back, n times."""
    return "ts,k\n" + "".join(f'{1700000000 + i},"a\n{1700000000 + i},b",c\n' for i in range(n))


def stray_open(n):
    """A stray quote in each line, which the one in the next line closes."""
    return "ts,k\n" + "".join(f'{1700000000 + i},"a\n' for i in range(n))


def stray_limit(n):
    """Quotes that are never closed, one a KiB: each record is too long for its limit, far behind its begin."""
    return "ts,k\n" + "".join(f'{1700000000 + i},"a\n' + f"{1700000000 + i},b\n" * 75 for i in range(n))


def doubled(n):
    """A quote that never ends, behind it lines of doubled quotes."""
    return 'ts,k\n1700000000,"a\n' + '1700000000,x""y\n' * n


def names(n, text="m{}"):
    return ",".join(text.format(i) for i in range(n))


# Name, n, the command with {n}-dependent parts made by functions, and the makers of its inputs.
def law(name, n, command, *makers):
    return name, n, command, makers


# Of aggregates and conditions, which are few, the rows are many: reading a command may take the square of its length.
LAWS = [
    law("members: passed on", 10000, lambda n: f"wm-stamp {TIMED} -w 0s F0", one_object),
    law("members: as columns of CSV", 10000, lambda n: f"wm-stamp {TIMED} -w 0s -o csv F0", one_object),
    law("members: of rows that are sorted, as CSV", 10000, lambda n: f"wm-sort {TIMED} -w 0s -o csv F0", one_object),
    law("members: in three orders, as CSV", 5000, lambda n: f"wm-stamp {TIMED} -w 0s -o csv F0", many_orders),
    law("members: of a whole record as key", 10000, lambda n: f"wm-dedup {TIMED} -w 0s --remember 10m F0", one_object),
    law("members: of rows that are joined", 4000,
        lambda n: f"wm-join {TIMED} -w 0s -k ts --tumbling 10s -o csv F0 F1", one_object, one_object),
    law("members: one of many is used", 20000, lambda n: f"wm-window {TIMED} -w 0s --tumbling 10s -a sum:m7 F0",
        one_object),
    law("members: one that is repeated", 20000, lambda n: f"wm-window {TIMED} -w 0s --tumbling 10s -a sum:a.b F0",
        repeated_member),
    law("members: elements of an array", 20000, lambda n: f"wm-window {TIMED} -w 0s --tumbling 10s -a sum:a.0.b F0",
        nested),
    law("columns: of a header", 10000, lambda n: f"wm-stamp {TIMED} -w 0s F0", csv_columns),
    law("columns: as members of NDJSON", 10000, lambda n: f"wm-stamp {TIMED} -w 0s -o ndjson F0", csv_columns),
    law("columns: in another order", 10000, lambda n: f"wm-sort {TIMED} -w 0s F0 F1", csv_columns, csv_reversed),
    law("columns: joined", 5000, lambda n: f"wm-join {TIMED} -w 0s -k ts --tumbling 10s F0 F1", csv_columns,
        csv_columns),
    law("columns: that are named", 10000, lambda n: f"wm-stamp {TIMED} -w 0s --columns @names F0", csv_columns),
    law("keys: groups", 20000, lambda n: f"wm-window {TIMED} -w 0s --tumbling 1h -g k -a count,sum:v F0", keyed),
    law("keys: remembered", 20000, lambda n: f"wm-dedup {TIMED} -w 0s -k k --remember 1h F0", keyed),
    law("keys: joined", 10000, lambda n: f"wm-join {TIMED} -w 200s -k k --between=-1s,1s F0 F1", keyed, keyed),
    law("keys: columns of one", 100, lambda n: f"wm-window {TIMED} -w 0s --tumbling 1h -g {names(n, 'c{}')} F0",
        wide_rows),
    law("aggregates", 100, lambda n: f"wm-window {TIMED} -w 0s --tumbling 1h -a {names(n, 'sum:c{}')} F0", wide_rows),
    law("conditions", 100,
        lambda n: f"wm-window {TIMED} -w 0s --tumbling 1h -a {names(n, 'sum:v:if:k:eq:k{}')} F0", same_rows),
    law("sources", 10000, lambda n: f"wm-window {TIMED} -w 1h --source k --tumbling 1h -a count F0", keyed),
    law("bridges: of sessions", 5000,
        lambda n: f"wm-window {TIMED} -w 10d --session 15s -g k -a count,distinct:v F0", lambda n: bridges(n, 1)),
    law("bridges: to the left", 5000,
        lambda n: f"wm-window {TIMED} -w 10d --session 15s -g k -a count,distinct:v F0", lambda n: bridges(n, -1)),
    law("stray quotes: ragged pairs of lines", 5000, lambda n: f"wm-stamp {TIMED} -w 0s F0", stray_pairs),
    law("stray quotes: one a line", 10000, lambda n: f"wm-stamp {TIMED} -w 0s F0", stray_open),
    law("stray quotes: up to the record limit", 200, lambda n: f"wm-stamp {TIMED} -w 0s --record-limit 1000K F0",
        stray_limit),
    law("stray quotes: up to a low limit", 200, lambda n: f"wm-stamp {TIMED} -w 0s --record-limit 1K F0", stray_limit),
    law("stray quotes: doubled ones behind it", 20000, lambda n: f"wm-stamp {TIMED} -w 0s F0", doubled),
]


def instructions(command, makers, n):
    """What a run on inputs of n takes, and None, or None and what is wrong."""
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top)
        for i, maker in enumerate(makers):
            (folder / f"F{i}").write_text(maker(n), encoding="utf-8")
        (folder / "names").write_text("ts," + names(n) + "\n", encoding="utf-8")
        tool, *rest = command(n).split()
        args = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", str(harness.BIN / tool), *rest]
        try:
            done = subprocess.run(args, cwd=folder, capture_output=True, timeout=LIMIT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return None, f"{command(n)[:200]} did not end within {LIMIT_SECONDS} s"
    text = done.stderr.decode(errors="replace")
    found = re.search(r"refs: +([0-9,]+)", text)
    if done.returncode not in (0, 1) or found is None:
        return None, f"{command(n)[:200]} ended with {done.returncode}: {text[:1000]}"
    return int(found.group(1).replace(",", "")), None


def main():
    tap = harness.Tap()
    wanted = sys.argv[1:]
    for name, n, command, makers in LAWS:
        if wanted and not any(name.startswith(word) for word in wanted):
            continue
        title = f"cost: {name}, {n} and twice as many"
        if shutil.which("valgrind") is None or harness.BIN.name == "asan":
            tap.skip(title, "valgrind is not there, or cannot run a build with sanitizers")
            continue
        counts = []
        for size in (max(n // 100, 1), n, 2 * n):
            count, wrong = instructions(command, makers, size)
            if count is None:
                break
            counts.append(count)
        if len(counts) < 3:
            tap.ok(False, title, wrong)
            continue
        base, once, twice = counts
        ratio = (twice - base) / max(once - base, 1)
        if os.environ.get("WM_VERBOSE"):
            tap.note(f"{base} {once} {twice}: {ratio:.2f}")
        tap.ok(ratio <= HIGHEST, title, f"{once - base} instructions, then {twice - base}: {ratio:.2f} times",
               command(1)[:200])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
