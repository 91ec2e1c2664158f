# SPDX-License-Identifier: Apache-2.0
"""Random command lines for crossed.py: what each option may be given, tool by tool.

The options come from the tool itself (--help=all): one that has no line here fails the suite until it has. Values are drawn
to fit the input, and near its steps, so that edges are hit; a combination that a tool refuses is a case as well.
"""

import re

import harness
import streams

OPTION = re.compile(r"^ +(?:-., )?--([a-z0-9-]+)", re.MULTILINE)
TOOLS = ("wm-window", "wm-stamp", "wm-dedup", "wm-join", "wm-sort", "wm-lag")

# Shown by other tests, as they read nothing or answer for a person.
NOT_RUN = ("explain", "help", "version")
# They belong to a base that is always drawn, by base().
BASE = ("time", "time-format", "input-format", "delimiter", "columns", "no-header", "pattern", "delay", "tumbling", "sliding",
        "session", "cumulating", "type", "key", "between", "asof", "left-key", "right-key", "left-time", "right-time",
        "checkpoint", "eof", "in-place", "sum", "min", "max", "last", "partial", "keep-partial", "replace")


def options_of(tool):
    """The names of its options, as its help has them."""
    return OPTION.findall(harness.run([tool, "--help=all"]).stdout.decode())


