#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Break one line of the code, see a test fail, and take the next: do the tests notice?

    tests/mutants/mutants.py             all of table.py (make mutants)
    tests/mutants/mutants.py REGEX       those whose name or file matches
    tests/mutants/mutants.py --check     only whether each text stands in its file once; builds nothing

The tree is copied into build/mutants, where each mutant is built without LTO, the program of tests that must catch it is
run, and the line is put back. A program that fails without a mutant catches nothing, so each is run on the whole tree first.
The exit status is 1 if a mutant was not caught, does not build, or no longer fits its file.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from table import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TREE = ROOT / "build/mutants"
BIN = "build/dev"
SECONDS = 300


def misfit(mutant):
    """None if the text of a mutant stands in its file once, else what is wrong."""
    name, file, text, replacement, _ = mutant
    path = ROOT / file
    count = path.read_text(encoding="utf-8").count(text) if path.exists() else 0
    if count != 1:
        return f"{name}: its text stands {count} times in {file}: correct it in tests/mutants/table.py: {text}"
    return f"{name}: changes nothing" if text == replacement else None


def copy_tree():
    """The files of the project as they are, those that are unchanged with their times."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE, check=True,
                           encoding="utf-8").stdout.splitlines()
    for name in names:
        source, target = ROOT / name, TREE / name
        if not source.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy(source, target)
    for path in [path for top in ("cmd", "lib", "tests") for path in (TREE / top).rglob("*")]:
        if path.is_file() and str(path.relative_to(TREE)) not in names:
            path.unlink()


def run(command, is_in_group=True):
    """The exit status of a command in the tree, and what it printed; None if it did not end."""
    process = subprocess.Popen([str(part) for part in command], cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", start_new_session=is_in_group,
                               env={**os.environ, "WM_BIN": str(TREE / BIN)})
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return None, "it did not end"
    return process.returncode, output


def build(catcher):
    kind, name = catcher.split()[:2]
    target = [f"{BIN}/unit/test_{name}"] if kind == "unit" else ["all", *[f"{BIN}/tests/fault/{library}.so" for library in
                                                                         ("fail_at", "fail_memory", "kill_at", "short_reads")]]
    return run(["make", "-s", f"-j{os.environ.get('WM_JOBS', '2')}", "VARIANT=dev", *target])


def catch(catcher):
    """Whether a program of tests fails; and its first fault."""
    kind, *words = catcher.split()
    command = {"unit": lambda: [f"{BIN}/unit/test_{words[0]}"],
               "bats": lambda: ["bats", "--tap", *(["-f", words[1]] if words[1:] else []), f"tests/{words[0]}.bats"],
               "python": lambda: ["python3", f"tests/{words[0]}", *words[1:]]}[kind]()
    status, output = run(command)
    fault = next((line for line in output.splitlines() if line.startswith("not ok")), "")
    return status != 0, fault or ("" if status == 0 else f"status {status}")


def main():
    misfits = [fault for mutant in MUTANTS if (fault := misfit(mutant))]
    if misfits or sys.argv[1:] == ["--check"]:
        print("\n".join(misfits) or f"{len(MUTANTS)} mutants fit")
        return 1 if misfits else 0
    pattern = re.compile(sys.argv[1] if sys.argv[1:] else "")
    chosen = [mutant for mutant in MUTANTS if pattern.search(mutant[0]) or pattern.search(mutant[1])]
    copy_tree()
    for catcher in dict.fromkeys(mutant[4] for mutant in chosen):
        status, output = build(catcher)
        if status != 0:
            sys.exit(f"the tree does not build:\n{output[-2000:]}")
        fails, fault = catch(catcher)
        if fails:
            sys.exit(f"{catcher} fails without a mutant: {fault}")
    counts = {"caught": 0, "NOT caught": 0, "does not build": 0}
    for name, file, text, replacement, catcher in chosen:
        begin = time.monotonic()
        path = TREE / file
        whole = path.read_text(encoding="utf-8")
        try:
            path.write_text(whole.replace(text, replacement), encoding="utf-8")
            status, output = build(catcher)
            fails, fault = catch(catcher) if status == 0 else (False, output[:600])
        finally:
            path.write_text(whole, encoding="utf-8")
        verdict = "does not build" if status != 0 else "caught" if fails else "NOT caught"
        counts[verdict] += 1
        print(f"{verdict:14}  {name:40}  {file:24}  {catcher}  ({time.monotonic() - begin:.0f} s)", flush=True)
        if verdict != "caught" or fault:
            print(f"    {fault[:200]}" if verdict == "caught" else f"    {fault}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 0 if counts["caught"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
