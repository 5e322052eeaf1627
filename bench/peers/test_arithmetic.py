"""The arithmetic of the race: the choice of settings, ratios, verdicts and tables. Needs none of the libraries."""

import copy
import json
import pathlib
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

import choose  # noqa: E402
import engines  # noqa: E402
import executed  # noqa: E402
import lineup  # noqa: E402
import records  # noqa: E402
import report  # noqa: E402
import table  # noqa: E402


class Choice(unittest.TestCase):
    def test_ladder_holds_both_ends_and_rises_finely(self):
        ladder = choose.Sweep("ef", 10, 4096).ladder()
        self.assertEqual((ladder[0], ladder[-1]), (10, 4096))
        for one, two in zip(ladder, ladder[1:]):
            self.assertTrue(one < two <= max(one + 1, one * 1.04))

    def test_least_finds_the_first_for_every_bound(self):
        values = list(range(3, 40))
        for bound in values:
            self.assertEqual(choose.least(values, lambda v: v >= bound), bound)
        self.assertIsNone(choose.least(values, lambda v: False))

    def test_least_does_not_try_far_beyond_the_answer(self):
        tried = []
        choose.least(list(range(1000)), lambda v: tried.append(v) or v >= 20)
        self.assertLess(max(tried), 50)

    def test_candidates_of_each_combination(self):
        # Half the others' list cannot reach 0.95 whatever the first setting is.
        def measure(params):
            return {"recall": min(params["ef"] / 1000, 0.92 if params["rerank"] == 1 else 1.0), "qps": 1.0}

        seen = choose.Seen(measure)
        found = choose.candidates(choose.Sweep("ef", 1, 1000, rerank=(1, 2)), seen, (0.90, 0.95, 0.99))
        self.assertEqual([p["rerank"] for p in found[0.90]], [1, 2])
        self.assertEqual([p["rerank"] for p in found[0.95]], [2])
        for target, params in found.items():
            for chosen in params:
                self.assertGreaterEqual(measure(chosen)["recall"], target)
                below = choose.Sweep("ef", 1, 1000).ladder()
                below = below[below.index(chosen["ef"]) - 1]
                self.assertLess(measure({**chosen, "ef": below})["recall"], target)

    def test_a_curve_has_the_front_of_high_recalls(self):
        points = [{"recall": recall, "qps": qps} for recall, qps in ((0.7, 9.0), (0.8, 5.0), (0.9, 4.0), (0.85, 3.0))]
        self.assertEqual(choose.curve(points), [[0.8, 5.0], [0.9, 4.0]])

    def test_ends_of_what_is_tried(self):
        sweep = choose.Sweep("ef", 1, 1000, rerank=(1, 2), one=(7,))
        self.assertEqual(sweep.ends({"ef": 1000, "rerank": 2, "one": 7}), ["rerank"])
        self.assertEqual(sweep.ends({"ef": 1000, "rerank": 1, "one": 7}), [])
        self.assertEqual(choose.Sweep("ef", 1, 9, kind=("a", "b")).ends({"ef": 5, "kind": "b"}), [])

    def test_pick(self):
        self.assertIsNone(choose.pick([], None))
        self.assertEqual(choose.pick(["only"], None), "only")  # without a measurement
        self.assertEqual(choose.pick([{"a": 1}, {"a": 3}, {"a": 2}], lambda p: p["a"]), {"a": 3})

    def test_front(self):
        points = [{"recall": r, "qps": q} for r, q in ((0.9, 10), (0.95, 5), (0.93, 4), (0.91, 5), (0.99, 1))]
        self.assertEqual([(p["recall"], p["qps"]) for p in choose.front(points)], [(0.9, 10), (0.95, 5), (0.99, 1)])


def entry(name, size, ours=False, skip=""):
    engine = name.split()[0]
    if skip:
        return {"name": name, "engine": engine, "ours": ours, "skip": skip, "version": "1"}
    return {"name": name, "engine": engine, "ours": ours, "bytes_per_vector": size, "resident_per_vector": size,
            "build_s": 1.0, "version": "1", "variant": name}


def rounds(speeds, mode="one", target="0.95"):
    return [{"name": name, "mode": mode, "target": target, "round": number, "qps": qps, "recall": 0.95}
            for name, series in speeds.items() for number, qps in enumerate(series)]