class Command:
    """A command line that grows: arguments, those of them that need a checkpoint, and what they say of the run."""

    def __init__(self, rng, tool, stream):
        self.rng = rng
        self.tool = tool
        self.stream = stream
        self.args = []
        self.kept = []
        self.names = set()
        self.eof = None
        self.has_clock = rng.random() < 0.03
        self.has_checkpoint = rng.random() < 0.4
        self.has_delay = False

    def column(self, *roles):
        """A column of one of these roles, or of any."""
        found = [name for role in (roles or streams.ROLES) if (name := self.stream.column(role))]
        return escaped(self.rng.choice(found)) if found else None

    def duration(self, *factors):
        """A multiple of the steps between rows, at times a microsecond beside it."""
        us = self.rng.choice(factors or (1, 2, 5, 10, 30, 100)) * self.stream.step_us
        us += self.rng.choice((0, 0, 0, 0, -1, 1, 500)) if us > 1 else 0
        return duration(us)

    def base(self):
        getattr(self, "_base_" + self.tool.removeprefix("wm-"))()
        self._input()
        if self.has_checkpoint:
            self.kept += ["-C", "st"]
        if self.rng.random() < 0.5:
            self.eof = self.rng.choice(("flush", "hold", "hold", "trigger"))

    def _input(self):
        stream, rng = self.stream, self.rng
        known = {"semicolon": ["-d", ";"], "tsv": ["-i", "tsv"], "clf": ["-i", "clf"], "logfmt": ["-i", "logfmt"],
                 "lines": ["-i", "lines", "--pattern", streams.LINES_PATTERN, "--columns",
                           ",".join(streams.LINES_NAMES.values())], "headerless": ["--no-header"]}
        self.args += known.get(stream.format, [])
        if stream.format in ("csv", "ndjson") and rng.random() < 0.3:
            self.args += ["-i", stream.format]
        if stream.format == "clf" and rng.random() < 0.5 or stream.is_stamped:
            return
        column = stream.time_column()
        self.args += ["-t", column]
        if self.rng.random() < 0.4 or stream.form in ("pattern", "yearless"):
            self.args += ["--time-format", streams.FORMS[stream.form][0]]
        if stream.form == "yearless":
            self.args += ["--time-reference", harness.print_instant(stream.base_us)]

    def _delay(self, share):
        if self.rng.random() < share and not self.stream.is_stamped:
            self.has_delay = True
            self.args += ["-w", self.duration(0, 0, 1, 3, 10, 40)]

    def _base_window(self):
        self._delay(0.9)
        kind = self.rng.randrange(8)
        size = self.rng.choice((1, 4, 10, 60)) * max(self.stream.step_us, 10)
        if kind < 4:
            self.args += ["--tumbling", self.rng.choice((duration(size),) * 5 + ("1d", "1w", "1mo"))]
        elif kind < 6:
            self.args += ["--sliding", f"{duration(size * self.rng.randint(1, 4) + self.rng.choice((0, size // 3)))},"
                          f"{duration(size)}"]
        elif kind == 6:
            gaps = [duration(size)]
            if column := self.column("gap"):
                gaps.append(f"column:{column},{self.rng.choice(('s', 'ms'))}")
            self.args += ["--session", self.rng.choice(gaps)]
        else:
            self.args += ["--cumulating", f"{duration(size * self.rng.randint(1, 5))},{duration(size)}"]

    def _base_stamp(self):
        self._delay(0.8)

    def _base_dedup(self):
        self._delay(0.9)

    def _base_sort(self):
        self._delay(0.9)

    def _base_lag(self):
        self._delay(0.5)

    def _base_join(self):
        self._delay(0.9)
        rng = self.rng
        kind = rng.choice(("inner", "left", "right", "full", "semi", "anti"))
        way = rng.choice(("between", "between", "tumbling", "asof"))
        if way == "asof":
            kind = rng.choice(("inner", "left"))
            self.args += ["--asof", "backward"]
        elif way == "tumbling":
            self.args += ["--tumbling", self.duration(3, 10, 60)]
        else:
            low, high = sorted(rng.choice((-30, -5, -1, 0, 0, 2, 8, 40)) * self.stream.step_us for _ in (0, 1))
            ends = [duration(low) if rng.random() < 0.93 else "", duration(high) if rng.random() < 0.93 else ""]
            self.args += [f"--between={rng.choice(('', '', '('))}{','.join(ends)}"]
            if "(" in self.args[-1]:
                self.args[-1] += ")"
        self.args += ["--type", kind]
        if rng.random() < 0.9:
            column = self.column("key", "source", "id")
            self.args += rng.choice((["-k", column], ["--left-key", column, "--right-key", column]))

    def cross(self):
        """Adds options of the tool at random: few, so that most command lines are taken."""
        names = [name for name in options_of_known(self.tool) if name in DRAWS]
        count = self.rng.choice((0, 1, 2, 3, 3, 4, 5, 6, 8))
        for name in self.rng.sample(names, min(count, len(names))):
            self._add(name)

    def _add(self, name):
        """Adds an option, and another that it has no sense without, save at times."""
        known = options_of_known(self.tool)
        if name in self.names or set(EXCLUDES.get(name, "").split()) & self.names or self.is_given(name):
            return
        if name in NEEDS_CHECKPOINT and not self.has_checkpoint or name in CLOCK and not self.has_clock:
            return
        if self.rng.random() < 0.95:
            if name in UNFIT and UNFIT[name](self):
                return
            needed = [other for other in NEEDS.get(name, "").split() if other in known]
            if needed and not set(needed) & self.names:
                self._add(self.rng.choice(needed))
        drawn = DRAWS[name](self)
        if drawn is None:
            return
        self.names.add(name)
        (self.kept if name in NEEDS_CHECKPOINT else self.args).extend(["--" + name, *drawn])

    def is_given(self, name):
        return any(arg == "--" + name or arg.startswith(f"--{name}=") for arg in self.args)

    def line(self, has_checkpoint, eof):
        kept = self.kept if has_checkpoint else []
        return [self.tool, *self.args, *kept, *(["--eof", eof] if eof else [])]

    def closes_windows(self):
        """Whether wm-lag writes windows as the watermark passes them, rather than all at its end."""
        return self.has_delay and "--every" in self.args


def escaped(name):
    return re.sub(r"([,:=.\\])", r"\\\1", name)


def duration(us):
    sign, us = ("-", -us) if us < 0 else ("", us)
    for unit, size in (("m", 60_000_000), ("s", 1_000_000), ("ms", 1000)):
        if us and us % size == 0:
            return f"{sign}{us // size}{unit}"
    return f"{sign}{us}us"


_known = {}


def options_of_known(tool):
    if tool not in _known:
        _known[tool] = options_of(tool)
    return _known[tool]


def unknown(tool):
    """Options of the tool that this file says nothing of."""
    known = {*DRAWS, *BASE, *NOT_RUN}
    return [name for name in options_of_known(tool) if name not in known]


def _choice(*values):
    return lambda c: [c.rng.choice(values)]


def _flag(_):
    return []


def _duration(*factors):
    return lambda c: [c.duration(*factors)]


def _column(*roles):
    def draw(c):
        column = c.column(*roles)
        return [column] if column else None
    return draw


