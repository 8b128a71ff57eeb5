#!/usr/bin/env python3
"""usage: tools/make-man.py [--strict] XML OVERVIEW FOLDER VERSION DATE

Writes manual pages from doxygen's XML of the public headers: FOLDER/man3 with a page for each commented item, and
FOLDER/man7/strand.7, which is OVERVIEW with a list of these pages in the place of the line `.\\" @PAGES@`.

A comment speaks for the item below it and for those that follow without a blank line in between. They share a page,
which is named after the first of them; the others' pages lead there, and those of enumerators too. Names that end in an
underscore are for macros only and have none. What a page says of return values and errors is taken from the comment's
own sentences: those that begin with "Returns" or "Throws", or whose subject is the function or an error (RETURNS,
THROWS). So each can be understood outside of its paragraph. The example is a part of a program of this repository that
uses the name, as its users do; a page without one names its neighbour, or a page that it mentions, which has one. A
function, variable or macro without a comment is reported; with --strict that fails.

It is called by tools/man.sh from the root of the repository, because doxygen names the headers from there.
"""
import functools
import pathlib
import re
import sys
import textwrap

from headers import (ATTRIBUTES, BLOCKS, OVERVIEW, PUBLIC, WHOLE_WORDS, declaration, inline, plain, read_items, read_pages,
                     sentences, summary)

NAME = re.compile(r"\b(?:strand|STRAND)_\w*[A-Za-z0-9]\b(?!_)")
# Programs that use the library as its users do: those of tests do so for their own purposes.
EXAMPLES = ("examples/*.c", "examples/*/*.[ch]", "README.md", "docs/*.md")

# The sentences that can stand alone: they begin with their verb, or name the caller's call as their subject.
CALL = r"(?:[Ii]t|They|[Tt]h(?:e|is) (?:call|function|macro)|NAMES(?:\([^)]*\))?)"
RETURNS = rf"^(?:[^,;]+, |With \w+ )?(?:Returns\b|{CALL} returns?\b)"
THROWS = (
    rf"^Throws\b|\bis thrown\b|(?:^|[,.;] ){CALL} (?:waits and )?throws?\b",
    r"^(?:Returns|The case's result is)\b.*(?:-E[A-Z]|errno code|throws)",
    r"^(?:After|With) (?:0, )?-E[A-Z]",
    r"^(?:Entering|A block)\b.*\bthrows\b",
    r"^(?!(?:So|Then|Only then|Where|Else|Otherwise)\b).*\b(?:is|are) misuse\b",
    r"\b(?:returns? what \S+ returns|throws? like|throws? what)\b",
)
# Macros that are a part of another expression; neither fails.
ARGUMENT = re.compile(r"Write .* as (?:an argument|three arguments)\b")
INITIALISER = re.compile(r"Initialise .*")


# ---- writing: text -------------------------------------------------------------------------------------------------


def code(text):
    text = text.replace("\\", "\\(rs").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return text.replace("^", "\\(ha").replace("~", "\\(ti")


def prose(text):
    text = re.sub(r"(^|[\s(])-(?=\w)", r"\1\\-", text.replace("\\", "\\(rs"))
    text = text.replace("^", "\\(ha").replace("~", "\\(ti").replace("`", "\\(ga")
    text = re.sub(rf"(?<!\S)(?=\W*{NAME.pattern})", r"\\%", text)  # such a word is not hyphenated
    return NAME.sub(r"\\fB\g<0>\\fP", text)


def guarded(line):
    return "\\&" + line if line[:1] in (".", "'") else line


def flow(text):
    """Filled text; a sentence begins a line."""
    text = " ".join(text.split())
    parts = text.split("\0")
    for i, part in enumerate(parts):
        font = "B" if NAME.match(part) else "I"
        parts[i] = prose(part) if i % 2 == 0 else f"\\f{font}{code(part)}\\fP"
    sentences = re.split(r"(?<=[.?!])(?<!e\.g\.)(?<!i\.e\.) (?=[A-Z{\\])", "".join(parts))
    return [guarded(line) for sentence in sentences for line in textwrap.wrap(sentence, 78, **WHOLE_WORDS)]


