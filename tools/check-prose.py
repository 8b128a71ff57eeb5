#!/usr/bin/env python3
"""usage: tools/check-prose.py [--list] [FILE|FOLDER...]
       tools/check-prose.py --write

Finds the patterns that house style forbids in what people read: documents, comments, messages and the names of tests.
tests/prose/remaining has, for each file that has not been rewritten yet, how many there are. The check fails where a
file has more than that. --write notes the numbers of today, which may only be lower. With FILE or FOLDER, only these
files are read. --list prints every place, also those that are allowed to remain.

ALLOWED has the exceptions, with reasons.
"""
import pathlib
import re
import subprocess
import sys

REMAINING = pathlib.Path("tests/prose/remaining")

# name, pattern, what to write instead
PATTERNS = [
    ("who", r"(?:^|[.;:,(/] |\b(?:but|and|or|so|as|than|if|when|what|by|for|of|to|from|with) )who\b(?! (?:cancelled|waits for whom)\b)",
     "a noun: the caller, the owner, the waiter, a strand that ..."),
    ("whoever", r"\bwhoever\b", "a noun: the caller, the owner, the waiter, a strand that ..."),
    ("what-else", r"\bwhat else\b", "a noun: other work, other descriptors, the rest of ..."),
    ("told", r"\b(?:is|are|was|were|be|been) told\b", "returns, throws, reports, is notified"),
    ("had", r"\b(?:is|are|can be|could be|may be|be) had\b", "is available"),
    ("of-first", r"(?:(?:^|\. )(?-i:O)|[:;] o)f (?:those|a|an|the|several|what|its|all|these|many|two|each|one|both)\b(?![^.]{0,12}\?)",
     "the subject first"),
    ("is-to", r"\b(?:is|are|was|were) to (?:be|do|have|run|go|come|give|take|wait|end)\b", "must, or the active voice"),
    ("comes-to", r"\bcomes? to be\b|\b(?:it is|is it) none of\b", "becomes; is not"),
    ("anew", r"\banew\b", "again"),
    ("in-vain", r"\bin vain\b", "without success"),
    ("way", r"\b(?:gives?|gave|giving|given) way\b", "yields"),
    ("people", r"\bfor people\b", "diagnostics only"),
    ("he", r"\b(?:he|him|himself)\b(?!\\)", "it"),
    ("same-of", r"\bthe same of\b", "likewise for"),
    ("opened", r"\bopened (?:fibre|strand)s?\b", "shared fibre"),
]
PATTERNS = [(name, re.compile(pattern, re.IGNORECASE), instead) for name, pattern, instead in PATTERNS]

# A text that one of the patterns finds and that is right, and why.
ALLOWED = {
    "who waits for whom": "a question, the name of the graph of waits",
    "who cancelled": "a question: two fields of the reason",
}