def _aggregates(c):
    terms = []
    for number in range(c.rng.randint(1, 5)):
        function = c.rng.choice(("count", "sum", "avg", "min", "max", "first", "last", "var", "stddev", "median", "p90", "p99.9",
                                 "distinct", "rate", "count", "share"))
        column = c.column("value", "value", "batch", "id")
        if function in ("min", "max", "first", "last", "distinct"):
            column = c.column("value", "text", "key", "id")
        condition = f"{c.rng.choice(('eq', 'ne', 'lt', 'ge'))}:{c.rng.choice(('1', '7', 'a', '20.5'))}"
        if column is None or function == "rate" or (function == "count" and c.rng.random() < 0.5):
            term = "rate" if function == "rate" else "count"
        elif function == "share" or (function == "count" and c.rng.random() < 0.5):
            term = f"{function}:{column}:{condition}"
        else:
            term = f"{function}:{column}"
            if c.rng.random() < 0.2 and (other := c.column("key", "value")):
                term += f":if:{other}:{condition}"
        terms.append(f"a{number}={term}" if c.rng.random() < 0.6 else term)
    return [",".join(dict.fromkeys(terms))]


def _columns_list(*roles):
    def draw(c):
        found = [name for role in roles if (name := c.column(role))]
        return [",".join(map(escaped, c.rng.sample(found, c.rng.randint(1, len(found)))))] if found else None
    return draw


def _trigger(c):
    ways = ["each", "1rows", "3rows", "7rows", f"event:{duration(10 * c.stream.step_us)}", "file", "eof"]
    if column := c.column("batch"):
        ways.append(f"column:{column}")
    if c.has_clock:
        ways.append("wall:1s")
    return [c.rng.choice(ways)]


def _instant(c):
    return [harness.print_instant(c.stream.base_us + c.rng.randrange(4000) * c.stream.step_us)]


def _ingest(c):
    if c.has_clock and c.rng.random() < 0.3:
        return ["now"]
    return _column("arrival")(c)


def _prefix(c):
    return [c.rng.choice(("l_,r_", ",r_", "left.,"))]


def _sources(c):
    names = [name for name in c.stream.sources if name] + ["web9"]
    return [",".join(map(escaped, c.rng.sample(names, c.rng.randint(1, len(names)))))]


def _early(c):
    return [c.rng.choice(("1rows", "3rows", f"event:{duration(3 * c.stream.step_us)}"))]


def _side(name):
    return lambda c: [name]


