#!/usr/bin/env python3
"""usage: tools/check-labels.py

A label, as [K1] or [SD2], names an invariant or a pairing of a protocol. A protocol block in src/ defines the label by
a sentence that begins with it. A sentence of ORDERING defines only a label that no other section defines. Every other
place uses the label. The check fails on
  - a label that is used in src/, include/, docs/ or tests/, and not defined;
  - a label that is defined twice, and a letter, or a pair of letters, that two protocols use;
  - a label that is defined, and that no comment in src/ outside of the blocks carries;
  - an ordered atomic operation without a label: a fence, arch_membarrier, or an operation that is not relaxed. The
    label is in a comment beside the statement, or directly above it;
  - a mutant without a line `# breaks: WHAT` in its head: labels, ids of rules, or "contract" and a statement's number,
    with commas between them; or whose line `# found by: WAY NAME` names no test;
  - a label that more than two mutants break, or none, unless tests/mutants/unplanted says why.
"""
import bisect
import collections
import pathlib
import re
import subprocess
import sys

LABEL = re.compile(r"\[([A-Z]{1,2})([1-9][0-9]?)\]")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
BLOCK = re.compile(r"^ \* (?:INVARIANTS?|ORDERING)\b", re.MULTILINE)
SECTION = re.compile(r"^ \* ([A-Z][A-Z]{3,}(?: [A-Z]+)*)\b", re.MULTILINE)
BEGINS = re.compile(r"(?:^|[.;:] )" + LABEL.pattern + r"(?= [^.,;:)])")
BREAKS = re.compile(r"^# breaks: (.*)$", re.MULTILINE)
FOUND = re.compile(r"^# found by: (sim|test|fault)(?:-steps)? (\w+)$", re.MULTILINE)
FAULT = re.compile(r"^FAULT_WORKLOAD\w*\((\w+)", re.MULTILINE)
UNPLANTED = "tests/mutants/unplanted"
MODEL = re.compile(r"(tests/models/\w+\.pml) (-D.*)$")
ENTRY = re.compile(r"^([A-Z]-\d\d|\d+\.\d+) \S", re.MULTILINE)
# Their callers' lines have the labels, since each word that they change has its own protocol.
WRAPPERS = r"swap_word|swap_guessed_word|swap_ends"
ORDERED = re.compile(r"\bmemory_order_(?:acquire|release|acq_rel|seq_cst)\b|\barch_membarrier\(\)|\b(?:" + WRAPPERS + r")\(")
WRAPPER = re.compile(r"\bbool (?:" + WRAPPERS + r")\([^;{}]*\)\s*\{.*?^\}", re.DOTALL | re.MULTILINE)
# Blocks that define labels of one protocol together: a prefix may be defined in each of them.
SHARED = {
    frozenset({"src/sched/idle.h", "src/sched/seek.c"}),
    frozenset({"src/sched/shared_fibre.h", "src/stack/shared.h"}),
    frozenset({"src/io/crew.h", "src/io/offload.c"}),
}


def files_of(*folders):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--"] + list(folders),
                            capture_output=True, text=True, check=True)
    kinds = re.compile(r"\.(?:c|h|cc|S|md|pml|patch)$")
    return [f for f in listed.stdout.split("\n") if kinds.search(f) and pathlib.Path(f).exists()]


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def sections(block):
    """Yields (name, text, where the section begins) of a protocol block."""
    starts = list(SECTION.finditer(block))
    for match, after in zip(starts, starts[1:] + [None]):
        body = block[match.end():after.start() if after else len(block)]
        yield match.group(1), re.sub(r"\n \*\s*", " ", body).strip(), match.start()


class Labels:
    """Where each label is defined, explained, used and carried by code."""

    def __init__(self):
        self.defined = collections.defaultdict(list)
        self.ordering = collections.defaultdict(list)
        self.used = collections.defaultdict(list)
        self.carried = set()

    def read_block(self, path, text, comment):
        for name, body, at in sections(comment.group()):
            line = text.count("\n", 0, comment.start() + at) + 1
            for match in BEGINS.finditer(body):
                label = match.group(1) + match.group(2)
                (self.ordering if name == "ORDERING" else self.defined)[label].append((path, line))

    def read_source(self, path):
        text = read(path)
        blocks = []
        for comment in COMMENT.finditer(text):
            if BLOCK.search(comment.group()):
                blocks.append(comment.span())
                self.read_block(path, text, comment)
        for match in LABEL.finditer(text):
            if not any(start <= match.start() < end for start, end in blocks) and in_comment(text, match.start()):
                self.carried.add(match.group(1) + match.group(2))
                self.use(path, text, match)
            elif in_comment(text, match.start()):
                self.use(path, text, match)

    def read_other(self, path):
        text = read(path)
        for match in LABEL.finditer(text):
            self.use(path, text, match)

    def use(self, path, text, match):
        self.used[match.group(1) + match.group(2)].append((path, text.count("\n", 0, match.start()) + 1))

    def settle(self):
        """A label that only ORDERING sections begin with is defined there."""
        for label, places in self.ordering.items():
            if label not in self.defined:
                self.defined[label] = places


def in_comment(text, at):
    return text.rfind("/*", 0, at) > text.rfind("*/", 0, at) or "//" in text[text.rfind("\n", 0, at) + 1:at]


