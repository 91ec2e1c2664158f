#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the fuzz targets that clang has built, each for some minutes; print executions and finds.

    tests/fuzz/fuzz.py MINUTES [TARGET...]      (make fuzz MINUTES=10)

A target begins with its kept corpus, tests/fuzz/corpus/TARGET, and with all that it came by before, which stays in
build/fuzz/corpus-TARGET. What ends it is kept in build/fuzz/found-TARGET, named and counted; then it goes on.
WM_JOBS=2 runs two targets at once. The exit status is 1 if anything was found.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/fuzz"
CORPORA = ROOT / "tests/fuzz/corpus"
FINDS_MAX = 5


def words_of(target):
    """A dictionary of the words that its corpus has is of no use to libFuzzer; bounds of time and memory are."""
    return ["-timeout=20", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-print_final_stats=1", "-verbosity=1",
            "-max_len=65536" if target == "records" else "-max_len=8192", f"-artifact_prefix={BUILD}/found-{target}/"]


def run(target, seconds):
    """Executions, coverage, and what was found."""
    for name in ("corpus", "found"):
        (BUILD / f"{name}-{target}").mkdir(parents=True, exist_ok=True)
    before = set((BUILD / f"found-{target}").iterdir())
    end = time.monotonic() + seconds
    executions = 0
    covered = 0
    finds = []
    while len(finds) < FINDS_MAX and (left := int(end - time.monotonic())) > 0:
        done = subprocess.run([str(BUILD / f"libfuzzer_{target}"), f"-max_total_time={left}", *words_of(target),
                               str(BUILD / f"corpus-{target}"), str(CORPORA / target)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
                              env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        said = done.stderr.decode(errors="replace")
        executions += sum(map(int, re.findall(r"stat::number_of_executed_units: (\d+)", said)))
        covered = max([covered, *map(int, re.findall(r"cov: (\d+)", said))])
        if done.returncode == 0:
            break
        law = re.search(r"broken: .*|runtime error: .*|ERROR: .*", said)
        finds.append(law[0] if law else said[-300:])
    new = sorted(str(path.relative_to(ROOT)) for path in set((BUILD / f"found-{target}").iterdir()) - before)
    return executions, covered, finds, new


def main():
    minutes = float(sys.argv[1])
    targets = sys.argv[2:] or sorted(path.name for path in CORPORA.iterdir())
    has_found = False
    print(f"{'target':12}{'executions':>14}{'edges':>8}{'finds':>7}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WM_JOBS", "1"))) as pool:
        for target, (executions, covered, finds, new) in zip(targets, pool.map(lambda name: run(name, minutes * 60), targets)):
            has_found = has_found or bool(finds)
            print(f"{target:12}{executions:14,}{covered:8,}{len(finds):7}", flush=True)
            for find, name in zip(finds, [*new, *[""] * len(finds)]):
                print(f"    {find}  {name}", flush=True)
    return 1 if has_found else 0


sys.exit(main())
