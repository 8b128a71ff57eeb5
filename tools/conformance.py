#!/usr/bin/env python3
"""usage: tools/conformance.py [--check]

Writes docs/conformance.md from tags at the tests and from docs/conformance.txt, which is kept by hand. --check writes
nothing: it fails if the page differs from what would be written, and on every error below.

A tag is a comment of its own line that lists what a test proves: ids of rules, then the word contract and statements
of the contract, each by its section and number.

    /* S-07, contract 8.1, 8.2 */        in C, C++ and Promela
    # V-01, contract 1.2                 in scripts

A tag stands directly above a test: a TEST macro, a case of misuse (tests/programs/cases.h), or a function of
tests/unit. Long lists are several tags. A tag among the comments at the head of a file belongs to the whole file: to a
model, to a check, or to all tests of the file. A comment that begins like a tag and is none is an error, and so is a
tag at another place, or one with an unknown id.

docs/conformance.txt has a block for each rule and each statement:

    S-07 The rule, in short.
      mechanism: the mechanism of this library, where the rule names one.
      note: a further fact for the reader.
      as: X-01, S-62 to S-65           what proves these, proves this one too
      none: the reason why no test proves it

Lines of `== NAME` and `-- NAME` are headings. The text and a field may continue on lines that are indented by four
spaces. An entry without proof needs `none`, and one with proof must not have it.

The tests and files that docs/conformance.txt and docs/misuse.md name, as `FILE` or `FILE: TEST`, exist.
"""
import collections
import itertools
import pathlib
import re
import sys
import textwrap

SOURCE = pathlib.Path("docs/conformance.txt")
PAGE = pathlib.Path("docs/conformance.md")
MISUSE = pathlib.Path("docs/misuse.md")
FOLDERS = ["bench", "tests", "tools"]
KINDS = {".c", ".cc", ".h", ".pml", ".py", ".sh"}
SCRIPTS = {".py", ".sh"}
WIDTH = 120

RULE = r"[A-Z]-\d\d"
STATEMENT = r"\d+\.\d+"
TAG = re.compile(rf"(?:{RULE}(?:, {RULE})*(?:, contract {STATEMENT}(?:, {STATEMENT})*)?"
                 rf"|contract {STATEMENT}(?:, {STATEMENT})*)")
# What begins like a tag: a typing error must not turn a tag into a comment.
LIKE_TAG = re.compile(r"(?i)[a-z] ?[-_] ?\d{1,3}\b|contract ?[§\d]|(?:[a-z]\d{1,3}|§? ?\d+\.\d+)(?:,|;|$)")
TEST = re.compile(r"(?:TEST(?!_OWN_STACKS)[A-Z_]*|(?:NO_)?MISUSE[A-Z_]*)\((\w+)")
FUNCTION = re.compile(r"static void (\w+)\([^;]*$")
ENTRY = re.compile(rf"({RULE}|{STATEMENT}) (\S.*)")
FIELD = re.compile(r"  (mechanism|note|as|none): (\S.*)")
NAMED = re.compile(r"`((?:bench|docs|examples|include|src|tests|tools)/[^` ]*?)(?:: (\w+))?`")

INTRODUCTION = """\
<!-- Generated: change docs/conformance.txt or a tag at a test, then run make conformance. -->
# Conformance

This page lists every rule and every statement of the contract, in short, with the tests that prove it. The contract
settles how the rules are read together; where the two differ, the contract counts. The statements of the contract have
the number of their section and a number of their own.

A rule about a mechanism is proven by what can be observed. *Mechanism* names the mechanism of this library.

A line with a file and names lists tests of that file. A file without names proves the rule as a whole:

- `tests/spec` runs on every scheduler, on one thread and on several, and under seeds, except where a test needs real
  threads or clocks. `tests/stress` runs on every scheduler and number of threads (`tools/run-tests.sh`).
- `tests/sim` is checked under many seeds (`make sim`), `tests/models` by exhaustive search (`make models`).
- `tests/programs` has the cases of misuse, which `tests/spec/misuse.c` runs.
- A file of `tests/reject` must not compile. `tests/httpd` drives the server of `examples/httpd` from outside.
- A file of `tools` is a part of `make check` or `make test`. A file of `bench` measures.

[testing.md](testing.md#tags) says how a test gets its tag.
"""


