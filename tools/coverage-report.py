#!/usr/bin/env python3
"""usage: tools/coverage-report.py [--all] JSON LIST
       tools/coverage-report.py LIST

Prints how many of the lines and branches of each file and folder were run, from what gcovr wrote. Fails where a
folder with limits is below them, and where LIST, a Markdown page, is out of date: it names the functions of those
folders in which something is not run, in items like

    - `src/base/heap.c`: `heap_open`, `grow`

Its functions have to be there still. With --all a function in which a line or a branch is not run has to be in it, too.
What is listed may be run: some of it is run by chance. Without a JSON only that is checked, whether they are there.

It is called by tools/coverage.sh and tools/check-docs.sh from the root of the repository.
"""
import json
import pathlib
import re
import sys

LIMITS = {"src/stack": (95, 85), "src/sched": (95, 85), "src/strand": (95, 85), "src/arch": (95, 85)}
ITEM = re.compile(r"^- `(src/[^`]+)`:(.*(?:\n  .*)*)", re.MULTILINE)
NAME = re.compile(r"`(\w+)`")
ATTRIBUTE = re.compile(r"__attribute__\(\([^()]*(?:\([^()]*\))?[^()]*\)\)")
DEFINED = re.compile(r"(\w+)\(")


class Sum:
    """How much there is, and how much of it was run."""

    def __init__(self):
        self.of = self.run = 0

    def count(self, was_run):
        self.of += 1
        self.run += was_run

    def add(self, other):
        self.of += other.of
        self.run += other.run

    def percent(self):
        return 100 * self.run / self.of if self.of else 100

    def __str__(self):
        return f"{self.percent():5.1f} % of {self.of:5}"


def counted(file):
    return [line for line in file["lines"] if not line["gcovr/noncode"] and not line["gcovr/excluded"]]


def sums_of(file):
    lines, branches = Sum(), Sum()
    for line in counted(file):
        lines.count(line["count"] > 0)
        for branch in line["branches"]:
            branches.count(branch["count"] > 0)
    return lines, branches


def functions_of(path):
    """The function that each line of a source belongs to. A body begins with a brace in the first column. (gcov itself
    knows no function that is always inlined.)"""
    inside, last, functions = None, None, []
    for text in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if text.startswith("{"):
            inside = last
        elif text[:1].isalpha() or text.startswith("_"):
            found = DEFINED.search(ATTRIBUTE.sub("", text))
            last = found.group(1) if found else last
        functions.append(inside if text[:1] in ("{", "}", " ") and text.strip() else last)
        if text.startswith("}"):
            inside = last = None
    return functions


def places_of(file):
    """What is not run: function -> its lines, and its lines with such branches."""
    functions, places = functions_of(file["file"]), {}
    for line in counted(file):
        number = line["line_number"]
        lines, branches = places.setdefault(functions[number - 1], ([], []))
        if not line["count"]:
            lines.append(number)
        elif any(not branch["count"] for branch in line["branches"]):
            branches.append(number)
    return places


def listed_in(path):
    listed = {}
    for file, names in ITEM.findall(pathlib.Path(path).read_text(encoding="utf-8")):
        listed.setdefault(file, set()).update(NAME.findall(names))
    return listed


def check_names(path):
    """Returns whether it lists what is not there."""
    stale = False
    for name, functions in listed_in(path).items():
        known = set(functions_of(name)) if pathlib.Path(name).exists() else set()
        for function in sorted(functions - known):
            print(f"coverage: {path} lists {function} of {name}, which is not there")
            stale = True
    return stale


def check_list(files, path, every):
    """Returns whether it is out of date."""
    stale, listed = check_names(path), listed_in(path)
    for file in files:
        name = file["file"]
        if name.rpartition("/")[0] not in LIMITS:
            continue
        for function, (lines, branches) in places_of(file).items():
            if function in listed.get(name, ()) or not lines and not branches:
                continue
            what = f"lines {lines}" if lines else f"branches of lines {branches}"
            if every:
                print(f"coverage: not run, and not in {path}: {name}, {function}, {what}")
                stale = True
    return stale


def main(every, path, page):
    with open(path, encoding="utf-8") as stream:
        files = json.load(stream)["files"]
    folders, status = {}, 0
    for file in files:
        sums = sums_of(file)
        print(f"{file['file']:28} {sums[0]} lines {sums[1]} branches")
        folder = folders.setdefault(file["file"].rpartition("/")[0], (Sum(), Sum()))
        for total, part in zip(folder, sums):
            total.add(part)
    print()
    status |= check_list(files, page, every)
    for name, sums in folders.items():
        limits = LIMITS.get(name, (0, 0))
        low = any(part.percent() < limit for part, limit in zip(sums, limits))
        wanted = f"  at least {limits[0]} and {limits[1]}" if name in LIMITS else ""
        print(f"{name:28} {sums[0]} lines {sums[1]} branches{wanted}{': MISSED' if low else ''}")
        status |= low
    return status


if __name__ == "__main__":
    if len(sys.argv) == 2:
        sys.exit(check_names(sys.argv[1]))
    ALL = sys.argv[1] == "--all"
    sys.exit(main(ALL, *sys.argv[1 + ALL :]))