def literal(text):
    lines = textwrap.dedent(text).strip("\n").splitlines()
    columns = [re.match(r"( *)(\S.*?) {2,}(\S.*)$", line) for line in lines]
    if len(lines) > 1 and all(columns):
        return terms(columns)
    return [".PP", ".in +4n", ".EX", *[guarded(code(line)) for line in lines], ".EE", ".in", ".PP"]


def terms(columns):
    """Lines of two columns: what is written, and what it does."""
    out = []
    for match in columns:
        rows = [".TP", f"\\fB{code(match[2])}\\fP", *flow(match[3])]
        depth = len(match[1]) // 2
        out += [*[".RS"] * depth, *rows, *[".RE"] * depth]
    return [*out, ".PP"]


def blocks(nodes):
    """The lines of a description."""
    out = []
    for node in nodes:
        if node.tag != "para":
            out += [".PP", *flow(inline(node))]
            continue
        text = node.text or ""
        out.append(".PP")
        for child in node:
            if child.tag in BLOCKS:
                out += flow(text) + special(child)
                text = ""
            else:
                inner = inline(child)
                text += f"\0{inner}\0" if child.tag in ("computeroutput", "emphasis", "bold") else inner
            text += child.tail or ""
        out += flow(text)
    return tidy(out)


def special(node):
    if node.tag == "verbatim":
        return literal(node.text or "")
    if node.tag == "programlisting":
        for blank in node.iter("sp"):
            blank.text = " "
        return literal("\n".join(inline(line) for line in node.iter("codeline")))
    out = []
    for number, entry in enumerate(node.findall("listitem"), 1):
        mark = "\\(bu 2" if node.tag == "itemizedlist" else f"{number}. 4"
        out += [f".IP {mark}", *[line for line in blocks(list(entry)) if line != ".PP"]]
    return [*out, ".PP"]


def tidy(lines):
    """Without paragraphs that are empty."""
    out = []
    for line in lines:
        if line == ".PP" and (not out or out[-1] == ".PP"):
            continue
        if line.startswith((".IP", ".TP")) and out and out[-1] == ".PP":
            out.pop()
        out.append(line)
    while out and out[-1] == ".PP":
        out.pop()
    return out


# ---- writing: pages ------------------------------------------------------------------------------------------------


def standing_alone(page, pattern):
    """The sentences that the pattern finds; NAMES in it are those of the page."""
    said = sentences(page.comment, pattern.replace("NAMES", f"(?:{'|'.join(page.names())})"))
    return [re.sub(r", or:$", ", or an error of the list below.", text) for text in said]


def returns(page):
    functions = [item for item in page.items if item.kind == "function"]
    kinds = [re.sub(r"\s*\w+$", "", item.node.findtext("definition")) for item in functions]
    kinds = [ATTRIBUTES.sub("", kind) for kind in kinds]
    said = sorted(standing_alone(page, RETURNS), key=lambda text: not text.startswith("Returns"))
    gives = re.match(r"(?:Get|Make) (.*?)\.(?= |$)", plain(page.comment))
    if gives and all(re.match(r"Returns .*? (?:if|past) ", text) and "," not in text for text in said):
        said.insert(0, f"Returns {gives[1]}.")
    if kinds and all(kind == "void" for kind in kinds):
        return ["None."]
    if said:
        return flow(" ".join(said))
    if not kinds:
        return [part_of_expression(page) or "None."]
    kind = next(kind for kind in kinds if kind != "void")
    return [f"A value of type \\fI{code(kind)}\\fP, which DESCRIPTION explains."]


def part_of_expression(page):
    """What a macro is that stands for a part of an expression; None for others."""
    about = plain(page.comment)
    if ARGUMENT.match(about):
        return "The macro is the argument, valid during the call that it is written for."
    return "The macro is an initialiser." if INITIALISER.match(about) else None


