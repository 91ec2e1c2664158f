# SPDX-License-Identifier: Apache-2.0
"""Random inputs for crossed.py: rows of known roles, in every format and form of time, then damaged.

A role says which part a column plays, whatever its name is in the input: the access log calls its key `path` and its
number `bytes`. Options are drawn by role, so that each fits every input.
"""

import datetime
import json

import harness

ROLES = ("time", "key", "source", "value", "text", "gap", "batch", "id", "arrival")
PLAIN_NAMES = {"time": "ts", "key": "k", "source": "s", "value": "v", "text": "t", "gap": "g", "batch": "b", "id": "id",
               "arrival": "at"}
CLF_NAMES = {"time": "time", "key": "path", "source": "host", "value": "bytes", "text": "agent", "batch": "status",
             "id": "user"}
LINES_NAMES = {"time": "ts", "key": "k", "source": "s", "value": "v", "batch": "b"}
LINES_PATTERN = "^([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*)$"
STEPS_US = (1, 1000, 1000, 250_000, 1_000_000, 1_000_000, 60_000_000)
BASES_US = (1_700_000_000_000_000, 1_764_400_000_000_000, 1_711_846_000_000_000, 4_000_000_000, -70_000_000_000)
FORMATS = ("csv",) * 5 + ("ndjson",) * 4 + ("tsv", "semicolon", "headerless", "logfmt", "clf", "lines")


def moment(us):
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=us)


def decimal_of(us, digits):
    """Microseconds as a number of units, 10^digits of which are a microsecond or make one."""
    sign, us = ("-", -us) if us < 0 else ("", us)
    whole, rest = divmod(us, 10**digits)
    return sign + str(whole) + (f".{rest:0{digits}d}".rstrip("0").rstrip(".") if digits else "")


FORMS = {
    "iso": ("iso", harness.print_instant),
    "offset": ("iso", lambda us: harness.print_instant(us + 7_200_000_000).replace("Z", "+02:00")),
    "zoneless": ("iso", lambda us: harness.print_instant(us).replace("Z", "").replace("T", " ")),
    "s": ("s", lambda us: decimal_of(us, 6)),
    "ms": ("ms", lambda us: decimal_of(us, 3)),
    "us": ("us", lambda us: decimal_of(us, 0)),
    "ns": ("ns", lambda us: str(us * 1000)),
    "pattern": ("%d.%m.%Y %H:%M:%S.%f", lambda us: f"{moment(us):%d.%m.%Y %H:%M:%S.%f}"),
    "rfc2822": ("rfc2822", lambda us: f"{moment(us):%a, %d %b %Y %H:%M:%S} +0000"),
    "clf": ("clf", lambda us: f"{moment(us):%d/%b/%Y:%H:%M:%S} +0000"),
    "yearless": ("%b %d %H:%M:%S", lambda us: f"{moment(us):%b %d %H:%M:%S}"),
}


