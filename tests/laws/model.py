# SPDX-License-Identifier: Apache-2.0
"""What wm-window computes, said as plainly as possible: the judge of the random streams in laws.py.

Every window of every row is found by trying, sums are fractions, and nothing is shared with the tool.
"""

import dataclasses
import fractions
import math

FLUSH, HOLD, TRIGGER = "flush", "hold", "trigger"


@dataclasses.dataclass(frozen=True)
class Row:
    time_us: int
    keys: tuple  # of bytes, None for null
    values: dict  # column -> text, None for no value


@dataclasses.dataclass
class Query:
    size_us: int
    slide_us: int
    aggregates: list  # of (function, column), column None for count and rate
    offset_us: int = 0
    delay_us: int | None = None  # None: no watermark
    mode: str = "append"
    eof: str = FLUSH
    is_each: bool = True  # the watermark moves with every row; else at the end of each batch
    is_spark: bool = False


@dataclasses.dataclass
class Answer:
    batches: list  # of lists of (start, end, keys, cells); what is flushed at the end is one more
    watermarks: list  # in force while the batch was judged
    late: list  # positions of late rows, counted from 0 over all batches
    rows_used: int = 0
    rows_partly_late: int = 0
    windows_missed: int = 0


def windows_of(query, time_us):
    """(start, end) of every window that holds the time."""
    start = time_us - (time_us - query.offset_us) % query.slide_us
    found = []
    while start + query.size_us > time_us:
        found.append((start, start + query.size_us))
        start -= query.slide_us
    return found


def number_of(text):
    """The number that a text is, or None."""
    try:
        return fractions.Fraction(text) if not text.startswith("+") and "/" not in text and "_" not in text else None
    except ValueError:
        return None


def print_decimal(value):
    """A fraction whose denominator divides a power of ten, in full, without trailing zeros."""
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    whole = str(abs(int(value * 10**digits))).rjust(digits + 1, "0")
    text = whole if digits == 0 else f"{whole[:-digits]}.{whole[-digits:]}"
    return f"-{text}" if value < 0 else text


def aggregate(query, function, column, rows):
    """The cell: a text where it is exact, a float where it is rounded, None where it is empty."""
    if function == "rate":
        return float(fractions.Fraction(len(rows) * 1_000_000, query.size_us))
    if column is None:
        return str(len(rows))
    present = [row for row in rows if row.values[column] is not None]
    texts = [row.values[column] for row in present]
    if function == "count":
        return str(len(texts))
    if not texts:
        return None
    if function in ("min", "max"):
        # Numbers come before texts; of equal numbers the text that is first in byte order is shown.
        def rank(text):
            number = number_of(text)
            return (1, text.encode()) if number is None else (0, number)

        best = (min if function == "min" else max)(rank(text) for text in texts)
        return min((text for text in texts if rank(text) == best), key=str.encode)
    if function == "first":
        return min(present, key=lambda row: row.time_us).values[column]
    if function == "last":
        return max(reversed(present), key=lambda row: row.time_us).values[column]
    numbers = [number_of(text) for text in texts]
    total = sum(numbers)
    if function == "sum":
        return print_decimal(total)
    if function == "avg":
        return float(total / len(numbers))
    if len(numbers) < 2:
        return None
    mean = total / len(numbers)
    variance = sum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1)
    return float(variance) if function == "var" else math.sqrt(variance)


def key_order(keys):
    return [(key is not None, key or b"") for key in keys]


def answer(query, batches):
    """Runs the query over batches of rows."""
    state = {}  # (start, end, keys) -> rows in input order
    watermark = 0 if query.is_spark and query.delay_us is not None else None
    highest = None
    result = Answer([], [], [])

    def written(groups):
        ordered = sorted(groups, key=lambda group: (group[1], group[0], key_order(group[2])))
        return [(*group, tuple(aggregate(query, function, column, state[group])
                               for function, column in query.aggregates)) for group in ordered]

    def is_complete(end):
        return watermark is not None and end <= watermark

    def advance():
        nonlocal watermark
        if query.delay_us is None or highest is None:
            return []
        # Spark keeps the delay in milliseconds too.
        delay_us = query.delay_us // 1000 * 1000 if query.is_spark else query.delay_us
        reached = (highest - delay_us) // 1000 * 1000
        if watermark is None or reached > watermark:
            watermark = reached
        if query.mode == "complete":
            return []
        closed = [group for group in state if is_complete(group[1])]
        rows = written(closed) if query.mode == "append" else []
        for group in closed:
            del state[group]
        return rows

    def take(row, position, touched):
        found = windows_of(query, row.time_us)
        open_windows = [w for w in found if query.mode == "complete" or not is_complete(w[1])]
        missed = len(found) - len(open_windows)
        result.windows_missed += missed
        # A slide never exceeds the size, so a row has a window, and none left means late.
        if not open_windows:
            result.late.append(position)
            return
        result.rows_used += 1
        result.rows_partly_late += missed > 0
        for start, end in open_windows:
            group = (start, end, row.keys)
            state.setdefault(group, []).append(row)
            touched.add(group)

    def triggered(touched):
        if query.mode == "update":
            return written(touched)
        return written(state) if query.mode == "complete" else []

    position = 0
    for batch in batches:
        result.watermarks.append(watermark)
        touched = set()
        for row in batch:
            if query.is_each:
                highest = row.time_us if highest is None else max(highest, row.time_us)
                result.batches.append(advance())
                touched = set()
                take(row, position, touched)
                result.batches.append(triggered(touched))
            else:
                take(row, position, touched)
            position += 1
        if not query.is_each:
            rows = triggered(touched)
            for row in batch:
                highest = row.time_us if highest is None else max(highest, row.time_us)
            result.batches.append(rows + advance())
    if query.eof == FLUSH and query.mode == "append":
        result.batches.append(written(state))
    return result
