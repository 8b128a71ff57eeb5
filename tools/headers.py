"""What the public headers declare, and what their comments say of it, from doxygen's XML: for tools/make-man.py, which
writes the manual, and tools/make-site.py, which writes the pages of the site.

A comment speaks for the item below it and for those that follow without a blank line in between. They share a page,
which is named after the first of them.
"""
import functools
import pathlib
import re
import textwrap
import xml.etree.ElementTree as ET

COLUMNS = 72
WHOLE_WORDS = {"break_long_words": False, "break_on_hyphens": False}
PUBLIC = re.compile(r"(?:strand|STRAND)(?:_\w*)?(?<!_)$")
TYPES = ("typedef", "struct", "union")
OVERVIEW, TYPE_PAGE = "strand", "strand_handle"  # `man strand` shows the overview
ATTRIBUTES = re.compile(r"\b(?:STRAND_BLOCKS|STRAND_CHECKED|STRAND_NORETURN|STRAND_SECTION_EXCLUDES_)\s+")
BLOCKS = ("verbatim", "programlisting", "itemizedlist", "orderedlist")


class Item:
    """Something that a header declares."""

    def __init__(self, node, name):
        place = node.find("location")
        self.kind, self.name, self.node = node.get("kind"), name, node
        self.file = place.get("file")
        self.line = int(place.get("bodystart") or place.get("line"))
        self.last = max(self.line, int(place.get("bodyend") or 0))
        self.comment = [
            child for field in ("briefdescription", "detaileddescription") for child in node.find(field)
        ]
        self.constants = [value.findtext("name") for value in node.findall("enumvalue")]


class Page:
    """What one comment describes: an item and those that follow without a blank line."""

    def __init__(self, item):
        self.items = [item]
        self.comment = item.comment
        self.file = item.file

    def names(self):
        constants = [name for item in self.items for name in item.constants]
        names = [name for name in [*[item.name for item in self.items], *constants] if PUBLIC.match(name)]
        return [TYPE_PAGE, *names] if names[:1] == [OVERVIEW] else names

    def does(self):
        """Whether there is something to be called on it."""
        return any(item.kind == "function" or item.node.find("param") is not None for item in self.items)


# ---- reading -------------------------------------------------------------------------------------------------------


def read_items(folder):
    found = {}
    for path in sorted(folder.glob("*.xml")):
        compound = ET.parse(path).getroot().find("compounddef")
        if compound is None:
            continue
        if compound.get("kind") in ("struct", "union"):
            nodes = [(compound, compound.findtext("compoundname"))]
        elif compound.get("kind") == "file":
            nodes = [(node, node.findtext("name")) for node in compound.iter("memberdef")]
        else:
            continue
        for node, name in nodes:
            if "::" not in name:
                add(found, Item(node, name))
    return sorted(found.values(), key=lambda item: (item.file, item.line))


def add(found, item):
    """A struct and its typedef are one item: the definition counts, and the comment of either."""
    is_type = item.kind in TYPES
    key = (is_type, item.name) if not item.name.startswith("@") else (item.file, item.line)
    other = found.get(key)
    if other is None:
        found[key] = item
        return
    if is_type and item.kind != "typedef":
        item, other = other, item
    other.comment = other.comment or item.comment
    found[key] = other


def read_pages(items):
    pages, complaints, page, source, end, file = [], [], None, [], 0, None
    for item in items:
        if item.file != file:
            file, page = item.file, None
            source = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
        if item.comment:
            page = Page(item)
            pages.append(page)
        elif page and all(line.strip() for line in source[end : item.line - 1]):
            page.items.append(item)
        else:
            page = None
            if item.kind in ("function", "variable", "define") and PUBLIC.match(item.name):
                if not (item.kind == "define" and item.name.endswith("_H")):
                    complaints.append(f"{item.file}:{item.line}: {item.name} has no /** comment */")
        end = item.last
    return [page for page in pages if page.names()], complaints


# ---- text ----------------------------------------------------------------------------------------------------------


def inline(node):
    """The text of a paragraph up to its next block, with marks for code."""
    text = node.text or ""
    for child in node:
        inner = inline(child)
        text += f"\0{inner}\0" if child.tag in ("computeroutput", "emphasis", "bold") else inner
        text += child.tail or ""
    return text


def plain(nodes):
    return " ".join("".join(inline(node) for node in nodes).replace("\0", "").split())


def summary(page):
    """The first sentence, as the line of NAME has it."""
    first = next((node for node in page.comment if node.tag == "para"), None)
    text = first.text or "" if first is not None else ""
    for child in first if first is not None else ():
        if child.tag in BLOCKS:
            break
        text += inline(child) + (child.tail or "")
    text = " ".join(text.replace("\0", "").split())
    text = re.split(r"(?<!e\.g)(?<!i\.e)\.(?: |$)|:(?: (?![a-z])|$)|; ", text, maxsplit=1)[0].rstrip(".:")
    text = text if len(text) <= 100 else text.split(": ", 1)[0]
    word = text.split(" ", 1)[0]
    return text[0].lower() + text[1:] if word == "A" or word[1:].islower() else text