ENTRIES = [entry("us big", 400, True), entry("us small", 200, True), entry("them fast", 500), entry("them slow", 250),
           entry("them absent", 0, skip="no such processor")]
# The machine halves its speed in the second round: only ratios of the same round are right.
SPEEDS = {"us big": [400, 200, 404], "us small": [300, 150, 300], "them fast": [100, 50, 100],
          "them slow": [80, 40, 80]}


class Verdicts(unittest.TestCase):
    def reached(self, name, rows=1000, entries=ENTRIES, speeds=SPEEDS, mode="one"):
        summary = report.summarise({"name": name, "rows": rows}, entries, rounds(speeds, mode))
        return {target["name"].split(", ")[-1]: target for target in summary["targets"]}

    def test_ratio_is_of_the_same_round(self):
        cell = report.speeds(rounds(SPEEDS))[("one", "0.95")]
        self.assertEqual(report.ratio(cell, "us big", "them fast"), 4.0)
        self.assertEqual(cell["them fast"]["qps"], {"median": 100, "min": 50, "max": 100})

    def test_glove(self):
        found = self.reached("glove100")
        self.assertEqual((found["best of all"]["target"], found["best of all"]["reached"]), (4.0, 4.0))
        self.assertTrue(found["best of all"]["met"])
        small = found["ours of at most 328 bytes"]
        self.assertEqual((small["ours"], small["reached"], small["met"]), ("us small", 3.0, True))

    def test_measured_bytes_of_the_small_peer_take_the_place_of_the_published(self):
        entries = [*ENTRIES, entry("svs LVQ4x8", 150)]
        found = self.reached("glove100", entries=entries)
        self.assertEqual(found["ours of at most 150 bytes"]["reached"], 0.0)
        self.assertFalse(found["ours of at most 150 bytes"]["met"])

    def test_other_sets(self):
        found = self.reached("gloss384")
        # Beside them fast (500 bytes) us big (400) is 4 times as fast; us small (200) is what fits beside them slow.
        same = found["peers of no fewer bytes"]
        self.assertEqual((same["ours"], same["theirs"], same["reached"]), ("us small", "them slow", 3.75))
        half = found["best of all at half its bytes"]  # 250: us small alone
        self.assertEqual((half["ours"], half["theirs"], half["reached"]), ("us small", "them fast", 3.0))

    def test_larger_than_every_peer_is_no_win(self):
        entries = [entry("us big", 900, True), *ENTRIES[2:]]
        found = self.reached("gloss384", entries=entries)
        self.assertNotIn("peers of no fewer bytes", found)
        self.assertEqual(found["best of all at half its bytes"]["reached"], 0.0)

    def test_of_small_peers_none_escapes(self):
        # A large variant of ours does not stand for the small one beside a small and fast peer.
        speeds = {**SPEEDS, "them slow": [200, 100, 200]}
        same = self.reached("gloss384", speeds=speeds)["peers of no fewer bytes"]
        self.assertEqual((same["ours"], same["theirs"], same["reached"]), ("us small", "them slow", 1.5))
        speeds.pop("us small")
        self.assertEqual(self.reached("gloss384", speeds=speeds)["peers of no fewer bytes"]["reached"], 0.0)

    def test_disturbed(self):
        events = [{"qps": wall, "cpu_qps": 100.0} for wall in (100, 96, 94, 50)] + [{"qps": 1.0}]
        self.assertEqual(report.disturbed(events), 0.5)
        self.assertEqual(report.disturbed([]), 0.0)

    def test_not_reaching_the_recall_is_a_miss(self):
        found = self.reached("glove100", speeds={"them fast": [100, 100, 100]})
        self.assertEqual((found["best of all"]["reached"], found["best of all"]["met"]), (0.0, False))

    def test_no_peer_no_verdict(self):
        self.assertEqual(self.reached("glove100", speeds={"us big": [100, 100, 100]}), {})

    def test_held_to_avx2(self):
        entries = [*ENTRIES[:2], entry("hnswlib M=16", 500), ENTRIES[2]]
        summary = report.summarise({"name": "glove100", "rows": 1000}, entries,
                                   rounds({**SPEEDS, "hnswlib M=16": [50, 25, 50]}), "avx2")
        self.assertEqual([(t["ours"], t["theirs"], t["reached"]) for t in summary["targets"]],
                         [("us small", "hnswlib M=16", 6.0)])

    def test_speeds_without_python_are_not_judged(self):
        events = rounds(SPEEDS) + rounds({"us big": [1, 1, 1], "them fast": [9, 9, 9]}, report.NATIVE)
        data = {"name": "glove100", "rows": 1000}
        self.assertEqual(report.summarise(data, ENTRIES, events)["targets"],
                         report.summarise(data, ENTRIES, rounds(SPEEDS))["targets"])

    def test_calls(self):
        events = [{"engine": "them", "variant": "fast", "round": at, "us": us} for at, us in enumerate((20, 40, 30))]
        summary = {"calls": report.calls(events)}
        self.assertEqual(summary["calls"], {"them": {"variant": "fast", "us": {"median": 30, "min": 20, "max": 40}}})
        self.assertEqual((report.call_us(summary, "them"), report.call_us(summary, "us"), report.call_us({}, "them")),
                         (30, None, None))

    def test_builds_are_compared_round_by_round(self):
        entries = [{"name": "them", "ours": False}, {"name": "us", "ours": True}]
        events = [{"name": name, "round": number, "build_s": seconds, "cpu_s": 2 * seconds}
                  for name, times in (("us", (10, 20, 40)), ("them", (30, 40, 160))) for number, seconds in enumerate(times)]
        found = report.builds(entries, events)
        self.assertEqual(found["them"]["ratio"], {"median": 3, "min": 2, "max": 4})
        self.assertEqual(found["us"]["ratio"], {"median": 1, "min": 1, "max": 1})
        self.assertEqual(found["them"]["cpu_s"]["median"], 80)
        self.assertEqual(report.builds([], []), {})
        lines = report.race_of_builds({"builds": found})
        self.assertIn("builds by turns", lines[0])
        self.assertTrue(lines[2].endswith("3.00  (2.00 to 4.00)"), lines[2])
        self.assertEqual(report.race_of_builds({}), [])

    def test_tails_of_single_queries(self):
        events = [{"name": "us", "mode": report.NATIVE, "target": "0.90", "round": number, "qps": 10.0, "p99_us": us}
                  for number, us in enumerate((7, 900, 8))]
        self.assertEqual(report.speeds(events)[(report.NATIVE, "0.90")]["us"]["p99_us"], 8)
        found = {(report.NATIVE, "0.90"): {"us": {"p99_us": 8}}}
        self.assertEqual(report.tails(found, "us", ["0.90", "0.95"]), "   p99, us: 8 / -")
        self.assertEqual(report.tails({}, "us", ["0.90"]), "")

    def test_why_not_without_python(self):
        entries = [{**entry("them fast", 1), "no_native": "no headers"}, {**entry("them slow", 1), "no_native": ""},
                   {**entry("others one", 1), "no_native": "no headers"}, entry("us big", 1)]
        self.assertEqual(report.no_native(entries), {"no headers": ["them", "others"]})

    def test_batch_and_large_sets(self):
        self.assertEqual(self.reached("glove100", mode="batch")["best of all"]["target"], 2.5)
        self.assertEqual(self.reached("gloss384", mode="batch")["best of all"]["target"], 1.5)
        self.assertEqual(self.reached("synth", rows=1_000_000, mode="batch")["best of all"]["target"], 1.125)


