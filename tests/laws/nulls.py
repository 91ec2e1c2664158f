#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of --null: what is computed is what the same rows give whose missing fields are empty, or null in NDJSON.

windows    wm-window and wm-lag: the same bytes and the same ledger, with every kind of key, aggregate, source and gap
passing    wm-stamp, wm-sort and wm-dedup let the same rows pass, with the same stamps, each as it came; as NDJSON made of
           CSV they are the same bytes
joins      wm-join makes the pairs that it makes of keys which are all different where one is missing; fields as they came
merges     wm-merge, by rules: the same table, but for the words for nothing that stand in it
partial    rows of two files by states: the table of one run
runs       an input that grows between runs on one checkpoint: the bytes of one run

Which fields are missing is decided where they are made, in here. Names of laws on the command line run those alone;
WM_SEED starts the seeds elsewhere.
"""

import csv
import io
import json
import os
import pathlib
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = int(os.environ.get("WM_SEED", "1"))
STREAMS = 150
WORDS = ["NA", "N", "\\N", "-", "--", "NULL", "n/a", "\\", "a,b", "-999", "7", " ", "é", "x" * 70, "NA ", "\\,"]
COLUMNS = ("ts", "k", "j", "v", "w", "g", "s", "id")
AGGREGATES = ("count", "count:v", "sum:v", "min:w", "max:w", "first:w", "last:w", "distinct:w", "avg:v", "median:v",
              "n=count:w:ne:a", "y=sum:v:if:w:ne:-", "min:v", "stddev:v")
FOLDER = pathlib.Path()  # of the running stream's files; set by use()


class Nulls:
    """A list, and what it takes as missing."""

    def __init__(self, rng, words=None, may_have_quotes=True, is_tsv=False):
        self.is_tsv = is_tsv
        # Where there are no quotes at all records are read on another way.
        self.quote_rate = rng.choice((0, 0.15))
        pool = words or [word for word in WORDS if self.quote_rate or "," not in word]
        self.pool = pool
        # A text that ends in a backslash can stand at the end of a list alone: before a comma it would escape that.
        self.texts = [text for text in rng.sample(pool, rng.randint(1, min(5, len(pool)))) if not text.endswith("\\")]
        if rng.random() < 0.2:
            self.texts.append("")
        if "\\" in pool and rng.random() < 0.3:
            self.texts.append("\\")
        self.texts = self.texts or [""]  # an empty list has the empty text
        self.takes_quoted = may_have_quotes and rng.random() < 0.4
        self.args = ["--null", ",".join(text.replace(",", "\\,") for text in self.texts)]
        self.args += ["--null-quoted"] * self.takes_quoted

    def take_field(self, text, is_quoted):
        return text == "" or (text in self.texts and (self.takes_quoted or not is_quoted))

    def take_json(self, value):
        return value is None or (isinstance(value, (str, Number)) and str(value) in self.texts)


def escaped(text):
    """A field of TSV: a backslash that would be read as an escape is one."""
    raw = ""
    for at, byte in enumerate(text):
        raw += "\\\\" if byte == "\\" and text[at + 1:at + 2] in ("", "t", "n", "r", "\\") else byte
    return raw


class Number(str):
    """A number of JSON as it is written."""


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


class Row:
    """What a row says, as it came (line) and with its missing fields emptied (bare)."""

    def __init__(self, cells, rng, is_json, nulls):
        self.ident = cells["id"]
        self.texts = {}
        self.missing = {}
        come, bare = [], []
        for name, text in cells.items():
            if is_json:
                self._add_member(name, text, rng, nulls, come, bare)
            else:
                self._add_field(name, text, rng, nulls, come, bare)
        delimiter = "\t" if nulls.is_tsv else ","
        self.line = "{" + ", ".join(come) + "}" if is_json else delimiter.join(come)
        self.bare = "{" + ", ".join(bare) + "}" if is_json else delimiter.join(bare)

    def _add_field(self, name, text, rng, nulls, come, bare):
        if nulls.is_tsv:
            # The bytes as they stand are compared.
            self.texts[name] = text
            self.missing[name] = nulls.take_field(escaped(text), False)
            come.append(escaped(text))
            bare.append("" if self.missing[name] else come[-1])
            return
        is_quoted = any(c in text for c in ',"\n') or rng.random() < nulls.quote_rate
        self.texts[name] = text
        self.missing[name] = nulls.take_field(text, is_quoted)
        come.append(quoted(text) if is_quoted else text)
        bare.append("" if self.missing[name] else come[-1])

    def _add_member(self, name, text, rng, nulls, come, bare):
        value = Number(text) if is_number(text) and rng.random() < 0.7 else text
        if text == "" and name != "id":
            value = rng.choice([None, "", "absent"] if name != "s" else [None])
        self.texts[name] = text
        self.missing[name] = value == "absent" or nulls.take_json(value)
        written = value if isinstance(value, Number) else json.dumps(value, ensure_ascii=rng.random() < 0.5)
        if value != "absent":
            come.append(f'"{name}": {written}')
            bare.append(f'"{name}": {"null" if self.missing[name] else written}')


def is_number(text):
    return text.lstrip("-").isdigit() and text not in ("-", "--")


class Stream:
    """Rows for a law, and the files that say them."""

    def __init__(self, rng, nulls, is_json=False):
        self.is_json = is_json
        self.is_tsv = nulls.is_tsv
        self.rows = []
        pool = nulls.pool
        keys = ["a", "b", "", *rng.sample(pool, min(3, len(pool)))]
        now = 1000
        for ident in range(rng.randrange(1, 60)):
            now += rng.choice((0, 1, 1, 3, 10))
            # The first row has every column, which no run may lack.
            word = (lambda rate: rng.choice(pool) if ident > 0 and rng.random() < rate else None)
            self.rows.append(Row({
                "ts": word(0.06) or str(now - rng.choice((0, 0, 0, 2, 9))),
                "k": rng.choice(keys) if ident > 0 else "a",
                "j": rng.choice(keys) if ident > 0 else "a",
                "v": word(0.3) or str(rng.randrange(20)),
                "w": word(0.4) or rng.choice(("a", "b", "1", "1.0", "20")),
                "g": word(0.2) or rng.choice(("3s", "9s", "1m")),
                "s": word(0.3) or rng.choice(("s1", "s2")),
                "id": str(10_000 + ident),
            }, rng, is_json, nulls))

    def text(self, is_bare, rows=None):
        lines = [] if self.is_json else [("\t" if self.is_tsv else ",").join(COLUMNS)]
        lines += [row.bare if is_bare else row.line for row in (self.rows if rows is None else rows)]
        return "".join(line + "\n" for line in lines)

    def write(self, name, is_bare, rows=None):
        (FOLDER / name).write_text(self.text(is_bare, rows), encoding="utf-8")
        return name


def run(args, sides=("rejects", "report")):
    """Standard output of a run that must end well and be silent, and what it counted."""
    for side in sides:
        (FOLDER / side).unlink(missing_ok=True)
        args = [*args, f"--{side}", side]
    result = harness.run(args, cwd=FOLDER)
    if result.returncode != 0 or result.stderr:
        raise ValueError(f"{' '.join(args)}: status {result.returncode}\n{result.stderr.decode()}")
    if "report" not in sides:
        return result.stdout.decode(), None
    report = harness.read_report(FOLDER / "report")[1]
    if fault := harness.ledger_fault(report):
        raise ValueError(f"{' '.join(args)}: {fault}")
    return result.stdout.decode(), {name: report[name] for name in ("rows_in", "rows_late", "rows_duplicate", "rejected")}


def differ(seed, args, got, want):
    """None, or where two texts part."""
    if got == want:
        return None
    got_lines, want_lines = str(got).splitlines(), str(want).splitlines()
    at = next((i for i, pair in enumerate(zip(got_lines, want_lines)) if pair[0] != pair[1]),
              min(len(got_lines), len(want_lines)))
    return (f"WM_SEED={seed} {' '.join(args)}: line {at + 1}\n  got  {got_lines[at:at + 1]}\n"
            f"  want {want_lines[at:at + 1]}")


def begin(seed):
    rng = random.Random(seed)
    is_json = rng.random() < 0.4
    is_tsv = not is_json and rng.random() < 0.3
    nulls = Nulls(rng, may_have_quotes=not is_json and not is_tsv, is_tsv=is_tsv)
    return rng, nulls, Stream(rng, nulls, is_json)


def common(rng):
    """Options that all streaming tools have."""
    args = ["-q", "-t", "ts", "--time-format", "s", "-w", rng.choice(("0s", "5s", "1m"))]
    if rng.random() < 0.3:
        args += ["--source", "s", "--policy", rng.choice(("min", "max"))]
    if rng.random() < 0.3:
        args += ["--trigger", rng.choice(("7rows", "event:20s", "column:s"))]
    return args


def windows(seed):
    rng, nulls, stream = begin(seed)
    tool = rng.choice(("wm-window", "wm-window", "wm-lag"))
    args = [tool, *common(rng), "-g", rng.choice(("k", "k,j", "j"))]
    if tool == "wm-window":
        args += rng.choice((["--tumbling", "10s"], ["--sliding", "20s,10s"], ["--session", "column:g"]))
        # Numbers that --null leaves are wanted by all of them, so that rows are rejected as well.
        args += ["-a", ",".join(rng.sample(AGGREGATES, rng.randint(1, 5)))]
        args += ["-o", rng.choice(("same", "csv", "tsv"))]
    got = run([*args, *nulls.args, stream.write("in", False)])
    want = run([*args, stream.write("bare", True)])
    return differ(seed, [*args, *nulls.args], got[0], want[0]) or differ(seed, args, got[1], want[1])


def as_came(stream, out, bare_out):
    """The other run's rows with each row as it came, and the stamps behind it."""
    by_ident = {row.ident: row for row in stream.rows}
    lines = []
    for number, line in enumerate(bare_out.splitlines()):
        words = "".join("," if byte in '" }\t' else byte for byte in line).split(",")
        row = next((by_ident[word] for word in words if word in by_ident), None)
        if (number == 0 and not stream.is_json) or row is None:  # the header, punctuation
            lines.append(line)
            continue
        cut = len(row.bare) - stream.is_json
        lines.append(row.line[:len(row.line) - stream.is_json] + line[cut:])
    return "".join(line + "\n" for line in lines)