class Stream:
    """What is known of an input: its format, the names of its roles, and how far apart its rows are."""

    def __init__(self, rng, kind=None):
        self.rng = rng
        self.format = kind or rng.choice(FORMATS)
        self.step_us = rng.choice(STEPS_US)
        self.base_us = rng.choice(BASES_US) if rng.random() < 0.5 else BASES_US[0]
        self.form = rng.choice(("iso", "iso", "offset", "zoneless", "s", "s", "ms", "us", "ns", "pattern", "rfc2822", "clf",
                                "yearless"))
        if self.format == "clf":
            self.form = "clf"
        if self.format == "lines" and " " in FORMS[self.form][1](0):
            self.form = "iso"
        if self.form in ("rfc2822", "clf", "yearless"):
            self.step_us = max(self.step_us, 1_000_000)
        if self.form == "ns" and abs(self.base_us) < 10**14:
            self.form = "s"
        self.names = {"clf": CLF_NAMES, "lines": LINES_NAMES}.get(self.format, PLAIN_NAMES)
        self.is_split_time = self.format in ("csv", "ndjson") and self.form == "zoneless" and rng.random() < 0.3
        self.is_stamped = False
        self.sources = rng.sample(["web1", "web2", "", "é", "a,b", "none", "NA"], rng.randint(1, 4))
        self.keys = rng.sample(["a", "b", "", "c d", 'q"q', "1", "01", "é", "x" * 40, "NA", "-"], rng.randint(1, 6))
        self.order = rng.sample(ROLES, len(ROLES))
        self.rows = []

    def column(self, role):
        """The name of a role in this input, or None; without a header it is a number."""
        name = self.names.get(role)
        if name and self.format == "headerless":
            return str(self.order.index(role) + 1)
        return name

    def time_column(self):
        return "day+clock" if self.is_split_time else self.column("time")

    def draw_rows(self, count):
        rng = self.rng
        now = self.base_us + rng.randrange(3600) * self.step_us
        step = self.step_us
        batch = 0
        for number in range(count):
            now += rng.choice((0, 0, 1, 1, 2, 5, 20, 200 if rng.random() < 0.1 else 1)) * step
            behind = rng.choice((0, 0, 0, 0, 1, 2, 7, 30, 100)) * step
            ahead = 5000 * step if rng.random() < 0.02 else 0
            batch += rng.random() < 0.25
            time_us = now - behind + ahead
            self.rows.append({
                "time": FORMS[self.form][1](time_us) if rng.random() < 0.98 else rng.choice(("", "x", "2017", "-1", "NA")),
                "key": rng.choice(self.keys),
                "source": rng.choice(self.sources),
                "value": rng.choice((str(rng.randrange(100)), f"{rng.randrange(50)}.{rng.randrange(1000):03d}", "",
                                     rng.choice(("-3", "1e3", "0.1", "007", "99999999999999999999", "x", "-", "NA")) if
                                     rng.random() < 0.2 else "7")),
                "text": rng.choice(("", "one", "two", 'q"q', "a,b", "l\nf" if rng.random() < 0.1 else "3", "é", "\t", "\\")),
                "gap": rng.choice(("5", "15", "40", "" if rng.random() < 0.1 else "20")),
                "batch": str(batch),
                "id": str(rng.randrange(count // 2 + 1)),
                "arrival": FORMS[self.form][1](now + rng.choice((0, 1, 3)) * step),
            })

    def fields(self, row):
        """Pairs of name and text as they stand in a record."""
        for role in self.order:
            if role == "time" and self.is_split_time:
                day, _, clock = row["time"].partition(" ")
                yield "day", day
                yield "clock", clock
            else:
                yield PLAIN_NAMES[role], row[role]

    def render(self, rows):
        """The bytes of these rows."""
        return getattr(self, f"_{self.format}")(rows).encode()

    def _delimited(self, rows, delimiter, has_header=True):
        def field(text):
            return '"' + text.replace('"', '""') + '"' if any(c in text for c in (delimiter, '"', "\n", "\r")) else text
        empty = dict.fromkeys(ROLES, "")
        lines = [[name for name, _ in self.fields(empty)]] if has_header else []
        lines += [[text for _, text in self.fields(row)] for row in rows]
        return "".join(delimiter.join(map(field, line)) + "\n" for line in lines)

    def _csv(self, rows):
        return self._delimited(rows, ",")

    def _semicolon(self, rows):
        return self._delimited(rows, ";")

    def _headerless(self, rows):
        return self._delimited(rows, ",", False)

    def _tsv(self, rows):
        def field(text):
            """Quotes are letters; tabs and line ends stand behind a backslash, as themselves or as a letter."""
            text = text.replace('q"q', '"q"').replace("\\", "\\\\")
            for byte, letter in (("\t", "t"), ("\n", "n")):
                text = text.replace(byte, "\\" + self.rng.choice((byte, letter)))
            return text
        lines = [[name for name, _ in self.fields(dict.fromkeys(ROLES, ""))]] + [[t for _, t in self.fields(r)] for r in rows]
        return "".join("\t".join(map(field, line)) + "\n" for line in lines)

    def _ndjson(self, rows):
        lines = []
        for row in rows:
            members = []
            for name, text in self.fields(row):
                if text == "" and self.rng.random() < 0.5:
                    continue
                try:
                    is_number = isinstance(json.loads(text), (int, float))
                except ValueError:
                    is_number = False
                bare = is_number and name not in ("day", "clock") and self.rng.random() < 0.8
                shown = text if bare else "null" if text == "" else json.dumps(text, ensure_ascii=self.rng.random() < 0.5)
                members.append(f"{json.dumps(name)}: {shown}")
            if self.rng.random() < 0.05:
                members.append('"more": {"deep": [1, "}", null]}')
            lines.append("{" + ", ".join(members) + "}\n")
        return "".join(lines)

    def _logfmt(self, rows):
        def value(text):
            is_plain = text and not any(c in text for c in ' "=\\\n\t')
            return text if is_plain else json.dumps(text, ensure_ascii=False)
        return "".join(" ".join(f"{name}={value(text)}" for name, text in self.fields(row)) + "\n" for row in rows)

    def _clf(self, rows):
        lines = []
        for row in rows:
            host = row["source"].replace(",", "-") or "-"
            path = "/" + row["key"].replace('"', "%22").replace(" ", "+")
            number = row["value"] if row["value"].isdigit() else "-"
            agent = row["text"].replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
            lines.append(f'{host} - {row["id"]} [{row["time"] or "-"}] "GET {path} HTTP/1.1" {200 + int(row["batch"])} '
                         f'{number} "-" "{agent}"\n')
        return "".join(lines)

    def _lines(self, rows):
        def word(text):
            return text.replace(" ", "_").replace("\n", "_")
        return "".join(" ".join(word(row[role]) for role in ("time", "key", "source", "value", "batch")) + "\n"
                       for row in rows)


JUNK = (b"\n", b"\r\n", b"nonsense\n", b"{\n", b"[1]\n", b'{"ts": NaN}\n', b'"open,1\n', b'"closed"x,1\n', b"\x00\n", b"\xff\xfe,,\n",
        b",,,,,,,,\n", b"   \n", b'{"ts": "\\ud83d"}\n', b"a=1 b=\n", b"\r", b"==> in <==\n")


def harm(rng, data):
    """The same bytes with one to three faults in them, such as inputs have."""
    for _ in range(rng.randint(1, 3)):
        lines = data.splitlines(keepends=True)
        kind = rng.randrange(14)
        at = rng.randrange(len(data)) if data else 0
        if kind <= 2 and lines:
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(JUNK))
            data = b"".join(lines)
        elif kind == 3:
            data = data.removesuffix(b"\n")
        elif kind == 4:
            data = data.replace(b"\n", b"\r\n")
        elif kind == 5:
            data = b"\xef\xbb\xbf" + data
        elif kind == 6:
            data = data[:at]
        elif kind == 7 and data:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1:]
        elif kind == 8:
            data = data[:at] + b'"' + data[at:]
        elif kind == 9 and lines:
            data = lines[0]
        elif kind == 10 and lines:
            data = data + lines[0] + (lines[-1] if rng.random() < 0.5 else b"")
        elif kind == 11 and rng.random() < 0.3:
            data = b""
        elif kind == 12:
            data = data[:at] + rng.choice((b"x" * 300, b"\xff", b"\x1f\x8b\x08", b"\xe2\x82", b'""')) + data[at:]
        elif kind == 13 and rng.random() < 0.3:
            data = data.replace(b"\n", b"\r")
    return data