KINDS = re.compile(r"\.(?:c|h|cc|S|md|sh|py|pml|def|7)$|(?:^|/)(?:Makefile|run)$")
FOLDERS = ["README.md", "CHANGELOG.md", "Makefile", "docs", "include", "src", "examples", "tests", "bench", "tools", ".ci"]
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|\bTEST\w*\(\w+", re.DOTALL)


def joined(text, margin):
    """The paragraphs of a text, each in a line of its own."""
    lines = [re.sub(margin, "", line).rstrip() for line in text.split("\n")]
    return re.sub(r"\n(?=\S)", " ", "\n".join(lines)).replace("  ", " ")


def of_c(text):
    for match in COMMENT.finditer(text):
        found, margin = match.group(), r"^[\s/*]*"
        if found.startswith("TEST"):
            found = found.split("(")[1].replace("_", " ")
        elif found.startswith('"'):
            found, margin = found[1:-1].replace("\\n", " "), r"^\s*"
        yield match.start(), joined(found.removeprefix("/*").removesuffix("*/"), margin)


def of_markdown(text):
    bare = re.sub(r"^```.*?^```|`[^`\n]*`|^    [^\n]*$", lambda code: re.sub(r"[^\n]", "_", code.group()), text,
                  flags=re.DOTALL | re.MULTILINE)
    for match in re.finditer(r"(?:^.+\n?)+", bare, re.MULTILINE):
        for cell in re.finditer(r"[^|]+", match.group()):
            yield match.start() + cell.start(), joined(cell.group(), r"^[\s*>#-]*")


def of_script(text):
    for match in re.finditer(r"(?:^[ \t]*#.*\n)+|[ \t]#.*|\"\"\".*?\"\"\"", text, re.MULTILINE | re.DOTALL):
        yield match.start(), joined(match.group().strip('"'), r"^[\s#]*")


def of_roff(text):
    """A paragraph ends at a request that is not one of fonts. Examples are left out."""
    bare = re.sub(r"^\.EX$.*?^\.EE$", lambda code: re.sub(r"[^\n]+", ".EX", code.group()), text, flags=re.DOTALL | re.MULTILINE)
    for match in re.finditer(r"(?:^(?:\.[BIR]{1,2} |[^.\n]).*\n?)+", bare, re.MULTILINE):
        yield match.start(), joined(re.sub(r"\\f[A-Z]|\\(?=[-&])|\"", "", match.group()), r"^(?:\.[BIR]{1,2} )?\s*")


def is_allowed(text, match):
    """Whether the match overlaps a text of ALLOWED. A text that only stands near it allows nothing."""
    return any(exception.start() < match.end() and match.start() < exception.end()
               for allowed in ALLOWED for exception in re.finditer(re.escape(allowed), text))


def places_of(path):
    """Yields (line, name of the pattern, the text around it)."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    reader = of_markdown if path.endswith(".md") else of_roff if path.endswith(".7") else of_c if re.search(r"\.(c|h|cc|S|pml|def)$", path) else of_script
    for at, found in reader(text):
        for name, pattern, _ in PATTERNS:
            for match in pattern.finditer(found):
                if not is_allowed(found, match):
                    around = found[max(0, match.start() - 30):match.end() + 40].replace("\n", " ")
                    yield text.count("\n", 0, at) + found.count("\n", 0, match.start()) + 1, name, around.strip()


def remaining():
    lines = REMAINING.read_text(encoding="utf-8").splitlines() if REMAINING.exists() else []
    return {path: int(count) for count, path in (line.split() for line in lines if not line.startswith("#"))}


def main(arguments):
    options = {a for a in arguments if a.startswith("--")}
    named = [a for a in arguments if not a.startswith("--")]
    folders = [a for a in named if pathlib.Path(a).is_dir()]
    files = [a for a in named if a not in folders]
    if folders or not named:
        listed = subprocess.run(["git", "ls-files", "--"] + (folders or FOLDERS), capture_output=True, text=True,
                                check=True)
        files += [f for f in listed.stdout.split("\n") if KINDS.search(f)]
    files = [f for f in files if f != "tools/check-prose.py" and pathlib.Path(f).exists()]
    found = {path: list(places_of(path)) for path in files}
    allowed, status = remaining(), 0
    for path, places in found.items():
        limit = allowed.get(path, 0)
        if "--list" in options or len(places) > limit:
            for line, name, around in places:
                instead = next(i for n, _, i in PATTERNS if n == name)
                print(f"{path}:{line}: {name}: ... {around} ... (write {instead})")
        if len(places) > limit:
            print(f"prose: {path} has {len(places)} places, and {limit} in {REMAINING}")
            status = 1
    if "--write" in options and status == 0:
        lines = [f"{len(places)} {path}\n" for path, places in sorted(found.items()) if places]
        REMAINING.write_text("# What has not been rewritten yet; see tools/check-prose.py\n" + "".join(lines), encoding="utf-8")
    total = sum(map(len, found.values()))
    if status == 0:
        print(f"prose: ok ({total} places remain)")
    return status


sys.exit(main(sys.argv[1:]))
