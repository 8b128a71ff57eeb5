#!/usr/bin/env python3
"""usage: tools/make-man.py [--strict] XML OVERVIEW FOLDER VERSION DATE

Writes manual pages from doxygen's XML of the public headers: FOLDER/man3 with a page for each commented item, and
FOLDER/man7/strand.7, which is OVERVIEW with a list of these pages in the place of the line `.\\" @PAGES@`.

A comment speaks for the item below it and for those that follow without a blank line in between. They share a page,
which is named after the first of them; the others' pages lead there, and those of enumerators too. Names that end in an
underscore are for macros only and have none. What a page says of return values and errors is taken from the comment's
own sentences: those that begin with "Returns" or "Throws", or whose subject is the function or an error (RETURNS,
THROWS). So each can be understood outside of its paragraph. The examples are parts of programs of this repository that
use the name, as its users do: whole statements or functions. A page without one names a page whose example has the
name, if there is one. A function, variable or macro without a comment is reported, and an example with a bracket that
is not closed; with --strict that fails.

It is called by tools/man.sh from the root of the repository, because doxygen names the headers from there.
"""
import functools
import pathlib
import re
import sys
import textwrap

from headers import (ATTRIBUTES, BLOCKS, OVERVIEW, PUBLIC, SENTENCE, WHOLE_WORDS, declaration, head_of, inline, plain,
                     read_items, read_pages, sentences, summary)

NAME = re.compile(r"\b(?:strand|STRAND)_\w*[A-Za-z0-9]\b(?!_)")
# Programs that use the library as its users do: those of tests do so for their own purposes.
EXAMPLES = ("examples/*.c", "examples/*/*.[ch]", "README.md", "docs/*.md")
# In lines: a function that is shown as a whole, statements of a longer one, and all examples of a page.
SHORT, LONGEST, MOST_LINES = 20, 24, 60

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


# A sentence that refers to the one before it.
REFERS = re.compile(r"(?:It|They|Then|So|Only|Otherwise|Else|In|That|These|This|After)\b")


def without(text, moved):
    """A paragraph without the sentences that have sections of their own."""
    parts = re.split(SENTENCE, " ".join(text.split()))
    later = [*parts[1:], ""]
    return " ".join(part for part, after in zip(parts, later) if before_list(part) not in moved or REFERS.match(after))


def blocks(nodes, moved=()):
    """The lines of a description. moved: sentences that begin with "Returns" or "Throws" and stand in another section."""
    out = []
    for node in nodes:
        if node.tag != "para":
            out += [".PP", *flow(inline(node))]
            continue
        text = node.text or ""
        out.append(".PP")
        for child in node:
            if child.tag in BLOCKS:
                text = without(text, moved)
                listed = moved and child.tag == "itemizedlist" and all(ERROR.match(item) for item in items_of(child))
                out += flow(text) + ([] if listed and not text.endswith(":") else special(child))
                text = ""
            else:
                inner = inline(child)
                text += f"\0{inner}\0" if child.tag in ("computeroutput", "emphasis", "bold") else inner
            text += child.tail or ""
        out += flow(without(text, moved))
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
    return [before_list(text) for text in said]


def before_list(text):
    """A sentence that leads to a list, as it stands apart from the list."""
    return re.sub(r", or:$", ", or an error of the list below.", text)


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


def moved(page):
    """The sentences that RETURN VALUE or ERRORS has instead of DESCRIPTION."""
    if not page.does() or part_of_expression(page):
        return ()
    said = standing_alone(page, RETURNS) + standing_alone(page, "|".join(THROWS))
    return [text for text in said if re.match(r"(?:Returns|Throws)\b.*\.$", text)]


# An item of a list of errors.
ERROR = re.compile(r"(-E[A-Z]+):? (.*?)[,;.]?$")


def items_of(node):
    return [plain(list(item)) for item in node.iter("listitem")]


def listed_errors(page):
    """The items of a description's lists that begin with an error code."""
    found = [ERROR.match(item) for node in page.comment for item in items_of(node)]
    return [line for match in found if match for line in (".TP", f"\\fB{code(match[1])}\\fP", *flow(match[2] + "."))]


def codes(text):
    """The error codes that a sentence returns, each with its condition, as items; None if one has no condition."""
    items = re.findall(r"((?:-E[A-Z]+(?:, | or |, or )?)+) ?((?:if|when|where|for|without) .*?)(?=;|,? or -E|, -E|\.$)", text)
    if len(re.findall("-E[A-Z]", text)) != len(re.findall("-E[A-Z]", " ".join(of for of, why in items))):
        return None
    return [line for of, why in items for line in (".TP", f"\\fB{code(of.strip(' ,'))}\\fP", *flow(why + "."))]