def passing(seed):
    rng, nulls, stream = begin(seed)
    tool = rng.choice(("wm-stamp", "wm-sort", "wm-dedup", "wm-dedup"))
    args = [tool, *common(rng)]
    if tool == "wm-dedup":
        args += ["-k", rng.choice(("k", "k,j", "v")), *rng.choice(([], ["--remember", "20s"], ["--forever"]))]
        if "--remember" not in args and "--forever" not in args:
            args += ["--remember", "5s"]
    late = [] if tool == "wm-stamp" else ["--late", "late"]
    outs = []
    for name, extra in (("in", nulls.args), ("bare", [])):
        (FOLDER / "late").unlink(missing_ok=True)
        out, counts = run([*args, *extra, *late, stream.write(name, name == "bare")])
        late_out = (FOLDER / "late").read_text(encoding="utf-8") if late else ""
        outs.append((out, late_out, counts))
    (out, late_out, counts), (bare_out, bare_late, bare_counts) = outs
    fault = (differ(seed, [*args, *nulls.args], out, as_came(stream, out, bare_out))
             or differ(seed, [*args, *nulls.args], late_out, as_came(stream, late_out, bare_late))
             or differ(seed, args, counts, bare_counts))
    if fault or stream.is_json:
        return fault
    told = [run([*args, *extra, "-o", "ndjson", name])[0] for name, extra in (("in", nulls.args), ("bare", []))]
    return differ(seed, [*args, *nulls.args, "-o", "ndjson"], *told)


