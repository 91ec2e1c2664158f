# SPDX-License-Identifier: Apache-2.0
"""Histories of runs on one checkpoint: commands, inputs that grow, and what is compared.

A command is run again and again while its input grows; what it has written in the end must not depend on where the runs
were cut, nor on how they ended. split.py cuts them at the ends of runs, crash.py also in their middle.
"""

import json
import os
import subprocess

import harness

WINDOW = ["wm-window", "-t", "ts", "-w", "20s"]
SIDES = ["--late", "late", "--rejects", "rejects"]

# name: (arguments, formats of the input). What stands as @ band is a stamped input.
COMMANDS = {
    "tumbling": ([*WINDOW, "--tumbling", "1m", "-g", "k", "-a", "count,sum:v,min:v,p50:v,distinct:k,first:v"], "csv json"),
    "sliding": ([*WINDOW, "--sliding", "3m,1m", "-g", "k,s", "-a", "count,avg:v"], "csv json"),
    "cumulating": ([*WINDOW, "--cumulating", "5m,1m", "-g", "k"], "csv"),
    "fill": ([*WINDOW, "--tumbling", "10s", "-g", "k", "--fill", "prev", "-a", "count,sum:v"], "csv"),
    "sessions": ([*WINDOW, "--session", "15s", "-g", "k", "-a", "count,max:v,last:s"], "csv json"),
    "session-gaps": ([*WINDOW, "--session", "column:gap,s", "-g", "k"], "json"),
    "panes": ([*WINDOW, "--tumbling", "1m", "-g", "k", "--allowed-lateness", "1m", "--early", "3rows"], "csv json"),
    "discarding": ([*WINDOW, "--sliding", "2m,1m", "--allowed-lateness", "2m", "--panes", "discarding", "--early",
                    "event:20s"], "csv"),
    "session-panes": ([*WINDOW, "--session", "20s", "-g", "k", "--allowed-lateness", "1m"], "csv"),
    "update": ([*WINDOW, "--tumbling", "1m", "-g", "k", "--mode", "update", "--trigger", "7rows"], "csv json"),
    "batches": ([*WINDOW, "--tumbling", "1m", "-g", "k", "--trigger", "event:30s"], "csv"),
    "column-batches": ([*WINDOW, "--tumbling", "1m", "--trigger", "column:s"], "csv"),
    "window-stamp": ([*WINDOW, "--tumbling", "1m", "-g", "k", "--stamp"], "csv json"),
    "guards": ([*WINDOW, "--tumbling", "1m", "--max-jump", "30s"], "csv"),
    "sources": ([*WINDOW, "--tumbling", "1m", "--source", "k", "--idle", "2m", "-g", "k"], "csv json"),
    "in-band": (["wm-window", "--tumbling", "1m", "-g", "k"], "band-csv band-json"),
    "in-band-batches": (["wm-window", "--tumbling", "1m", "-g", "k", "--trigger", "9rows", "--stamp"], "band-json"),
    "dedup": (["wm-dedup", "-t", "ts", "-w", "20s", "-k", "id", "--duplicates", "duplicates"], "csv json"),
    "dedup-time": (["wm-dedup", "-t", "ts", "-w", "20s", "-k", "k,s", "--with-time"], "csv"),
    "dedup-record": (["wm-dedup", "-t", "ts", "-w", "1m", "--pass-late"], "csv json"),
    "dedup-recast": (["wm-dedup", "-t", "ts", "-w", "20s", "-k", "id", "-o", "csv"], "json"),
    "sort": (["wm-sort", "-t", "ts", "-w", "20s"], "csv json"),
    "sort-in-band": (["wm-sort"], "band-csv band-json"),
    "sort-batches": (["wm-sort", "-t", "ts", "-w", "20s", "--trigger", "11rows"], "csv"),
    "stamp": (["wm-stamp", "-t", "ts", "-w", "20s", "--add", "time,watermark,late"], "csv json"),
    "stamp-batches": (["wm-stamp", "-t", "ts", "-w", "20s", "--trigger", "5rows", "--drop-late"], "csv json"),
    "lag": (["wm-lag", "-t", "ts", "-g", "k"], "csv json"),
    "lag-windows": (["wm-lag", "-t", "ts", "-w", "20s", "--every", "1m", "-g", "k"], "csv json"),
}

