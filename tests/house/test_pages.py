"""Every file and folder of the tree that a page of docs/internals names is there."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ("base", "bench", "bindings", "cli", "cmake", "distance", "docs", "examples", "fuzz", "hnsw", "include", "ranker",
           "recommend", "storage", "tests", "tools")
NAMED = re.compile(r"(?<![\w/.-])(?:" + "|".join(FOLDERS) + r")/[\w./*-]*")


def named(text):
    """Paths in a text. Words in capitals stand for any name, and so such a path is left out."""
    found = {path.rstrip(".") for path in NAMED.findall(text)}
    return {path for path in found if not re.search(r"[A-Z]{3,}", path.replace("FORMAT.md", "").replace("SPEC.md", "")
                                                    .replace("GUIDE.md", "").replace("BENCHMARKS.md", ""))}


def missing(text):
    return sorted(path for path in named(text) if not any(ROOT.glob(path)))


class Pages(unittest.TestCase):
    def test_the_check_finds_fault(self):
        self.assertEqual(missing("tests/house/test_pages.py, base/nothing.c, hnsw/graph/*.h. x/base/no.c tests/test_NAME.c"),
                         ["base/nothing.c"])

    def test_every_page(self):
        for page in sorted((ROOT / "docs/internals").glob("*.md")):
            with self.subTest(page=page.name):
                self.assertEqual(missing(page.read_text(encoding="utf-8")), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