class Tables(unittest.TestCase):
    record = {"data": {"name": "glove100", "metric": "cosine", "rows": 1000, "dim": 4}, "machine": {"cpu": "a CPU"},
              "parameters": {"clock": "wall", "max_isa": ""},
              "date": "2026-01-01T00:00:00", "commit": "c" * 40, "contenders": ENTRIES,
              "summary": report.summarise({"name": "glove100", "rows": 1000}, ENTRIES, rounds(SPEEDS))}

    def markdown(self, **changes):
        """The table of the record with some of it changed, its paragraphs in one line each."""
        lines = table.markdown("peers-glove100", {**self.record, **changes}).split("\n\n")
        return "\n\n".join(part if part.startswith("|") else part.replace("\n", " ") for part in lines)

    def test_markdown(self):
        text = self.markdown()
        rows = [line for line in text.splitlines() if line.startswith("| ") and "them" in line or "**us" in line]
        # The table has the variants that are their library's fastest somewhere, ours first. Dashes stand for recalls that
        # were not reached.
        self.assertEqual([row.split(" | ")[0] for row in rows], ["| **us big**", "| them fast", "| them absent"])
        self.assertIn("– / 400 / –", rows[0])
        self.assertIn("| not measured | reason |\n|---|---|\n| them absent | no such processor |", text)
        self.assertNotIn("who took part", text)
        parameters = {**self.record["parameters"], "engines": "us, them fast"}
        self.assertIn("| who took part |\n|---|\n| us, them fast |", self.markdown(parameters=parameters))

    def test_what_a_reader_must_know_of_the_run(self):
        self.assertIn("### glove100 on a CPU\n\nThe set has 1,000 vectors of 4 elements, under cosine. The race ran "
                      "on one core on 2026-01-01, at commit cccccccccccc. ", self.markdown())
        events = [{**event, "cpu_qps": event["qps"] * 2} for event in rounds(SPEEDS)]
        summary = report.summarise({"name": "glove100", "rows": 1000}, ENTRIES, events)
        text = self.markdown(commit="c" * 40 + " with changes", summary=summary,
                             machine={"cpu": "a CPU", "generation": "family 25, model 17"})
        self.assertIn("### glove100 on a CPU (family 25, model 17)\n", text)
        self.assertIn("at commit cccccccccccc with changes. ", text)
        self.assertIn("in 100% of the timings.", text)
        held = {**self.record["parameters"], "max_isa": "avx2"}
        self.assertIn("### glove100 on a CPU, ours held to avx2\n", self.markdown(parameters=held))
        for name in ("peers-glove100.svg", "peers-glove100.json"):
            self.assertIn(f"](../bench/results/{name})", text)

    def test_paragraphs_are_no_longer_than_a_line_of_text(self):
        entries = [*ENTRIES, *(entry(f"them number {number}", 0, skip="no such processor") for number in range(20))]
        text = table.markdown("peers-glove100", {**self.record, "contenders": entries})
        self.assertLessEqual(max(len(line) for line in text.splitlines() if not line.startswith("|")), table.COLUMNS)
        # A reason is told once.
        self.assertEqual(text.count("no such processor"), 1)

    def test_a_recall_that_is_off_is_told(self):
        def cell(recall):
            return table.cell({("one", "0.95"): {"us": {"qps": {"median": 1000.0}, "recall": recall}}}, "us", "one", "0.95")

        self.assertEqual([cell(recall) for recall in (0.951, 0.9451, 0.9449, 0.9561, None)],
                         ["1,000", "1,000", "1,000 (0.945)", "1,000 (0.956)", "1,000"])

    def test_columns_of_what_was_measured(self):
        def row(record, name):
            return next(line for line in self.markdown(**record).splitlines() if name in line)

        head = next(line for line in self.markdown().splitlines() if "one query per call" in line)
        self.assertEqual(head, "| | version | bytes per vector | one query per call | the batch call | build, s |")
        events = rounds(SPEEDS) + rounds({"us big": [1000] * 3, "them slow": [5000] * 3}, report.NATIVE)
        summary = {**report.summarise({"name": "glove100", "rows": 1000}, ENTRIES, events),
                   "calls": {"us": {"variant": "big", "us": {"median": 2.44, "min": 2.0, "max": 3.0}}}}
        entries = [{**one, "no_native": "no headers" if one["engine"] == "them" else ""} for one in ENTRIES]
        record = {**self.record, "summary": summary, "contenders": entries}
        self.assertIn("| one query per call | the same from C or C++ | a call costs, µs | the batch call |",
                      self.markdown(**record))
        self.assertIn("| – / 400 / – | – / 1,000 / – | 2.4 | – / – / – |", row(record, "us big"))
        self.assertIn("| – / 100 / – | – | – | – / – / – |", row(record, "them fast"))
        self.assertIn("| not from C or C++ | reason |\n|---|---|\n| them | no headers |", self.markdown(**record))
        self.assertNotIn("| them slow", self.markdown(**record))  # it leads in no column of Python's
        text = report.table(record, entries, summary)
        for words in ("not them: no headers", "1,000", "us big", "2.4"):
            self.assertIn(words, text)

    def test_printed_table_holds_everyone(self):
        text = report.table(self.record, ENTRIES, self.record["summary"])
        for one in ENTRIES:
            self.assertIn(one["name"], text)

    def test_between(self):
        begin, end = "<!-- peers: begin -->", "<!-- peers: end -->"
        other = "<!-- peers-front: begin -->\nkept\n<!-- peers-front: end -->\n"
        text = f"before\n{begin}\nold\n{end}\n{other}after\n"
        self.assertEqual(table.between(text, "peers", "new"), f"before\n{begin}\nnew\n{end}\n{other}after\n")
        for wrong in ("none", f"{end}\n{begin}", text + text):
            with self.assertRaises(SystemExit):
                table.between(wrong, "peers", "new")


