#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of the tools, damaged behind hashes that are right: each is refused in one line, or does no harm.

    tests/fuzz/damage.py [NAME...]

fuzz_checkpoint holds the frame of a file to its laws; here it is whole, and what the sections hold is wrong: a byte is
another one, a number becomes as large as it can be, bytes are missing or too many, a section is that of another tool or of
other options. The tool must end well or in one line, in little memory, and name the
checkpoint before as the way back. WM_SEED takes other damages, WM_EACH=N so many of each section.
"""

import ctypes
import ctypes.util
import os
import pathlib
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness

SEED = os.environ.get("WM_SEED", "1")
EACH = int(os.environ.get("WM_EACH", "3"))
MEMORY_BYTES = 1 << 30
FAULTS_SHOWN = 5
LIBRARY = harness.BIN / "tests/fault/fail_at.so"  # under it a sync takes no time
IS_ASAN = b"libasan" in (harness.BIN / "wm-window").read_bytes()
SECTIONS = ("OPTS", "WMRK", "INPT", "OUTP", "CNTR", "STAT")
SIDES = ["--late", "late", "--rejects", "rejects"]
WINDOW = ["wm-window", "-t", "ts", "-w", "30s", *SIDES]
JOIN = ["wm-join", "-t", "ts", "-w", "20s", "-k", "k"]
COMMANDS = {
    "tumbling": [*WINDOW, "--tumbling", "10s", "-g", "k", "-a", "count,sum:v,avg:v,p50:v,distinct:k,first:k,min:v"],
    "sliding": [*WINDOW, "--sliding", "20s,5s", "-g", "k"],
    "fill": [*WINDOW, "--tumbling", "5s", "-g", "k", "--fill", "prev", "-a", "count,sum:v"],
    "sessions": [*WINDOW, "--session", "5s", "-g", "k", "-a", "count,max:v,last:k"],
    "panes": [*WINDOW, "--tumbling", "10s", "-g", "k", "--allowed-lateness", "1m", "--early", "2rows"],
    "batches": [*WINDOW, "--tumbling", "10s", "--mode", "update", "--trigger", "3rows"],
    "sources": [*WINDOW, "--tumbling", "10s", "--source", "k", "--idle", "2m", "--max-jump", "1h"],
    "dedup": ["wm-dedup", "-t", "ts", "-w", "30s", "-k", "k,v"],
    "sort": ["wm-sort", "-t", "ts", "-w", "30s"],
    "join": [*JOIN, "--between", "-5s,5s", "--type", "full"],
    "asof": [*JOIN, "--asof", "backward", "--tolerance", "1m", "--type", "left"],
    "stamp": ["wm-stamp", "-t", "ts", "-w", "30s"],
    "lag": ["wm-lag", "-t", "ts", "-g", "k"],
    "lag-windows": ["wm-lag", "-t", "ts", "-w", "20s", "--every", "5s", "-g", "k"],
}
ROWS = "ts,k,v\n" + "".join(f"{100 + (i * 7) % 45},{'abc'[i % 3]},{i % 5}.5\n" for i in range(24)) + "x,a,1\n"


def hash_of():
    library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
    library.XXH3_64bits.restype = ctypes.c_uint64
    library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return lambda data: struct.pack("<Q", library.XXH3_64bits(data, len(data)))


HASH = hash_of()


def parts_of(text):
    """The header, and of each section its version and payload."""
    parts = {}
    at = 64
    while at < len(text):
        name, version, length = struct.unpack_from("<4sIQ", text, at)
        parts[name.decode()] = (version, text[at + 16:at + 16 + length])
        at += 16 + (length + 7) // 8 * 8 + 8
    return text[:56], parts


def sealed(header, parts):
    text = header + HASH(header)
    hashes = b""
    for name, (version, payload) in parts.items():
        if name == "END.":
            payload = HASH(hashes)
        section = struct.pack("<4sIQ", name.encode(), version, len(payload)) + payload + bytes(-len(payload) % 8)
        hashes += HASH(section)
        text += section + HASH(section)
    return text


def damages(rng, payload, others):
    """Pairs of what is done and what becomes of the payload."""
    for number, other in enumerate(others):
        yield f"that of another file ({number})", other
    yield "nothing in it", b""
    yield "a byte more", payload + b"\0"
    for _ in range(EACH):
        at = rng.randrange(len(payload))
        yield f"cut at {at}", payload[:at]
        value = rng.choice([payload[at] ^ 1 << rng.randrange(8), 0, 1, 127, 128, 255])
        yield f"byte {at} is {value}", payload[:at] + bytes([value]) + payload[at + 1:]
        large = rng.choice([b"\xff" * 8, b"\xff" * 9 + b"\x01", b"\x80" * 9 + b"\x01", b"\x80\x80\x80\x80\x20",
                            struct.pack("<Q", 1 << 62), struct.pack("<q", -1 << 63)])
        yield f"a large number at {at}", payload[:at] + large + payload[at + len(large):]
        yield f"a large number put in at {at}", payload[:at] + large + payload[at + 1:]


def start(name, folder):
    arguments = COMMANDS[name]
    files = ["in", "in2"] if arguments[0] == "wm-join" else ["in"]

    def limit():
        if not IS_ASAN:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    with open(folder / "out", "ab") as out:
        done = subprocess.run([str(harness.BIN / arguments[0]), *arguments[1:], "-C", "st", "-q", *files], cwd=folder,
                              stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, timeout=harness.TIMEOUT_SECONDS,
                              check=False, preexec_fn=limit,
                              env={**os.environ, "LD_PRELOAD": str(LIBRARY), "ASAN_OPTIONS": "verify_asan_link_order=0:" +
                                   "detect_leaks=0:max_allocation_size_mb=1024:" + os.environ.get("ASAN_OPTIONS", "")})
    return done.returncode, done.stderr.decode(errors="replace")


def made(name, folder):
    """A checkpoint of a run that has some of the input left to read."""
    folder.mkdir()
    lines = ROWS.splitlines(keepends=True)
    (folder / "in").write_text("".join(lines[:18]), encoding="utf-8")
    (folder / "in2").write_text("".join(lines[:15]), encoding="utf-8")
    status, errors = start(name, folder)
    if status != 0:
        raise ValueError(f"{name}: status {status}: {errors}")
    (folder / "in").write_text(ROWS, encoding="utf-8")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def fault_of(name, folder, files, text):
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for path, content in files.items():
        if not path.startswith("in"):
            (folder / path).write_bytes(content)
    (folder / "st").write_bytes(text)
    status, errors = start(name, folder)
    lines = errors.splitlines()
    # Quiet, a tool says why its status is 1, and nothing else.
    if status == 0 and not errors or status == 1 and len(lines) == 1:
        return None
    # Status 2: columns of the input have other names in it, which may be the input's fault as well.
    if status not in (2, 3, 4) or len(lines) != 1 or not re.match(r"wm-\w+: ", errors):
        return f"status {status}: {errors[:1500]}"
    if (folder / "st").read_bytes() != text:
        return None  # it was taken, and what it says of inputs or outputs came out later
    if "does not hold what belongs" in errors and "--resume prev goes back to" not in errors:
        return f"no way back is named: {errors}"
    return None


def main():
    tap = harness.Tap()
    begin = time.monotonic()
    runs = 0
    with tempfile.TemporaryDirectory(prefix="wm-damage-") as top:
        files = {name: made(name, pathlib.Path(top) / name) for name in COMMANDS}
        whole = {name: parts_of(files[name]["st"]) for name in COMMANDS}
        for name in sys.argv[1:] or COMMANDS:
            header, parts = whole[name]
            folder = pathlib.Path(top) / name
            rng = random.Random(f"{SEED} {name}")
            faults = []
            if sealed(header, parts) != files[name]["st"]:
                faults.append("put together again, the file is another one")
            for section in SECTIONS:
                version, payload = parts[section]
                others = [whole[other][1][section][1] for other in COMMANDS if other != name]
                tried = [(what, (version, text)) for what, text in damages(rng, payload, others) if text != payload]
                for what, part in [*tried, ("a later version", (version + 1, payload))]:
                    runs += 1
                    if fault := fault_of(name, folder, files[name], sealed(header, {**parts, section: part})):
                        faults.append(f"{section}, {what}: {fault}")
            tap.ok(not faults, f"{name}: a checkpoint whose sections are damaged", *faults[:FAULTS_SHOWN], f"{len(faults)} faults")
    tap.note(f"damage: {runs} files, {time.monotonic() - begin:.0f} s")
    return tap.done()


sys.exit(main())
