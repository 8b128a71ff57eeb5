#!/usr/bin/env python3
"""usage: tools/make-site.py XML FOLDER

Writes the sources of the site for mkdocs, which docs/site.yml configures: README.md as the front page, the pages of
docs/, and below api/ a page for each public header, made from doxygen's XML of its comments. Links to files that are
not on the site become plain text.

It is called by tools/site.sh from the root of the repository.
"""
import pathlib
import re
import shutil
import sys

from headers import BLOCKS, PUBLIC, declaration, inline, read_items, read_pages, summary

DOCS = pathlib.Path("docs")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")

# ---- pages of the repository ---------------------------------------------------------------------------------------


def place_on_site(path):
    """Where a file of the repository is on the site, or None."""
    if path == pathlib.Path("README.md"):
        return pathlib.Path("index.md")
    if path.is_relative_to(DOCS) and path.suffix in (".md", ".svg"):
        return path.relative_to(DOCS)
    if path.is_relative_to("include") and path.suffix == ".h":
        return api_page(str(path))
    return None


def relative(target, source):
    """A link from one page of the site to another."""
    return "../" * len(source.parent.parts) + target.as_posix()


def with_links(text, path):
    page = place_on_site(path)

    def link(match):
        mark, words, target = match.groups()
        if re.match(r"\w+:|#", target):
            return match.group()
        name, _, anchor = target.partition("#")
        there = place_on_site(pathlib.Path(normal(path.parent / name)))
        if there is None:
            return words
        return f"{mark}[{words}]({relative(there, page)}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def normal(path):
    parts = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def copy_pages(folder):
    for path in [pathlib.Path("README.md"), *sorted(DOCS.rglob("*.md")), *sorted(DOCS.rglob("*.svg"))]:
        target = folder / place_on_site(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".svg":
            shutil.copy(path, target)
        else:
            text = re.sub(r"^<!-- .*-->\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            target.write_text(with_links(text, path), encoding="utf-8")


# ---- pages of headers ----------------------------------------------------------------------------------------------


def api_page(file):
    return pathlib.Path("api", file.removeprefix("include/").replace("/", "-").removesuffix(".h") + ".md")


def marked(text):
    """The text of a comment as Markdown: names and code in the font of code."""
    parts = " ".join(text.split()).split("\0")
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"`{part}`"
        else:
            escaped = re.sub(r"([*_\[\]<>{}])", r"\\\1", part)
            parts[i] = re.sub(r"(?:strand|STRAND)(?:\\_\w+)+(?:\(\))?", lambda m: f"`{m.group().replace(chr(92), '')}`", escaped)
    return "".join(parts)


def blocks(nodes):
    out = []
    for node in nodes:
        text = node.text or ""
        for child in node:
            if child.tag in BLOCKS:
                out += [marked(text), *block(child)]
                text = ""
            else:
                inner = inline(child)
                text += f"\0{inner}\0" if child.tag in ("computeroutput", "emphasis", "bold") else inner
            text += child.tail or ""
        out.append(marked(text))
    return [part for part in out if part]


def block(node):
    if node.tag in ("itemizedlist", "orderedlist"):
        mark = "-" if node.tag == "itemizedlist" else "1."
        return ["\n".join(f"{mark} {' '.join(blocks(list(item)))}" for item in node.findall("listitem"))]
    text = node.text or "" if node.tag == "verbatim" else "\n".join(inline(line) for line in node.iter("codeline"))
    return ["```\n" + text.strip("\n") + "\n```"]


def section(page):
    source = pathlib.Path(page.file).read_text(encoding="utf-8").splitlines()
    shown = [item for item in page.items if PUBLIC.match(item.name) or item.constants]
    code = [line for item in shown for line in declaration(item, source)]
    return [f"### {page.names()[0]}", "```c\n" + "\n".join(code) + "\n```", *blocks(page.comment)]


def head_comment(file):
    """The comment at the top of a header. Its indented paragraphs are lists and programs, and stay as they are."""
    text = pathlib.Path(file).read_text(encoding="utf-8")
    match = re.match(r"/\*\*?(.*?)\*/", text, re.DOTALL)
    if match is None:
        return []
    body = re.sub(r"^ \*? ?", "", match.group(1).strip("\n"), flags=re.MULTILINE).strip("\n ")
    paragraphs = re.split(r"\n\s*\n", body)
    return [f"```text\n{part}\n```" if re.match(r"  |\d\.", part) else marked(part) for part in paragraphs]


def anchors_of(pages):
    """The anchor of each page's heading: the name in lower case, and a number if it is not the first such one."""
    seen, out = {}, []
    for page in pages:
        name = page.names()[0].lower()
        seen[name] = seen.get(name, -1) + 1
        out.append(f"{name}_{seen[name]}" if seen[name] else name)
    return out


def write_headers(pages, folder):
    (folder / "api").mkdir(exist_ok=True)
    for file in sorted({page.file for page in pages}):
        own = [page for page in pages if page.file == file]
        contents = [
            f"- [{page.names()[0]}](#{anchor}): {marked(summary(page))}" for page, anchor in zip(own, anchors_of(own))
        ]
        parts = [f"# &lt;{file.removeprefix('include/')}&gt;", *head_comment(file), "## Contents", "\n".join(contents), "## Functions"]
        for page in own:
            parts += section(page)
        (folder / api_page(file)).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main():
    xml, out = sys.argv[1:]
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    copy_pages(folder)
    pages, _ = read_pages(read_items(pathlib.Path(xml)))
    write_headers(pages, folder)


main()