# Between two sentences.
SENTENCE = r"(?<=[.?!])(?<!e\.g\.)(?<!i\.e\.) (?=[A-Z\0]|[*&]?(?:strand_|[a-z]\w*->))"


def sentences(nodes, pattern):
    """Those of a description that say something of this kind, but for its lists."""
    found = []
    for node in nodes:
        text = node.text or ""
        for child in node:
            if child.tag not in BLOCKS:
                inner = inline(child)
                text += f"\0{inner}\0" if child.tag in ("computeroutput", "emphasis", "bold") else inner
            text += child.tail or ""
        text = " ".join(text.split())
        parts = re.split(SENTENCE, text)
        found += [part for part in parts if re.search(pattern, part)]
    return found


# ---- declarations --------------------------------------------------------------------------------------------------


def declaration(item, source):
    if item.kind == "function":
        return prototype(item.node)
    raw = source[item.line - 1 : item.last]
    if item.kind == "define":
        params = [param.findtext("defname") for param in item.node.findall("param")]
        if params and params != [None] or raw[0].endswith("\\") or re.search(r"_\b", raw[0].split(item.name, 1)[1]):
            arguments = f"({', '.join(params)})" if params else ""
            return [f"{item.name}{arguments}"]
        return narrow([re.sub(r"\s*__attribute__.*", "", raw[0])])
    while not re.search(r"[;}]\s*\w*;?\s*(/\*.*)?$", raw[-1]) and item.last < len(source):
        item.last += 1
        raw = source[item.line - 1 : item.last]
    return narrow(raw)


def prototype(node):
    head = re.sub(r"\* +", "*", ATTRIBUTES.sub("", node.findtext("definition")))
    arguments = re.sub(r"(\w)\(\*", r"\1 (*", node.findtext("argsstring").replace(",...", ", ..."))
    arguments = re.sub(r"(?<=\)) (?:STRAND_\w+(?:\([^()]*\))? ?)+$", "", arguments)
    line = f"{head}{arguments};"
    if len(line) <= COLUMNS:
        return [line]
    parts = re.split(r"(?<=,) (?![^()]*\)[^;]*\()", line[len(head) :])
    indent = " " * (len(head) + 1 if len(head) + max(map(len, parts)) < COLUMNS else 8)
    out = [head]
    for part in parts:
        if len(out[-1]) + len(part) + 1 > COLUMNS and out[-1] != head:
            out.append(indent + part)
        else:
            out[-1] += part if out[-1] == head else " " + part
    return out


def narrow(raw):
    """A definition as the header has it; where a comment makes a line too wide, it goes in front of the line."""
    joined = []
    for line in raw:
        if joined and "/*" in joined[-1] and "*/" not in joined[-1].rsplit("/*", 1)[1]:
            joined[-1] += " " + re.sub(r"^\s*\*?(?!/)\s*", "", line)
        else:
            joined.append(line.rstrip())
    out = []
    for line in joined:
        match = re.match(r"(\s*)(.*?)\s*/\*\s*(.*?)\s*\*/$", line)
        if len(line) <= COLUMNS or not match:
            deeper = " " * (len(line) - len(line.lstrip()) + 4)
            out += textwrap.wrap(line, COLUMNS, subsequent_indent=deeper, **WHOLE_WORDS) or [""]
            continue
        wrapped = textwrap.wrap(match[3], COLUMNS - len(match[1]) - 3)
        lead = ["/* ", *["   "] * (len(wrapped) - 1)]
        comment = [match[1] + before + text for before, text in zip(lead, wrapped)]
        comment[-1] += " */"
        out += comment + ([match[1] + match[2]] if match[2] else [])
    return out


@functools.lru_cache(maxsize=None)
def head_of(path):
    """What the first comment of a header says of all its functions: the rows of the table of callers, each as (callers,
    functions), the paragraph on suspension, and that on costs."""
    head = pathlib.Path(path).read_text(encoding="utf-8").split("*/", 1)[0]
    table = re.search(r"^ \* Which callers:\n \*\n((?: \*   .*\n)+)", head, re.MULTILINE)
    rows = []
    for line in table[1].splitlines() if table else []:
        callers, functions = re.match(r" \*   (.*?)(?: {2,}(.*))?$", line).groups()
        more = not callers or functions is None or (rows and rows[-1][1].endswith(","))
        if more and rows:
            rows[-1] = (f"{rows[-1][0]} {callers}".strip(), f"{rows[-1][1]} {functions or ''}".strip())
        else:
            rows.append((callers, functions))
    for i, (callers, functions) in enumerate(rows):
        if callers.startswith("the same"):
            rows[i] = (callers.replace("the same", rows[i - 1][0], 1), functions)
    paragraph = lambda name: re.search(rf"^ \* {name}: ((?:.+\n)(?: \* .+\n)*)", head, re.MULTILINE)
    texts = [found[1].replace("\n *", "\n") if found else "" for found in map(paragraph, ("Suspension", "Cost"))]
    return rows, *[" ".join(text.split()) for text in texts]