class Front(unittest.TestCase):
    """The README's table: one line a library."""

    def found(self, **speeds):
        return report.lookup(report.summarise({"name": "glove100", "rows": 1000}, self.entries,
                                              rounds(SPEEDS) + rounds(speeds, target="0.90")))

    entries = [*ENTRIES, entry("weak one", 100), entry("weak two", 100), entry("lost", 100)]

    def test_the_strongest_of_each_library(self):
        # Nothing of the weak one reaches the middle recall, and nothing of the lost one any.
        found = self.found(**{"weak one": [5, 5, 5], "weak two": [7, 7, 7], "them slow": [900, 900, 900]})
        names = [one["name"] for one in table.leaders(self.entries, found)]
        self.assertEqual(names, ["us big", "them fast", "weak two"])

    def test_front(self):
        text = table.front("peers-glove100-new", {**Tables.record, "contenders": self.entries})
        self.assertEqual([line.split(" | ")[0] for line in text.splitlines() if " 400 " in line or "them" in line],
                         ["| **us big**", "| them fast"])
        self.assertTrue(text.endswith("](bench/results/peers-glove100-new.svg)"))
        self.assertIn("not measured: 1; [why](docs/BENCHMARKS.md#the-races)", text)

    def test_both_pages_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / table.RESULTS).mkdir(parents=True)
            (root / "docs").mkdir()
            (root / table.ALL).write_text("<!-- peers: begin -->\nold\n<!-- peers: end -->\n")
            (root / table.FRONT).write_text("<!-- peers-front: begin -->\nold\n<!-- peers-front: end -->\n")
            held = {**Tables.record["parameters"], "max_isa": "avx2"}
            for stem, changes in {"glove100": {}, "glove100-new": {"date": "2026-02-01T00:00:00"},
                                  "glove100-newest-part": {"date": "2026-04-01T00:00:00"},
                                  "glove100-avx2": {"date": "2026-03-01T00:00:00", "parameters": held},
                                  "gloss384": {"data": {**Tables.record["data"], "name": "gloss384"}}}.items():
                (root / table.RESULTS / f"peers-{stem}.json").write_text(json.dumps({**Tables.record, **changes}))
            table.write(root)
            written = (root / table.ALL).read_text()
            stems = ["gloss384", "glove100-new", "glove100", "glove100-avx2"]
            self.assertEqual([line for line in written.splitlines() if line.startswith("Record")],
                             [f"Record: [peers-{stem}.json](../bench/results/peers-{stem}.json)." for stem in stems])
            shown = (root / table.FRONT).read_text()
            self.assertIn("(bench/results/peers-glove100-new.svg)", shown)
            self.assertNotIn("old", written + shown)
            for path in (root / table.RESULTS).glob("*"):
                path.unlink()
            with self.assertRaisesRegex(SystemExit, "no record of glove100"):
                table.write(root)