class Conformance:
    def __init__(self):
        self.errors = []
        self.parts = []  # (level, heading) or an id, in the order of the source
        self.entries = {}  # id: {"text": ..., field: ...}
        self.proofs = collections.defaultdict(lambda: collections.defaultdict(set))  # id: file: names
        self.tags = 0
        self.tests = {}  # file: names of its tests

    def complain(self, text):
        self.errors.append(text)

    # ---- the source ------------------------------------------------------------------------------------------------

    def read_source(self):
        entry = field = None
        for number, line in enumerate(SOURCE.read_text(encoding="utf-8").split("\n"), 1):
            where = f"{SOURCE}:{number}"
            if not line or line.startswith("#"):
                entry = field = None
            elif line[:3] in ("== ", "-- "):
                self.parts.append((2 if line[0] == "=" else 3, line[3:]))
            elif match := ENTRY.fullmatch(line):
                name, text = match.groups()
                if name in self.entries:
                    self.complain(f"{where}: {name} is there already")
                entry, field = self.entries.setdefault(name, {"text": text}), "text"
                self.parts.append(name)
            elif entry is not None and (match := FIELD.fullmatch(line)):
                field = match.group(1)
                if field in entry:
                    self.complain(f"{where}: the entry has '{field}' already")
                entry[field] = match.group(2)
            elif entry is not None and field and line.startswith("    "):
                entry[field] += " " + line.strip()
            else:
                self.complain(f"{where}: this is neither a heading nor an entry nor one of its fields")

    def ids(self, name, text):
        """The entries of a field 'as'."""
        known = list(self.entries)
        for item in text.split(", "):
            first, _, last = item.partition(" to ")
            if first not in self.entries or (last and last not in self.entries):
                self.complain(f"{SOURCE}: {name} is 'as: {item}', which is not an entry or a range of entries")
            else:
                yield from known[known.index(first):known.index(last or first) + 1]

    # ---- the tags --------------------------------------------------------------------------------------------------

    def read_tests(self):
        for folder in FOLDERS:
            for path in sorted(pathlib.Path(folder).rglob("*")):
                if path.suffix in KINDS and path.is_file():
                    self.read_tests_of(path.as_posix(), path.suffix in SCRIPTS)

    def read_tests_of(self, file, script):
        text = pathlib.Path(file).read_text(encoding="utf-8")
        lines = text.split("\n")
        test = FUNCTION if file.startswith("tests/unit/") else TEST
        self.tests[file] = {match.group(1) for line in lines if (match := test.match(line))}
        head = self.length_of_head(lines, script)
        pending = []
        for number, line in enumerate(lines):
            tag = self.tag_of(f"{file}:{number + 1}", line, script)
            if tag and number < head:
                self.prove(file, number, tag, None)
            elif tag:
                pending.append((number, tag))
            elif pending:
                if match := test.match(line):
                    for at, ids in pending:
                        self.prove(file, at, ids, match.group(1))
                else:
                    self.complain(f"{file}:{pending[-1][0] + 1}: no test follows this tag. A tag stands directly above "
                                  "a test, or in the comments at the head of the file")
                pending = []

    @staticmethod
    def length_of_head(lines, script):
        """How many lines there are before the first that is code or empty. A comment above a test is no head."""
        inside = False
        for number, line in enumerate(lines):
            if script:
                comment = line.startswith("#")
            else:
                comment = inside or line.startswith("/*")
                inside = comment and "*/" not in line
            if not comment:
                return 0 if TEST.match(line) else number
        return len(lines)

    def tag_of(self, where, line, script):
        """The ids of a tag, or None."""
        stripped = line.strip()
        if script:
            comment = line[1:] if line.startswith("#") else None
        else:
            comment = stripped[2:].removesuffix("*/") if stripped.startswith("/*") else None
        if comment is None:
            return None
        comment = comment.strip()
        if TAG.fullmatch(comment) and line == (f"# {comment}" if script else f"/* {comment} */"):
            return re.findall(rf"{RULE}|{STATEMENT}", comment)
        if LIKE_TAG.match(comment):
            self.complain(f"{where}: '{stripped}' begins like a tag and is none. A tag lists ids only, as "
                          "/* S-07, contract 8.1, 8.2 */ on a line of its own; a remark is a comment above it")
        return None

    def prove(self, file, number, ids, test):
        where = f"{file}:{number + 1}"
        for name in ids:
            if name not in self.entries:
                self.complain(f"{where}: the tag names {name}, which {SOURCE} does not have: correct the id, or add an "
                              "entry")
            elif test in self.proofs[name][file]:
                self.complain(f"{where}: the tag names {name} twice")
            self.proofs[name][file].add(test)
            self.tags += 1

    # ---- what has to hold --------------------------------------------------------------------------------------------

    def proven(self, name, asking=()):
        if self.proofs.get(name):
            return True
        others = self.entries[name].get("as")
        return name not in asking and bool(others) and all(
            self.proven(other, (*asking, name)) for other in self.ids(name, others))

    def check_entries(self):
        for name, entry in self.entries.items():
            proven = self.proven(name)
            if not proven and "none" not in entry:
                self.complain(f"{SOURCE}: no test proves {name} ({entry['text']}): add a tag to the test that does, or "
                              "'none:' with the reason to the entry")
            elif proven and "none" in entry:
                self.complain(f"{SOURCE}: {name} has 'none:', and a tag or 'as:' proves it: remove one of them")

    def check_names(self):
        """Returns how many tests docs/misuse.md names."""
        count = 0
        for page in (SOURCE, MISUSE):
            for file, test in dict.fromkeys(NAMED.findall(page.read_text(encoding="utf-8"))):
                if not pathlib.Path(file).exists():
                    self.complain(f"{page}: {file} is named, which does not exist")
                elif test and test not in self.tests.get(file, ()):
                    self.complain(f"{page}: the test {test} is named, which is not in {file}")
                count += bool(test)
        return count

    # ---- the page --------------------------------------------------------------------------------------------------

    def page(self):
        """Yields paragraphs, and pieces of lists."""
        yield INTRODUCTION + "\n"
        yield from self.summary()
        entry = False
        for part in self.parts:
            if isinstance(part, tuple):
                level, heading = part
                yield ("\n" if entry else "") + f"{'#' * level} {'§' if heading[0].isdigit() else ''}{heading}\n\n"
            else:
                yield from self.block(part)
            entry = not isinstance(part, tuple)

    def summary(self):
        rules = sum(name[0].isalpha() for name in self.entries)
        missing = [name for name, entry in self.entries.items() if "none" in entry]
        yield "## Without proof\n\n"
        yield filled(f"No test proves {len(missing)} of the {rules} rules and {len(self.entries) - rules} statements "
                     "of the contract:") + "\n"
        by_reason = collections.defaultdict(list)
        for name in missing:
            by_reason[self.entries[name]["none"]].append(name)
        for reason, names in by_reason.items():
            yield filled(f"- {', '.join(names)}: {reason}", "  ")
        yield "\n"

    def block(self, name):
        entry = self.entries[name]
        text = f"- **{name}** {entry['text']}"
        for field, label in (("mechanism", "*Mechanism:* "), ("note", "*Note:* "), ("none", "*No test:* ")):
            if field in entry:
                text += f" {label}{entry[field]}"
        yield filled(text, "  ")
        proofs = self.proofs.get(name, {})
        whole = [f"`{file}`" for file in sorted(proofs) if None in proofs[file]]
        if "as" in entry:
            whole.insert(0, f"the tests of {entry['as']}")
        if whole:
            yield filled(f"    - {', '.join(whole)}", "      ")
        for file in sorted(proofs):
            if None not in proofs[file]:
                yield filled(f"    - `{file}`: {', '.join(f'`{test}`' for test in sorted(proofs[file]))}", "      ")


def filled(text, indent=""):
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


def first_difference(page):
    """The first line at which the committed page differs, or None."""
    committed = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    lines = itertools.zip_longest(committed.split("\n"), page.split("\n"))
    return next((number for number, (old, new) in enumerate(lines, 1) if old != new), None)


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    found = Conformance()
    found.read_source()
    found.read_tests()
    found.check_entries()
    named = found.check_names()
    page = "".join(found.page()) if not found.errors else None
    if not arguments and page:
        PAGE.write_text(page, encoding="utf-8")
    elif page and (line := first_difference(page)):
        found.complain(f"{PAGE}:{line} is not what the tags and {SOURCE} say: run make conformance, and commit the page")
    for error in found.errors:
        print(f"conformance: {error}")
    if found.errors:
        sys.exit(1)
    print(f"conformance: ok ({len(found.entries)} entries, {found.tags} tags, {named} tests named in {MISUSE})")


if __name__ == "__main__":
    main(sys.argv[1:])