def errors(page, blocks_too):
    said, listed = [], []
    for text in standing_alone(page, "|".join(THROWS)):
        items = codes(text) if text.startswith("Returns") else None
        if items is None:
            said.append(text)
        else:
            listed += items
    out = flow(" ".join(said)) if said else []
    if blocks_too:
        out.append("When interrupted, it throws \\fBSTRAND_INTERRUPTED\\fP.")
    out += listed + listed_errors(page)
    return out or ["None." if part_of_expression(page) else "None. Misuse is reported and ends the program."]


def word(name):
    return re.compile(rf"(?<!\w){name}(?!\w)")


def uses(page):
    """The names of a page, and that of the macro which writes a struct of it: STRAND_ATTR for strand_attr."""
    return [*page.names(), *[item.name.upper() for item in page.items if item.kind in ("typedef", "struct")]]


def examples(page):
    """Parts of programs that together contain as many of the page's names as a few of them can: each a path, lines."""
    found, lines = [], 0
    for name in uses(page):
        if any(word(name).search("\n".join(part)) for path, part in found):
            continue
        path, part = example(name) or (None, [])
        if part and (not found or lines + len(part) <= MOST_LINES):
            found.append((path, part))
            lines += len(part)
    return found


# A part of a program of this repository that uses the name, the first in the order of EXAMPLES; or None.
@functools.cache
def example(name):
    for path, lines in sources():
        if not any(name in line for line in lines):
            continue
        bare = without_texts(lines)
        for at in [i for i, line in enumerate(bare) if word(name).search(line) and not line.startswith("#")]:
            part = part_of(lines, bare, at)
            if part:
                return path, textwrap.dedent("\n".join(part)).splitlines()
    return None


@functools.cache
def sources():
    """The programs that examples are taken from, in their order: each a path and its lines."""
    paths = [path for pattern in EXAMPLES for path in sorted(pathlib.Path().glob(pattern))]
    return [(path, text.splitlines()) for path in paths for text in programs(path)]