DRAWS = {
    # wm-window
    "offset": lambda c: [duration(c.rng.choice((-7, -1, 1, 3)) * c.stream.step_us)],
    "group-by": _columns_list("key", "source", "text", "batch"),
    "aggregate": _aggregates,
    "mode": _choice("append", "update", "update", "complete"),
    "allowed-lateness": _duration(1, 5, 30),
    "panes": _choice("accumulating", "discarding"),
    "early": _early,
    "fill": _choice("zero", "null", "prev"),
    "partial": _flag,
    "stamp": lambda c: [c.rng.choice(("later", "left", "right"))] if c.tool == "wm-join" else [],
    # wm-stamp
    "add": lambda c: [",".join(c.rng.sample(("time", "watermark", "lag", "late", "ingest", "window"), c.rng.randint(1, 4)))],
    "drop-late": _flag,
    "not-before": _instant,
    "not-after": _instant,
    # wm-dedup; its key is optional
    "within-watermark": _flag,
    "with-time": _flag,
    "remember": _duration(1, 5, 30, 100),
    "forever": _flag,
    "pass-late": _flag,
    "duplicates": _side("duplicates"),
    "key": _columns_list("key", "source", "id"),
    # wm-join
    "tolerance": _duration(1, 5, 30),
    "left-delay": lambda c: [c.rng.choice((c.duration(0, 3, 30), "none"))],
    "right-delay": lambda c: [c.rng.choice((c.duration(0, 3, 30), "none"))],
    "late-left": _side("late"),
    "late-right": _side("duplicates"),
    "eager": _flag,
    "prefix": _prefix,
    # wm-sort
    "merge-sorted": _flag,
    # wm-lag
    "every": _duration(10, 60),
    "percentiles": _choice("50", "0,37.5,100", "99.9"),
    "advise": _flag,
    "target": _choice("1/1000", "0.1%", "5%"),
    "plot": _flag,
    # Input
    "unmatched": _choice("reject", "skip"),
    "tsv-escapes": _choice("backslash", "none"),
    "order": _choice("given", "time"),
    "merge": _flag,
    "files0-from": _side("names"),
    "record-limit": _choice("200", "1K", "64K"),
    "null": _choice("NA", "NA,-,\\N", "x,7,a", ",a\\,b", ""),
    "null-quoted": _flag,
    # Event time and watermark
    "tz": _choice("UTC", "Europe/Berlin", "America/New_York", "+05:30"),
    "time-reference": _instant,
    "repeated-hour": _choice("earlier", "later"),
    "watermark-column": lambda c: c.rng.choice((["none"], _column("arrival")(c))),
    "source": _column("source", "key"),
    "sources": _sources,
    "policy": _choice("min", "max"),
    "idle": _duration(3, 30, 100),
    "idle-wall": _choice("1s", "100ms"),
    "idle-close": _choice("1s", "100ms"),
    "max-jump": _duration(10, 100, 1000),
    "max-ahead": _duration(1, 10, 100),
    "ingest": _ingest,
    "trigger": _trigger,
    "compat": _side("spark"),
    # Late and rejected rows, reports
    "late": _side("late"),
    "late-info": _flag,
    "rejects": _side("rejects"),
    "append": _flag,
    "overwrite": _flag,
    "strict": _flag,
    "fail-late": _choice("1/1000", "10%", "0.5"),
    "report": _side("report"),
    "metrics": _side("wm.prom"),
    "progress": _choice("auto", "bar", "json", "none"),
    "quiet": _flag,
    "verbose": _flag,
    # Output
    "output-format": lambda c: [c.rng.choice(("same", "csv", "tsv", "ndjson", "table"))],
    "output-time": _choice("iso", "s", "ms", "us", "ns"),
    "ofmt": _choice("%.3f", "%g", "%.0f"),
    "no-output-header": _flag,
    "out": _side("result"),
    "checkpoint-every": _choice("1rows", "10rows", "30s"),
    "resume": _choice("auto", "replay"),
    "position": _column("id", "batch"),
    "max-file-age": _choice("1h", "7d"),
    "new-output": _flag,
    "state-limit": _choice("none", "64M", "2K"),
    # wm-merge
    "backup": _side(".old"),
}

NEEDS_CHECKPOINT = ("checkpoint-every", "resume", "position", "max-file-age", "new-output")
# Their results depend on the clock, so that two runs may differ.
CLOCK = ("idle-wall", "idle-close", "eager")
# Pairs that every tool refuses; others are left to be refused, which is a case too.
EXCLUDES = {
    "append": "overwrite", "overwrite": "append", "merge": "source order", "order": "merge", "source": "merge",
    "quiet": "verbose", "verbose": "quiet", "with-time": "within-watermark forever remember",
    "within-watermark": "with-time forever", "forever": "remember with-time within-watermark", "remember": "forever with-time",
    "fill": "mode partial early", "partial": "fill mode early allowed-lateness stamp panes", "early": "mode stamp partial fill",
    "mode": "early panes stamp fill partial", "panes": "mode", "stamp": "mode early fill partial panes allowed-lateness",
}
# Options that have a sense only with one of these.
NEEDS = {
    "null-quoted": "null", "late-info": "late late-left", "max-ahead": "ingest", "ingest": "max-ahead", "idle": "source merge", "sources": "source",
    "policy": "source merge", "idle-wall": "source merge", "target": "advise", "late": "drop-late", "panes": "allowed-lateness early",
    "append": "late rejects report out", "overwrite": "late rejects report out",
}
# Inputs and tools that an option is refused for.
UNFIT = {
    # What TSV cannot hold without escapes ends the run.
    "tsv-escapes": lambda c: c.stream.format != "tsv",
    "unmatched": lambda c: c.stream.format not in ("clf", "logfmt", "lines"),
    "time-reference": lambda c: True,
    "watermark-column": lambda c: c.has_delay,
    "max-jump": lambda c: not c.has_delay,
    "key": lambda c: c.tool == "wm-join",
    "policy": lambda c: c.tool == "wm-join",
    "late-info": lambda c: c.tool in ("wm-lag",),
    "fill": lambda c: "--tumbling" not in c.args,
    "early": lambda c: "--session" in c.args and c.rng.random() < 0.5,
    "tolerance": lambda c: "--asof" not in c.args,
}
