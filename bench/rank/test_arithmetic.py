"""The arithmetic of ./dev bench rank: ratios, targets and the rows of its tables. Needs none of the peers."""

import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

import report  # noqa: E402

ABOUT = {"machine": {"cpu": "a CPU"}}


def request(theirs, items="layer", form="joined", shape="small", **more):
    return {"event": "request", "shape": shape, "items": items, "form": form, "ours_us": 100.0, "theirs_us": theirs,
            "difference": 1e-7, "peer": "onnxruntime 1", **more}


class Serving(unittest.TestCase):
    events = [request(400.0), request(250.0, form="once"), request(110.0, items="codes"),
              request(90.0, items="codes", form="once"),
              {**request(5.0, items=""), "event": "single", "ours_us": 10.0}]

    def test_target_is_judged_by_the_harder_form(self):
        facts = {f["name"]: f for f in report.summarise(self.events)["targets"]}
        of = facts["1 user, 500 candidates, small, times as fast"]
        self.assertEqual((of["reached"], of["met"]), (2.5, False))

    def test_forms_are_rows_of_their_own(self):
        rows = report.summarise([*self.events, request(300.0, form="once")])["serving"]
        once = next(row for row in rows if row["items"] == "layer" and row["form"] == "once")
        self.assertEqual(once["ratio"], {"median": 2.75, "min": 2.5, "max": 3.0})

    def test_events_of_before_were_joined(self):
        old = request(400.0)
        del old["form"]
        self.assertEqual(report.summarise([old])["serving"][0]["form"], "joined")

    def test_no_row_that_was_measured_is_left_out(self):
        summary = report.summarise(self.events)
        for text in (report.table(ABOUT, summary), report.markdown(ABOUT, summary)):
            for theirs in ("400.0", "250.0", "110.0", "90.0", "5.0"):
                self.assertIn(theirs, text)
            for words in ("the user's inputs once", "the items encoded ahead", "one row, small net"):
                self.assertIn(words, text)


def part(items, us, number=0, layers="f32"):
    return {"event": "item_part", "shape": "small", "items": items, "layers": layers, "round": number, "us": us,
            "difference": 1e-3, "best_shared": 0.9}


class ItemParts(unittest.TestCase):
    events = [part("layer", 90.0), part("layer-i8", 60.0), part("layer", 50.0, 1), part("layer-i8", 25.0, 1),
              part("layer-i8", 30.0, 0, "int8"), part("layer-i8", 10.0, 1, "int8")]

    def test_rounds_are_compared_with_themselves(self):
        rows = {(row["layers"], row["items"]): row for row in report.summarise(self.events)["item_parts"]}
        self.assertEqual(rows["f32", "layer-i8"]["ratio"], {"median": 1.75, "min": 1.5, "max": 2.0})
        self.assertEqual(rows["int8", "layer-i8"]["ratio"], {"median": 4.0, "min": 3.0, "max": 5.0})
        self.assertEqual(rows["f32", "layer"]["ratio"]["max"], 1)

    def test_rows_are_told(self):
        self.assertIn("small net, int8 layers, layer-i8", report.table(ABOUT, report.summarise(self.events)))


def funnel(layers, p50, number=0):
    return {"event": "funnel", "shape": "small", "layers": layers, "round": number, "requests": 9, "p50_us": p50,
            "p99_us": 2 * p50, "max_us": 3 * p50, "best_shared": 0.8}


class Funnel(unittest.TestCase):
    events = [funnel("none", 50.0), funnel("f32", 100.0), funnel("int8", 80.0), funnel("f32", 300.0, 1),
              funnel("int8", 100.0, 1)]

    def test_rounds_are_compared_with_themselves(self):
        summary = report.summarise(self.events)
        rows = {row["layers"]: row for row in summary["funnel"]}
        self.assertEqual(rows["int8"]["ratio"], {"median": 2.125, "min": 1.25, "max": 3.0})
        self.assertEqual([fact["reached"] for fact in summary["targets"]], [0.4])
        self.assertIn("INT8 layers, INT8 parts", report.table(ABOUT, summary))


if __name__ == "__main__":
    unittest.main()