def listed_errors(page):
    """The items of a description's lists that begin with an error code."""
    items = [plain(list(item)) for node in page.comment for item in node.iter("listitem")]
    found = [re.match(r"(-E[A-Z]+):? (.*?)[,;.]?$", item) for item in items]
    return [line for match in found if match for line in (".TP", f"\\fB{code(match[1])}\\fP", *flow(match[2] + "."))]


def errors(page, blocks_too):
    said = standing_alone(page, "|".join(THROWS))
    out = flow(" ".join(said)) if said else []
    if blocks_too:
        out.append("When interrupted, it throws \\fBSTRAND_INTERRUPTED\\fP.")
    out += listed_errors(page)
    return out or ["None." if part_of_expression(page) else "None. Misuse is reported and ends the program."]


@functools.cache
def example(names):
    """Some lines of a program of this repository that uses one of the names, the first in the order of EXAMPLES."""
    for path, lines in sources():
        for name in [*names, *[name.upper() for name in names if name.endswith("_attr")]]:
            word = rf"(?<!\w){name}(?!\w)"
            using = [(i, line) for i, line in enumerate(lines) if name in line and not line.endswith("\\")]
            # In a function, or as a declaration; not in a comment.
            for use in (rf" (?!\s*/?\*).*{word}", rf"(?!/\*|//|#|TEST).*{word}"):
                at = next((i for i, line in using if re.match(use, line)), None)
                if at is not None:
                    return path, part_of(lines, at)
    return None


@functools.cache
def sources():
    """The programs that examples are taken from, in their order: each a path and its lines."""
    return [(path, lines_of(path)) for pattern in EXAMPLES for path in sorted(pathlib.Path().glob(pattern))]


