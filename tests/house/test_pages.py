"""Pages: the files and functions that a page of docs/internals names are there, no such page and no public header is too
long, links of all pages lead somewhere, and no source leads to the notebook."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ("base", "bench", "bindings", "cluster", "cli", "cmake", "distance", "docs", "examples", "fuzz", "hnsw", "include",
           "ranker", "recommend", "storage", "tests", "tools")
NAMED = re.compile(r"(?<![\w/.-])(?:" + "|".join(FOLDERS) + r")/[\w./*-]*")
MOST_WORDS = 2500
MOST_WORDS_OF_HEADERS = {"include/shortlist.h": 8000, "include/shortlist_import.h": 500, "include/shortlist_rank.h": 4500}
# Links to other pages, not those to the web.
LINK = re.compile(r"\]\((?!\w+:)([^)\s]*)\)")
# bench/ writes tables into pages of the notebook.
SOURCES = [folder for folder in FOLDERS if folder not in ("docs", "bench")]
NOTEBOOK = "docs/" + "notebook"


def named(text):
    """Paths in a text. Words in capitals stand for any name, and so such a path is left out."""
    found = {path.rstrip(".") for path in NAMED.findall(text)}
    return {path for path in found if not re.search(r"[A-Z]{3,}", path.replace("FORMAT.md", "").replace("SPEC.md", "")
                                                    .replace("GUIDE.md", "").replace("BENCHMARKS.md", ""))}


def missing(text):
    return sorted(path for path in named(text) if not any(ROOT.glob(path)))


def unknown(text, known):
    """Names of the library's own in a text that no source has."""
    return sorted(set(re.findall(r"\b(?:sl|SL)_\w*\w", text)) - known)


def is_long(text, most=MOST_WORDS):
    """As `wc -w` counts."""
    return len(text.split()) > most


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text):
    """The anchors that GitHub gives a page's headings."""
    found = set()
    for heading in re.findall(r"^#+ +(.*?) *$", without_code(text), flags=re.MULTILINE):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while (anchor if not number else f"{anchor}-{number}") in found:
            number += 1
        found.add(anchor if not number else f"{anchor}-{number}")
    return found


def broken(page, text):
    """Links of a page that lead to no file, or to no heading of it."""
    found = []
    for link in LINK.findall(without_code(text)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if path and not target.exists():
            found.append(link)
        elif anchor and anchor not in anchors(text if target == page else target.read_text(encoding="utf-8")):
            found.append(link)
    return found


def leads_to_notebook(text):
    return NOTEBOOK in text


def sources():
    listed = subprocess.run(["git", "ls-files", "-z", "--", *SOURCES], cwd=ROOT, capture_output=True, check=False)
    names = listed.stdout.decode().split("\0")[:-1] if listed.returncode == 0 else []
    files = [ROOT / name for name in names]
    if not files:  # a copy of the tree without git
        files = [file for folder in SOURCES for file in (ROOT / folder).rglob("*")]
    return [file for file in files if file.is_file() and file.suffix in (".c", ".h", ".cpp", ".def", ".py", ".sh", ".txt", ".cmake")]


def names(files):
    text = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
    return set(re.findall(r"\b(?:sl|SL)_\w+", text))


def pages(*folders):
    return [page for folder in folders for page in sorted((ROOT / folder).glob("*.md"))]


class Pages(unittest.TestCase):
    def test_the_check_finds_fault(self):
        self.assertEqual(missing("tests/house/test_pages.py, base/nothing.c, hnsw/graph/*.h. x/base/no.c tests/test_NAME.c"),
                         ["base/nothing.c"])
        self.assertEqual(unknown("`sl_there`, sl_gone(), SL_THERE and SL_GONE", {"sl_there", "SL_THERE"}),
                         ["SL_GONE", "sl_gone"])
        self.assertTrue(is_long("a word " * 1251))
        self.assertFalse(is_long("a word\n" * 1250))
        self.assertTrue(is_long("int a; /* a word */\n" * 2, most=11))
        self.assertFalse(is_long("int a; /* a word */\n" * 2, most=12))
        page = ROOT / "docs/internals/page.md"
        text = ("# One, `two`: three\n[a](house.md) [b](../GUIDE.md) [c](nothing.md) [d](#one-two-three) [e](#four)\n"
                "[f](house.md#build) [g](house.md#no-tests) [h](https://example.org/nothing.md)\n"
                "```\n# four\n[i](nothing.md)\n```\n## Again\n## Again\n[j](#again-1)\n")
        self.assertEqual(broken(page, text), ["nothing.md", "#four", "house.md#no-tests"])
        self.assertTrue(leads_to_notebook(f"/* {NOTEBOOK}/search.md has more. */"))

    def test_every_page_names_files_that_are_there(self):
        for page in pages("docs/internals"):
            with self.subTest(page=page.name):
                self.assertEqual(missing(page.read_text(encoding="utf-8")), [])

    def test_every_page_names_what_sources_have(self):
        known = names(sources())
        for page in pages("docs/internals"):
            with self.subTest(page=page.name):
                self.assertEqual(unknown(page.read_text(encoding="utf-8"), known), [])

    def test_no_page_of_the_manual_is_long(self):
        for page in pages("docs/internals"):
            with self.subTest(page=page.name):
                self.assertFalse(is_long(page.read_text(encoding="utf-8")))

    def test_no_public_header_is_long(self):
        for header, most in MOST_WORDS_OF_HEADERS.items():
            with self.subTest(header=header):
                self.assertFalse(is_long((ROOT / header).read_text(encoding="utf-8"), most))

    def test_links_lead_somewhere(self):
        for page in pages(".", "docs", "docs/internals", NOTEBOOK):
            with self.subTest(page=page.name):
                self.assertEqual(broken(page, page.read_text(encoding="utf-8")), [])

    def test_no_source_leads_to_the_notebook(self):
        found = sources()
        self.assertGreater(len(found), 500)
        for file in found:
            if leads_to_notebook(file.read_text(encoding="utf-8", errors="replace")):
                self.fail(f"{file.relative_to(ROOT)} leads to {NOTEBOOK}: say what a reader needs where it is")


if __name__ == "__main__":
    sys.exit(unittest.main())