def faults(labels):
    for label, places in sorted(labels.used.items()):
        if label not in labels.defined:
            for path, line in places:
                yield f"{path}:{line}: [{label}] is not defined"
    prefixes = collections.defaultdict(set)
    for label, places in sorted(labels.defined.items()):
        prefixes[re.match(r"[A-Z]+", label).group()].update(path for path, _ in places)
        if len(places) > 1:
            yield f"[{label}] is defined more than once: " + ", ".join(f"{path}:{line}" for path, line in places)
        if label not in labels.carried:
            yield f"{places[0][0]}:{places[0][1]}: no code carries [{label}]"
    for prefix, paths in sorted(prefixes.items()):
        if len(paths) > 1 and not any(paths <= together for together in SHARED):
            yield f"labels [{prefix}...] belong to several protocols: " + ", ".join(sorted(paths))


def bare(text):
    """The text with comments, strings and wrappers blank, and of the same length."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return WRAPPER.sub(blank, TEXT.sub(blank, text))


def operations(path):
    """Yields the line of each ordered operation that has no label."""
    text = read(path)
    code = bare(text)
    ends = [match.start() for match in re.finditer("\n", text)]
    lines = text.split("\n")

    def line_of(at):
        return bisect.bisect_left(ends, at)

    for match in ORDERED.finditer(code):
        begin = max(code.rfind(mark, 0, match.start()) for mark in ";{}") + 1
        begin = begin + len(code[begin:]) - len(code[begin:].lstrip())
        end = re.compile(r"[;{]|\n(?=#|\Z)").search(code, match.end())
        first, last = line_of(begin), line_of(end.start() if end else len(code))
        beside = "\n".join(lines[first:last + 1])
        if LABEL.search(beside) or LABEL.search(above(lines, first)):
            continue
        yield line_of(match.start()) + 1


def above(lines, first):
    """The comment that ends in the line before this one."""
    if first == 0 or not lines[first - 1].rstrip().endswith("*/"):
        return ""
    begin = first - 1
    while begin > 0 and not lines[begin].lstrip().startswith("/*"):
        if ";" in lines[begin] and "/*" in lines[begin]:
            return ""
        begin -= 1
    return "\n".join(lines[begin:first])


def unplanted(labels):
    """Returns the labels of tests/mutants/unplanted, and its faults."""
    reasons, found = {}, []
    for line in read(UNPLANTED).split("\n"):
        if not line or line.startswith("#"):
            continue
        label, _, reason = line.partition(": ")
        if label not in labels.defined or label in reasons or not reason:
            found.append(f"{UNPLANTED}: '{line}' is not LABEL: REASON, each label once")
        model = MODEL.match(reason)
        if model and not re.search(rf"must (?:fail|stall)[^:]*: {re.escape(model.group(2))} \*/", read(model.group(1))):
            found.append(f"{UNPLANTED}: {model.group(1)} does not say that it must fail or stall with {model.group(2)}")
        reasons[label] = reason
    return reasons, found


def finders_in(folder):
    """Yields what the head of a mutant may name: a way, and a test or workload."""
    for way, files in (("sim", "sim/*.c"), ("test", "spec/*.c*"), ("fault", "fault/*.c")):
        for path in pathlib.Path(folder).glob(files):
            yield from ((way, name) for name in (FAULT.findall(read(path)) if way == "fault" else [path.stem]))


def mutants(labels):
    """Yields the faults of the mutants' heads, and the labels that have none or too many."""
    reasons, found = unplanted(labels)
    yield from found
    broken, tests = collections.Counter(), set(finders_in("tests"))
    entries = ENTRY.findall(read("docs/conformance.txt"))
    known = set(labels.defined) | {f"contract {e}" if e[0].isdigit() else e for e in entries}
    for path in sorted(pathlib.Path("tests/mutants").glob("*.patch")):
        head = read(path).split("\n--- ")[0]
        lines, finders = BREAKS.findall(head), FOUND.findall(head)
        if len(finders) != 1 or finders[0] not in tests:
            yield f"{path}: its head does not say once, by the name of a test, what finds it"
        if len(lines) != 1:
            yield f"{path}: its head does not say once what it breaks"
        for name in ", ".join(lines).split(", ") if lines else []:
            if name not in known:
                yield f"{path}: breaks '{name}', which is no label, rule or statement of the contract"
            broken[name] += 1
    for label in sorted(labels.defined):
        if broken[label] > 2:
            yield f"{broken[label]} mutants break [{label}]: one or two of different kinds are enough"
        if not broken[label] and label not in reasons:
            yield f"no mutant breaks [{label}], and {UNPLANTED} does not say why"
        if broken[label] and label in reasons:
            yield f"a mutant breaks [{label}], which {UNPLANTED} lists"


def main():
    sources = [f for f in files_of("src") if re.search(r"\.[ch]$", f)]
    labels, status = Labels(), 0
    for path in sources:
        labels.read_source(path)
    for path in files_of("include", "docs", "tests"):
        labels.read_other(path)
    labels.settle()
    found = list(faults(labels)) + list(mutants(labels))
    for path in sources:
        if path != "src/base/atomic.h":
            found += [f"{path}:{line}: an ordered atomic operation without a label" for line in operations(path)]
    for fault in found:
        print(f"labels: {fault}")
        status = 1
    if status == 0:
        print(f"labels: ok ({len(labels.defined)} labels)")
    return status


sys.exit(main())