def lines_of(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":  # of a page, the programs
        text = "\n".join(re.findall(r"^```c\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    return text.splitlines()


def part_of(lines, at, before=3, after=4):
    """A few lines around one, within its function, or the whole declaration."""
    first, last = at, at
    if not lines[at].startswith(" "):
        while last + 1 < len(lines) and lines[last + 1].strip() and last - at < 2 * after:
            last += 1
        return lines[first : last + 1]
    while first > 0 and at - first < before and lines[first - 1].startswith(" "):
        first -= 1
    while last + 1 < len(lines) and last - at < after and lines[last + 1].startswith(" "):
        last += 1
    return textwrap.dedent("\n".join(lines[first : last + 1])).splitlines()


def related(page, texts, known):
    """The pages that this one's words lead to. The types `strand` and the like are words of English too."""
    mentioned = {}
    for name in [name for text in texts for name in NAME.findall(text)]:
        if name in known and name != OVERVIEW and known[name] is not page:
            mentioned.setdefault(known[name].names()[0], name)
    return sorted(mentioned.values(), key=lambda name: (name.lower(), name))


def write_page(page, neighbours, known, folder, version, date):
    names = page.names()
    source = pathlib.Path(page.file).read_text(encoding="utf-8").splitlines()
    shown = [item for item in page.items if PUBLIC.match(item.name) or item.constants]
    written = [declaration(item, source) for item in shown]
    blocking = [
        item.name
        for item, lines in zip(shown, written)
        if item.kind == "function" and "STRAND_BLOCKS" in item.node.findtext("definition")
    ]
    checked = [
        item.name
        for item in shown
        if item.kind == "function" and "STRAND_CHECKED" in item.node.findtext("definition")
    ]

    out = [
        f'.\\" Made from {page.file} by tools/make-man.py.',
        f'.TH {names[0].upper()} 3 {date} "libstrand {version}" "libstrand"',
        ".SH NAME",
        *textwrap.wrap(f"{', '.join(names)} \\- {code(summary(page))}", 78, **WHOLE_WORDS),
        ".SH LIBRARY",
        "Structured concurrency for C (libstrand, \\-lstrand)",
        ".SH SYNOPSIS",
        ".nf",
        f"\\fB#include <{page.file.removeprefix('include/')}>\\fP",
        ".PP",
    ]
    for item, lines, following in zip(shown, written, [*shown[1:], None]):
        out += [f"\\fB{guarded(code(line))}\\fP" if line else "" for line in lines]
        if len(lines) > 1 and following:
            out.append(".PP")
    out = [line if line else ".sp" for line in out]
    out += [".fi", ".SH DESCRIPTION", *blocks(page.comment)]
    if blocking:
        name = "This function" if len(blocking) == len(shown) else " or ".join(f"\\fB{name}\\fP" for name in blocking)
        out += [".PP", f"{name} may suspend the calling strand and is a cancellation point:"]
        out += ["an interruption makes it throw", "\\fBSTRAND_INTERRUPTED\\fP."]
        out.append("It has then had no effect, unless the text above says otherwise.")
    if page.does():
        out += [".SH RETURN VALUE", *returns(page)]
        if checked:
            of = "the result" if len(checked) == len(shown) else "a result of " + " or ".join(checked)
            out += flow(f"The compiler warns about a call that ignores {of}.")
        out += [".SH ERRORS", *errors(page, bool(blocking))]
    others = related(page, [plain(page.comment), *[line for lines in written for line in lines]], known)
    others += [near for near in neighbours if near not in others]
    shown_in = example(tuple(names))
    here = [name for name in [*neighbours, *others] if known[name].file == page.file]
    elsewhere = [name for name in here if example(tuple(known[name].names()))]
    if shown_in:
        path, part = shown_in
        out += [".SH EXAMPLES", f"From \\fI{code(str(path))}\\fP:", ".PP", ".in +4n", ".EX"]
        out += [*[guarded(code(line)) for line in part], ".EE", ".in"]
    elif elsewhere:
        out += [".SH EXAMPLES", f"See \\fB{elsewhere[0]}\\fP(3)."]
    out += [".SH SEE ALSO"]
    out += [f".BR {name} (3)," for name in others if name not in ("STRAND_BLOCKS", "STRAND_CHECKED", "STRAND_NORETURN")]
    out += [".BR strand (7)"]
    (folder / f"{names[0]}.3").write_text("\n".join(out) + "\n", encoding="utf-8")
    for name in names[1:]:
        if name == OVERVIEW:
            continue
        other = folder / f"{name}.3"
        other.symlink_to(f"{names[0]}.3")


def listing(pages):
    """All pages by header, for the overview: the core's first."""
    out, file = [], None
    for page in sorted(pages, key=lambda page: (page.file.count("/"), page.file)):
        if page.file != file:
            file = page.file
            out.append(f".SS <{file.removeprefix('include/')}>")
        names = page.names()
        tag = ", ".join(f"\\fB{name}\\fP(3)" for name in names[:1]) + "".join(f", \\fB{name}\\fP" for name in names[1:])
        out += [".TP", tag, *flow(summary(page))]
    return out


def main():
    arguments = sys.argv[1:]
    strict = "--strict" in arguments
    xml, overview, out, version, date = [argument for argument in arguments if argument != "--strict"]
    pages, complaints = read_pages(read_items(pathlib.Path(xml)))
    for complaint in complaints:
        print(f"man: {complaint}", file=sys.stderr)
    if not pages:
        sys.exit("man: doxygen has found no comments")

    known = {name: page for page in pages for name in page.names()}
    man3, man7 = pathlib.Path(out, "man3"), pathlib.Path(out, "man7")
    man3.mkdir(parents=True, exist_ok=True)
    man7.mkdir(parents=True, exist_ok=True)
    for i, page in enumerate(pages):
        near = [other for other in pages[max(i - 1, 0) : i + 2] if other is not page and other.file == page.file]
        write_page(page, [other.names()[0] for other in near], known, man3, version, date)
    text = pathlib.Path(overview).read_text(encoding="utf-8")
    text = text.replace('.\\" @PAGES@', "\n".join(listing(pages))).replace("@VERSION@", version).replace("@DATE@", date)
    (man7 / "strand.7").write_text(text, encoding="utf-8")
    sys.exit(1 if strict and complaints else 0)


main()