def programs(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        return [text]
    parts = re.findall(r"^<!-- program -->$(.*?)^<!-- end of program -->$", text, re.DOTALL | re.MULTILINE)
    return ["\n".join(re.findall(r"^```c\n(.*?)^```", part, re.DOTALL | re.MULTILINE)) for part in parts]


def without_texts(lines):
    """The lines with blanks instead of comments, strings and characters."""
    blank = lambda match: re.sub(r"[^\n]", " " if match[0][0] == "/" else "_", match[0])
    pattern = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'"
    return re.sub(pattern, blank, "\n".join(lines), flags=re.DOTALL).split("\n")


def balanced(lines):
    """Whether each bracket of lines without texts is closed in them."""
    opened = []
    for bracket in re.findall(r"[][(){}]", "\n".join(lines)):
        if bracket in "([{":
            opened.append(bracket)
        elif not opened or opened.pop() + bracket not in ("()", "[]", "{}"):
            return False
    return not opened


# A line that goes on with the statement before it; and one at whose end a statement may begin, or has ended.
GOES_ON = re.compile(r"\s*(?:else\b|STRAND_CATCH\b|STRAND_END\b|case\b|default\b|[}).,?:&|+*/=<>-]|\{)")
BEFORE = re.compile(r".*[;{}:\\]\s*$|\s*$|\s*STRAND_END\s*$|#")
ENDS = re.compile(r".*[;}]\s*$|\s*STRAND_END\s*$")


def whole(bare, first, last):
    """Whether these lines are whole statements, or whole declarations."""
    return (
        (first == 0 or BEFORE.match(bare[first - 1]) is not None)
        and bare[first].strip() != ""
        and not GOES_ON.match(bare[first])
        and ENDS.match(bare[last]) is not None
        and (last + 1 == len(bare) or not re.match(r"\s*(?:else\b|STRAND_CATCH\b|STRAND_END\b|\w+;$)", bare[last + 1])
             or re.match(r"\s*(?:break|continue|\w+(?:\+\+|--));$", bare[last + 1]) is not None)
        and balanced(bare[first : last + 1])
    )


def part_of(lines, bare, at):
    """The whole function or declaration around a line if it is short; else the statements around the line."""
    inside = bare[at].startswith(" ")
    start = at
    while start > 0 and (bare[start].startswith((" ", "}", "{", "#")) or not bare[start].strip()):
        start -= 1
    while start > 0 and re.match(r"\w", bare[start]) and not BEFORE.match(bare[start - 1]):
        start -= 1
    end = next((i for i in range(at, len(bare)) if whole(bare, start, i)), None)
    if end is not None and end - start < (SHORT if inside else 2 * SHORT):
        return lines[start : end + 1]
    if not inside:
        return None
    runs = [
        (first, last)
        for first in range(at, max(at - LONGEST, start), -1)
        for last in range(at, min(first + LONGEST, len(bare)))
        if bare[last].startswith(" ") and bare[first].startswith(" ") and whole(bare, first, last)
    ]
    few = [(first, last) for first, last in runs if last - first < 8 and all(l.strip() for l in lines[first : last + 1])]
    if few:
        first, last = max(few, key=lambda run: run[1] - run[0])
    elif runs:
        first, last = min(runs, key=lambda run: run[1] - run[0])
    else:
        return None
    return lines[first : last + 1]


def related(page, texts, known):
    """The pages that this one's words lead to. The types `strand` and the like are words of English too."""
    mentioned = {}
    for name in [name for text in texts for name in NAME.findall(text)]:
        if name in known and name != OVERVIEW and known[name] is not page:
            mentioned.setdefault(known[name].names()[0], name)
    return sorted(mentioned.values(), key=lambda name: (name.lower(), name))


def notes(page):
    """What the header says of all its functions, so that the page can be read alone."""
    rows, suspension, cost = head_of(page.file)
    named = [callers for callers, functions in rows if any(word(name).search(functions) for name in page.names())]
    rest = [callers for callers, functions in rows if functions.startswith("all ")]
    header = f"<{page.file.removeprefix('include/')}>"
    out = [".SH NOTES", *flow(f"Suspension and cost hold for all functions of {header}; the text above takes precedence.")]
    for title, text in (("Callers", "; ".join(named or rest)), ("Suspension", suspension), ("Cost", cost)):
        if text:
            first = text[0] if NAME.match(text) else text[0].upper()
            out += [".TP", title, *flow(first + text[1:].rstrip(".") + ".")]
    return out if len(out) > 2 else []


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
    out += [".fi", ".SH DESCRIPTION", *blocks(page.comment, moved(page))]
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
    here = [name for name in [*neighbours, *others] if known[name].file == page.file]
    used = lambda near, name: any(word(name).search("\n".join(part)) for path, part in examples(known[near]))
    elsewhere = [near for name in names for near in [*here, *others] if used(near, name)]
    shown_in = examples(page)
    if shown_in:
        out.append(".SH EXAMPLES")
    for path, part in shown_in:
        out += [".PP"] if out[-1] != ".SH EXAMPLES" else []
        out += [f"From \\fI{code(str(path))}\\fP:", ".PP", ".in +4n", ".EX"]
        out += [*[guarded(code(line)) for line in part], ".EE", ".in"]
    if not shown_in and elsewhere:
        out += [".SH EXAMPLES", f"See \\fB{elsewhere[0]}\\fP(3)."]
    if page.does():
        out += notes(page)
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
    if not pages:
        sys.exit("man: doxygen has found no comments")

    known = {name: page for page in pages for name in page.names()}
    man3, man7 = pathlib.Path(out, "man3"), pathlib.Path(out, "man7")
    man3.mkdir(parents=True, exist_ok=True)
    man7.mkdir(parents=True, exist_ok=True)
    for i, page in enumerate(pages):
        near = [other for other in pages[max(i - 1, 0) : i + 2] if other is not page and other.file == page.file]
        write_page(page, [other.names()[0] for other in near], known, man3, version, date)
        for path, part in examples(page):
            if not balanced(without_texts(part)) or not any(word(name).search("\n".join(part)) for name in uses(page)):
                complaints.append(f"the example of {page.names()[0]} from {path} is no whole statement with the name")
    for complaint in complaints:
        print(f"man: {complaint}", file=sys.stderr)
    text = pathlib.Path(overview).read_text(encoding="utf-8")
    text = text.replace('.\\" @PAGES@', "\n".join(listing(pages))).replace("@VERSION@", version).replace("@DATE@", date)
    (man7 / "strand.7").write_text(text, encoding="utf-8")
    sys.exit(1 if strict and complaints else 0)


main()
