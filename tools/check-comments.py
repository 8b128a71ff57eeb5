#!/usr/bin/env python3
"""usage: tools/check-comments.py HEADER...

Every public header says at its top, in its first comment, which callers may use its functions (a table below the line
"Which callers:"), which functions suspend ("Suspension: ...") and what they cost ("Cost: ..., unless ..."). The table
names only functions and macros that the header has, and covers each function: by its name, or by a row "all other
functions". Each function has a comment of its own, which ends on the line above.

A header with "Nothing here is for programs" in its first comment needs no table. Names that end in an underscore are for
macros only.
"""
import pathlib
import re
import sys

# A declaration at the left edge, with the name of its function.
FUNCTION = re.compile(r"^(?!typedef\b|extern inline\b|static\b|__asm__)[A-Za-z_][\w *]*?[ *](strand_\w*[a-z0-9])\(", re.MULTILINE)
MACRO = re.compile(r"^#define (STRAND_\w*[A-Z0-9])\b", re.MULTILINE)
NAME = re.compile(r"\b(?:strand_\w*[a-z0-9]|STRAND_\w*[A-Z0-9])\b(?!\w|/|\.\.\.)")
COVERS_ALL = re.compile(r"all (?:other )?functions\b(?! strand_)")
FIRST = re.compile(r"/\*\n(.*?)\*/", re.DOTALL)
ROWS = re.compile(r"^ \* Which callers:\n \*\n((?: \*   .*\n)+)", re.MULTILINE)
SUSPENSION = re.compile(r"^ \* Suspension: ", re.MULTILINE)
COST = re.compile(r"^ \* Cost: .*\bunless\b", re.MULTILINE)


def head_faults(text, functions):
    first = FIRST.match(text)
    head = first[1] if first else ""
    if "Nothing here is for programs" in " ".join(re.sub(r"\n \*", " ", head).split()):
        return
    rows = ROWS.search(head)
    if not rows:
        yield 'its first comment has no table "Which callers:"'
    elif not COVERS_ALL.search(rows[1]):
        covered = set(NAME.findall(rows[1]))
        yield from (f"the table of callers has no row for {name}" for name in functions if name not in covered)
    known = set(functions) | set(MACRO.findall(text))
    yield from (f"the table of callers names {name}, which the header does not have"
                for name in NAME.findall(rows[1] if rows else "") if name not in known and "..." not in name)
    if not SUSPENSION.search(head):
        yield 'its first comment has no line "Suspension: ..."'
    if not COST.search(head):
        yield 'its first comment has no line "Cost: ..., unless a function says otherwise"'


def faults(path):
    text = path.read_text(encoding="utf-8")
    found = [match for match in FUNCTION.finditer(text) if is_declaration(text, match.end())]
    yield from head_faults(text, [match[1] for match in found])
    for match in found:
        before = text[: match.start()]
        if not before.endswith("*/\n") or "/**" not in before[before.rfind("/*") :]:
            yield f"{match[1]} has no comment of its own: it begins with /** and ends on the line above"


def is_declaration(text, at):
    """Whether the text from a parameter list on is a prototype, not a definition."""
    return text[at:].find(";") < (text[at:].find("{") % (len(text) + 1))


def main():
    headers = sys.argv[1:]
    complaints = [f"comments: {header}: {fault}" for header in headers for fault in faults(pathlib.Path(header))]
    print("\n".join(complaints) if complaints or not headers else "comments: ok")
    sys.exit(1 if complaints or not headers else 0)


main()