def joins(seed):
    rng, nulls, left = begin(seed)
    right = Stream(rng, nulls, left.is_json)
    keys = rng.choice(("k", "k,j"))
    for number, row in enumerate([*left.rows, *right.rows]):
        # Of keys that are missing none is like another.
        for key in keys.split(","):
            if row.missing[key]:
                name = f"none {number}"
                row.bare = unlike(row, key, name, left.is_json)
    args = ["wm-join", "-q", "-t", "ts", "--time-format", "s", "-w", "10s", "-k", keys, "--between=-8s,8s",
            "--type", rng.choice(("inner", "left", "right", "full", "semi", "anti"))]
    got = run([*args, *nulls.args, "-o", "csv", left.write("in", False), right.write("in2", False)])
    want = run([*args, "-o", "csv", left.write("bare", True), right.write("bare2", True)])
    if fault := differ(seed, args, got[1], want[1]):
        return fault
    rows = [list(csv.DictReader(io.StringIO(out[0]))) for out in (got, want)]
    pairs = [sorted((row.get("id", ""), row.get("right_id", "")) for row in each) for each in rows]
    if fault := differ(seed, [*args, *nulls.args], "\n".join(map(str, pairs[0])), "\n".join(map(str, pairs[1]))):
        return fault
    return check_said(seed, args, rows[0], keys, left, right)


