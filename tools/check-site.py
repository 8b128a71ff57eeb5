#!/usr/bin/env python3
"""usage: tools/check-site.py FOLDER

Every script, style, picture and page that the pages below FOLDER refer to lies there. What a page loads does not come from
another server: the site works without the Internet.
"""
import html.parser
import pathlib
import sys
import urllib.parse

LOADS = {"script": "src", "img": "src", "link": "href", "a": "href"}


class References(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        target = dict(attributes).get(LOADS.get(tag, ""))
        if target:
            self.found.append((tag, target))


def complaints(root, page):
    references = References()
    references.feed(page.read_text(encoding="utf-8"))
    for tag, target in references.found:
        url = urllib.parse.urlsplit(target)
        if url.scheme or url.netloc:
            if tag != "a":
                yield f"loads {target}"
        elif url.path:
            base = root if url.path.startswith("/") else page.parent
            if not (base / urllib.parse.unquote(url.path).lstrip("/")).exists():
                yield f"refers to {target}, which is missing"


root = pathlib.Path(sys.argv[1])
pages = sorted(root.rglob("*.html"))
found = [f"site: {page.relative_to(root)} {complaint}" for page in pages for complaint in complaints(root, page)]
print("\n".join(found) if found else f"site: all that {len(pages)} pages refer to is there")
sys.exit(bool(found) or not pages)