class Records(unittest.TestCase):
    """The records that leave when one is made."""

    about = {"data": {"name": "glove100"}, "machine": {"cpu": "a CPU", "generation": "model 1"},
             "parameters": {"max_isa": ""}}

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def keep(self, stem, **changes):
        record = copy.deepcopy(self.about)
        for key, value in changes.items():
            part = next(part for part in record.values() if key in part)
            part[key] = value
        path = self.folder / f"peers-{stem}.json"
        path.write_text(json.dumps(record))
        return path

    def test_one_of_a_set_and_machine_stands(self):
        new, old = self.keep("glove100-new"), self.keep("glove100")
        self.keep("glove100-other", generation="model 2")
        self.keep("glove100-xeon", cpu="another CPU")
        self.keep("glove100-avx2", max_isa="avx2")
        self.keep("gloss384", name="gloss384")
        self.keep("glove100-part")
        self.assertEqual(records.replaced(self.folder, new, self.about), [old])

    def test_a_part_takes_no_place(self):
        self.keep("glove100")
        self.assertEqual(records.replaced(self.folder, self.keep("glove100-part"), self.about), [])

    def test_a_picture_leaves_with_its_record(self):
        old = self.keep("glove100")
        for name in ("peers-glove100.svg", "peers-glove100-ip.svg"):
            (self.folder / name).touch()
        records.remove(old)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["peers-glove100-ip.svg"])

    def test_another_machines_place_is_not_taken(self):
        records.refuse_other_machine(self.folder / "peers-none.json", self.about)
        records.refuse_other_machine(self.keep("glove100"), self.about)
        with self.assertRaisesRegex(SystemExit, "another CPU.*--label"):
            records.refuse_other_machine(self.keep("glove100", cpu="another CPU"), self.about)