# Of two inputs: what comes out does not depend on where runs are cut, but its order does.
JOINS = {
    "join": (["wm-join", "-t", "ts", "-w", "20s", "-k", "k,id", "--between", "-30s,30s"], "csv json"),
    "join-full": (["wm-join", "-t", "ts", "-w", "20s", "-k", "k", "--between", "-5s,5s", "--type", "full"], "csv"),
    "join-asof": (["wm-join", "-t", "ts", "-w", "20s", "-k", "k", "--asof", "backward", "--tolerance", "1m", "--type",
                   "left"], "csv json"),
}

# Written as late rows go by, which these have not.
WITHOUT_LATE = ("dedup-record", "stamp", "lag")
# Written anew by each run.
EACH_RUN = ("lag",)


def command(name):
    if name in JOINS:
        return [*JOINS[name][0], "--late-left", "late", "--late-right", "duplicates", "-q"]
    arguments = COMMANDS[name][0]
    sides = SIDES if name not in WITHOUT_LATE else SIDES[2:]
    return [*arguments, *sides, "-q"]


def cases():
    """Pairs of a command's name and a format."""
    return [(name, form) for name, (_, forms) in COMMANDS.items() for form in forms.split()]


def joins():
    """The same of those with two inputs."""
    return [(name, form) for name, (_, forms) in JOINS.items() for form in forms.split()]


def _row(rng, number, count, start):
    ahead = rng.choice([0, 0, 0, rng.randrange(-15, 6), rng.randrange(-15, 6), rng.randrange(-120, 1)])
    if rng.random() < 0.01:
        ahead += rng.choice([600, -600, 90])
    second = start + number * 2 + ahead
    return {
        "ts": second,
        "k": rng.choice("abcd") if rng.random() < 0.97 else "",
        "v": rng.choice([rng.randrange(100), f"{rng.randrange(50)}.{rng.randrange(100):02d}", "", "x" if rng.random() < 0.1
                         else 7]),
        "s": rng.choice(["", "one", 'q"q', "l\nf" if rng.random() < 0.1 else "two", "é"]),
        "gap": rng.choice([5, 15, 40]),
        "id": rng.randrange(count // 2 + 1),
    }


def _csv_field(value):
    text = str(value)
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if any(byte in text for byte in '",\n') else text


def stream(rng, count, form):
    """The bytes of an input: its header ("" for NDJSON), and its records one by one."""
    start = 1_700_000_000 + rng.randrange(3600)
    rows = [_row(rng, number, count, start) for number in range(count)]
    names = ["ts", "k", "v", "s", "gap", "id"]
    end = rng.choice(["\n", "\n", "\r\n"])
    if form.endswith("json"):
        header = ""
        lines = []
        for row in rows:
            members = {name: row[name] for name in names if rng.random() < 0.98 or name == "ts"}
            if rng.random() < 0.02 and form == "json":
                members["more"] = {"deep": [1, "{"]}
            lines.append(json.dumps(members) + "\n")
    else:
        header = ",".join(names) + end
        lines = [",".join(_csv_field(row[name]) for name in names) + end for row in rows]
    if form.startswith("band"):
        text = (header + "".join(lines)).encode()
        result = harness.run(["wm-stamp", "-t", "ts", "-w", "20s", "--trigger", rng.choice(["each", "3rows"]), "-q"],
                             stdin=text)
        lines = result.stdout.decode().splitlines(keepends=True)
        # A field with a line end in it stands in two lines, which is of no account where the whole is cut anywhere.
        return (b"", [line.encode() for line in lines]) if not header else (lines[0].encode(),
                                                                           [line.encode() for line in lines[1:]])
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines)), rng.choice(["\n", "nonsense\n" if header else "{nonsense\n"]))
    return header.encode(), [line.encode() for line in lines]


def start(folder, arguments, files=(), stdin=subprocess.DEVNULL, env=None, out="out"):
    """The process of one run; its results are appended to out."""
    with open(folder / out, "ab") as results:
        return subprocess.Popen([str(harness.BIN / arguments[0]), *arguments[1:], *files], cwd=folder, stdin=stdin,
                                stdout=results, stderr=subprocess.PIPE, env={**os.environ, **(env or {})})


def outputs(folder):
    """What stands in the outputs by now."""
    return {name: (folder / name).read_bytes() if (folder / name).exists() else b""
            for name in ("out", "late", "rejects", "duplicates")}


def difference(want, got):
    """None, or what is not the same."""
    for name, text in want.items():
        if got[name] == text:
            continue
        at = next((i for i, (a, b) in enumerate(zip(text, got[name])) if a != b), min(len(text), len(got[name])))
        return (f"{name}: {len(got[name])} bytes, wanted {len(text)}; from byte {at}:\n"
                f"  want {text[at:at + 120]!r}\n  got  {got[name][at:at + 120]!r}")
    return None