def unlike(row, key, name, is_json):
    """The emptied row with a key that no other has."""
    if is_json:
        members = json.loads(row.bare, parse_int=Number)
        members[key] = name
        return "{" + ", ".join(f'"{k}": {v if isinstance(v, Number) else json.dumps(v)}' for k, v in members.items()) + "}"
    if "\t" in row.bare:
        fields = row.bare.split("\t")
        fields[COLUMNS.index(key)] = name
        return "\t".join(fields)
    fields = next(csv.reader([row.bare]))
    fields[COLUMNS.index(key)] = name
    return ",".join(quoted(field) for field in fields)


def check_said(seed, args, rows, keys, left, right):
    """Each field of the pairs is the one that came."""
    by_ident = [{row.ident: row for row in side.rows} for side in (left, right)]
    for got in rows:
        ours, theirs = by_ident[0].get(got.get("id", "")), by_ident[1].get(got.get("right_id", ""))
        for name in keys.split(","):
            row = ours or theirs
            if got[name] != row.texts[name] and not (left.is_json and row.missing[name]):
                return f"WM_SEED={seed} {' '.join(args)}: key {name} of {got} is not {row.texts[name]!r}"
        for row, prefix in ((ours, ""), (theirs, "right_")):
            for name in ("v", "w", "g"):
                if row and prefix + name in got and got[prefix + name] not in (row.texts[name], "absent"):
                    return f"WM_SEED={seed} {' '.join(args)}: {prefix}{name} of {got} is not {row.texts[name]!r}"
    return None


MERGED_WORDS = ["NA", "N", "\\N", "-", "NULL", "-999", "é"]


def merges(seed):
    rng = random.Random(seed)
    nulls = Nulls(rng, words=MERGED_WORDS)

    def field(text):
        """As it came, and emptied."""
        raw = quoted(text) if rng.random() < nulls.quote_rate else text
        return raw, "" if nulls.take_field(text, raw != text) else raw

    def table(is_main):
        keys, lines = set(), []
        for _ in range(rng.randrange(1, 15)):
            key = field(rng.choice(("a", "b", "c", "", *MERGED_WORDS[:4])))
            # A main table has a key once. A quoted text and the same without quotes are one, if they are texts.
            same = key[1].strip('"')
            if is_main and same in keys:
                continue
            keys.add(same)
            maybe = (lambda *others: field(rng.choice((*nulls.texts, *nulls.texts, *others))))
            number = maybe("1", "2", "3.5", "4")
            if not nulls.take_field(number[0].strip('"'), number[0].startswith('"')) and number[0].strip('"') in MERGED_WORDS:
                number = ("5", "5")
            lines.append((key, number, maybe("1", "20", "x"), maybe("y", "z"), maybe("q")))
        return lines

    main, late = table(True), table(False)
    for name, lines in (("main", main), ("late", late)):
        for at in (0, 1):
            text = "k,n,m,l,x\n" + "".join(",".join(cell[at] for cell in line) + "\n" for line in lines)
            (FOLDER / (name + ("", ".bare")[at])).write_text(text, encoding="utf-8")
    args = ["wm-merge", "-k", "k", "--sum", "n", rng.choice(("--min", "--max")), "m", "--last", "l,x"]
    got = run([*args, *nulls.args, "main", "late"], sides=())[0]
    want = run([*args, "main.bare", "late.bare"], sides=())[0]

    def emptied(out):
        return "\n".join(",".join("" if nulls.take_field(cell.strip('"'), cell.startswith('"')) else cell.strip('"')
                                  for cell in line.split(",")) for line in out.splitlines())
    plain = "\n".join(",".join(cell.strip('"') for cell in line.split(",")) for line in want.splitlines())
    if fault := differ(seed, [*args, *nulls.args], emptied(got), plain):
        return fault
    told = [run([*args, *extra, "-o", "ndjson", "main" + end, "late" + end], sides=())[0]
            for extra, end in ((nulls.args, ""), ([], ".bare"))]
    return differ(seed, [*args, *nulls.args, "-o", "ndjson"], *told)