class Lineup(unittest.TestCase):
    def test_each_library_has_its_file(self):
        for name in engines.NAMES:
            self.assertTrue((pathlib.Path(engines.__file__).parent / f"{name.replace('-', '_')}_engine.py").exists(), name)

    def test_a_library_of_its_own_environment_has_requirements(self):
        for name in engines.APART:
            self.assertIn(name, engines.NAMES)
            needs = pathlib.Path(engines.__file__).parent.parent / f"{name}-requirements.txt"
            self.assertIn(f"{name}==", needs.read_text())
            self.assertTrue(engines.python(name, pathlib.Path("x")).endswith(f"x/{name}-venv/bin/python"))
        self.assertEqual(engines.python("hnswlib", pathlib.Path("x")), sys.executable)

    def test_versions_are_of_the_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            about = pathlib.Path(folder) / "lib/python3.9/site-packages/some_thing-1.2.dist-info"
            about.mkdir(parents=True)
            (about / "METADATA").write_text("Metadata-Version: 2.1\nName: some-thing\nVersion: 1.2\n")
            self.assertEqual(lineup.version("some-thing", folder), "1.2")
            self.assertEqual(lineup.version("another", folder), "")

    def test_a_whole_name_takes_one_variant_alone(self):
        names = ["hnswlib M=16", "hnswlib M=16 efc=500", "hnswlib M=32", "hnswlib-like M=16"]
        self.assertEqual(lineup.wanted(["hnswlib M=16"], names), names[:1])
        self.assertEqual(lineup.wanted(["hnswlib M=1", "hnswlib M=32"], names), names[:3])
        self.assertEqual(lineup.wanted(["hnswlib"], names), names[:3])

    def test_words_that_name_no_library_are_refused(self):
        lineup.refuse_unknown(["scann-core", "hnswlib M=16"])
        for word in ("scann", "glass HNSW", "hnsw"):
            with self.assertRaises(SystemExit) as refused:
                lineup.refuse_unknown(["shortlist", word])
            self.assertIn(f"no library '{word}'", str(refused.exception))


class Executed(unittest.TestCase):
    COUNTS = {"own": 2000, "all": 3000, "bits512": 0, "bits256": 400, "bits128": 90, "byte_dot": 1, "tile": 0,
              "prefetch": 50}

    def test_narrow(self):
        self.assertFalse(executed.is_narrow(self.COUNTS))
        self.assertTrue(executed.is_narrow({**self.COUNTS, "bits256": 9}))
        self.assertFalse(executed.is_narrow({**self.COUNTS, "bits256": 0, "bits512": 11}))

    def test_nothing_of_the_library_is_a_reason(self):
        self.assertEqual(executed.counted(json.dumps(self.COUNTS), 0), self.COUNTS)
        self.assertEqual(executed.counted('{"why": "cannot trace it"}', 0), {"why": "cannot trace it"})
        self.assertIn("none of 3000 instructions", executed.counted(json.dumps({**self.COUNTS, "own": 0}), 0)["why"])
        self.assertIn("exit code 3", executed.counted("", 3)["why"])

    def test_table(self):
        kept = [{"name": "us", "executed": self.COUNTS}, {"name": "them", "executed": {"why": "cannot trace it"}},
                {"name": "old"}]
        text = table.executed(kept)
        self.assertIn("| us | 0 | 200 | 45 | 0.5 | 0 | 25 |", text)
        self.assertNotIn("them", text)
        self.assertEqual(table.executed(kept[1:]), "")


if __name__ == "__main__":
    unittest.main()
