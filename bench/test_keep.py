"""Tests of what benchmarks keep: records that read back the same, and pictures that lose nothing."""

import json
import pathlib
import tempfile
import unittest

import keep

MOST_BYTES = 2_000_000

MATPLOTLIB = """<?xml version="1.0" encoding="utf-8" standalone="no"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="648pt" viewBox="0 0 648 396" xmlns="http://www.w3.org/2000/svg">
 <metadata><any>of the program that drew it</any></metadata>
 <defs>
  <style type="text/css">*{stroke-linejoin: round}</style>
 </defs>
 <g id="figure_1">
  <g id="line_1">
   <path d="M 1.2345 2.5 L 1.2345 9.96 " clip-path="url(#p1f)" style="stroke: #b0b0b0"/>
  </g>
  <g id="line_2">
   <defs>
    <path id="m77" d="M 0 0 L 0 3.55" style="stroke: #000000"/>
   </defs>
   <use xlink:href="#m77" x="327.7001" y="-4e-05" style="stroke: #000000"/>
   <path d="M 3.2345 2.5 L 3.2345 9.96 " clip-path="url(#p1f)" style="stroke: #b0b0b0"/>
  </g>
  <text id="t" style="font-size: 10px" transform="translate(1.06 2.04)">recall, 0.12345</text>
 </g>
 <defs>
  <clipPath id="p1f"><rect x="62.64" y="28.8" width="5.04" height="7"/></clipPath>
 </defs>
</svg>
"""


class Records(unittest.TestCase):
    def written(self, found, **more):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "record.json"
            keep.record(path, found, **more)
            return path.read_text(encoding="utf-8")

    def test_it_reads_back_without_what_is_raw(self):
        found = {"name": "glove100 µ", "none": None, "yes": True, "empty": [], "of": {"a": [1, 2.5, "x"] * 60, "b": {}},
                 "events": [1, 2]}
        text = self.written(found, raw=["events"])
        del found["events"]
        self.assertEqual(json.loads(text), found)
        self.assertLessEqual(max(map(len, text.splitlines())), keep.COLUMNS)

    def test_floats_are_rounded_wherever_they_lie(self):
        self.assertEqual(json.loads(self.written({"a": [{"b": 1 / 3, "c": (1e9 / 7, 12345678901)}]})),
                         {"a": [{"b": 0.333333333, "c": [142857143.0, 12345678901]}]})

    def test_short_entries_share_a_line(self):
        self.assertEqual(self.written({"a": 1, "b": [1, 2]}), '{"a": 1, "b": [1, 2]}\n')
        self.assertLess(len(self.written({"a": list(range(1000))}).splitlines()), 60)


class Tree(unittest.TestCase):
    def test_all_records_and_pictures_are_small_together(self):
        kept = [path for path in (pathlib.Path(__file__).parent / "results").iterdir() if "-part" not in path.stem]
        self.assertLessEqual(sum(path.stat().st_size for path in kept), MOST_BYTES)


class Pictures(unittest.TestCase):
    small = keep.smaller(MATPLOTLIB)

    def test_numbers_of_shapes_are_short_and_texts_stay(self):
        self.assertIn('x="327.7"', self.small)
        self.assertIn('transform="translate(1.1 2)"', self.small)
        self.assertIn("recall, 0.12345", self.small)
        self.assertNotIn("metadata", self.small)

    def test_lines_of_one_kind_are_one_path(self):
        self.assertIn('d="M 1.2 2.5 L 1.2 10 M 3.2 2.5 L 3.2 10"', self.small)

    def test_references_hold(self):
        for name in ('"#i0"', "#i1)"):
            self.assertIn(name, self.small)
        self.assertEqual(self.small.count('id="'), 2)

    def test_each_style_stands_once(self):
        self.assertEqual([self.small.count(style) for style in ("#b0b0b0", "#000000", "font-size")], [1, 1, 1])


if __name__ == "__main__":
    unittest.main()