def partial(seed):
    rng, nulls, stream = begin(seed)
    window = ["wm-window", "-q", "-t", "ts", "--time-format", "s", "--tumbling", "10s", "-g", "k", *nulls.args,
              "-a", "count,count:w,min:w,max:w,distinct:w"]
    if not stream.is_json and not nulls.takes_quoted and any(
            text in nulls.texts for row in stream.rows if not row.missing["k"] for text in [row.texts["k"]]):
        return None  # such a key is a text in the rows, and a word for nothing in a table of results
    cut = rng.randrange(len(stream.rows) + 1)
    want = run([*window, stream.write("in", False)])[0]
    for name, rows in (("a", stream.rows[:cut]), ("b", stream.rows[cut:])):
        out = run([*window, "--partial", stream.write("in" + name, False, rows)])[0] if rows else ""
        (FOLDER / name).write_text(out, encoding="utf-8")
    files = [name for name in ("a", "b") if (FOLDER / name).stat().st_size]
    merge = ["wm-merge", "--partial", "-k", "window_start,window_end,k", *nulls.args]
    got = run([*merge, *files], sides=())[0]
    lines = want.splitlines(), got.splitlines()
    return differ(seed, merge, "\n".join(sorted(lines[1])), "\n".join(sorted(lines[0])))


def runs(seed):
    rng, nulls, stream = begin(seed)
    tool = rng.choice((["wm-window", "--tumbling", "10s", "-g", "k", "-a", "count,sum:v,max:w"], ["wm-dedup", "-k", "k"],
                       ["wm-sort"], ["wm-stamp"]))
    args = [*tool, *common(rng)]
    if "--trigger" in args:
        del args[args.index("--trigger"):args.index("--trigger") + 2]
    if tool[0] == "wm-dedup":
        args += ["--remember", "20s"]
    args += ["-o", "csv"] if stream.is_json and tool[0] == "wm-window" else []
    want = run([*args, *nulls.args, stream.write("in", False)])[0]
    text = stream.text(False).encode()
    at = sorted(rng.randrange(len(text)) for _ in range(rng.randint(1, 2))) + [len(text)]
    (FOLDER / "rejects").unlink(missing_ok=True)
    for side in FOLDER.glob("st*"):
        side.unlink()
    (FOLDER / "out").write_bytes(b"")
    for number, end in enumerate(at):
        (FOLDER / "in").write_bytes(text[:end])
        # The list may be spelt in another way.
        texts = [text.replace(",", "\\,") for text in nulls.texts if text != "\\"]
        rng.shuffle(texts)
        spelt = ["--null", ",".join([*texts, *texts[:1], *(["\\"] if "\\" in nulls.texts else [])]), *nulls.args[2:]]
        command = [*args, *spelt, "-C", "st", "--eof", "flush" if number + 1 == len(at) else "hold",
                   "--out", "out", "--rejects", "rejects", "in"]
        result = harness.run(command, cwd=FOLDER)
        if result.returncode != 0:
            return f"WM_SEED={seed} {' '.join(command)}: status {result.returncode}\n{result.stderr.decode()}"
    return differ(seed, [*args, *nulls.args], (FOLDER / "out").read_text(encoding="utf-8"), want)


LAWS = {
    "windows": (windows, STREAMS, "streams give the windows of the same with fields emptied"),
    "passing": (passing, STREAMS, "streams pass as they came, as the same with fields emptied"),
    "joins": (joins, STREAMS, "joins match as with keys of their own where they are missing"),
    "merges": (merges, STREAMS, "merges give the table of the same with fields emptied"),
    "partial": (partial, STREAMS // 2, "streams cut in two, by states, give the table of one run"),
    "runs": (runs, STREAMS // 2, "streams in several runs give the bytes of one"),
}


def use(folder):
    global FOLDER
    FOLDER = folder


if __name__ == "__main__":
    sys.exit(harness.run_streams(LAWS, SEED, use))
