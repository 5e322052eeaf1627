"""Operators' metrics: `info --prometheus`, held to the format's rules and to a parser of Prometheus's own, and
`recall`."""

import os
import re
import subprocess
import unittest

from harness import COMMAND, clustered
from indexed import DIM, N, Indexed

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    text_string_to_metric_families = None

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"({NAME})\{{({LABEL}(?:,{LABEL})*)\}} (NaN|[+-]Inf|[-+0-9.e]+)")
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def unescaped(text):
    return re.sub(r"\\.", lambda found: ESCAPES[found.group()], text)


def parsed(text):
    """The types and samples of metrics in the text format; raises if they break one of its rules."""
    types, helps, samples, family = {}, {}, {}, None
    assert text.endswith("\n") and "\n\n" not in text
    for line in text[:-1].split("\n"):
        comment = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
        if comment:
            kind, name, rest = comment.groups()
            assert name not in (helps if kind == "HELP" else types), f"{kind} of {name} twice"
            if kind == "HELP":
                family = name
                helps[name] = rest
            else:
                assert name == family and rest in ("gauge", "counter"), line
                types[name] = rest
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        name, labels, value = sample.groups()
        assert name == family and name in types, f"{line} is not behind its family"
        pairs = tuple((key, unescaped(value)) for key, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))
        assert len({key for key, _ in pairs}) == len(pairs) and (name, pairs) not in samples, line
        samples[name, pairs] = float(value)
    for name, kind in types.items():
        assert (kind == "counter") == name.endswith("_total"), name
    return types, samples


class Metrics(Indexed):
    def metrics(self, path, *options):
        text = self.run_ok("info", path, "--prometheus", *options)
        types, samples = parsed(text)
        if text_string_to_metric_families:
            theirs = {(sample.name, tuple(sample.labels.items())): sample.value
                      for family in text_string_to_metric_families(text) for sample in family.samples}
            self.assertEqual(theirs, samples)
        return types, {name: value for (name, labels), value in samples.items() if len(labels) == 1}, samples

    def test_counts(self):
        self.build("--room", 1000)
        self.vectors("gone.ibin", [[i] for i in range(7)])
        self.run_ok("delete", "x.sl", "--ids", "gone.ibin")
        types, values, samples = self.metrics("x.sl")
        told = self.run_json("info", "x.sl")
        for name, wanted in (("vectors", N - 7), ("deleted_vectors", 7), ("in_repair_vectors", 0),
                             ("reusable_vectors", 0), ("room_vectors", 1000), ("dimensions", DIM),
                             ("bytes", told["bytes_total"]), ("file_bytes", os.path.getsize(self.path("x.sl"))),
                             ("file_disk_bytes", 512 * os.stat(self.path("x.sl")).st_blocks),
                             ("log_bytes", told["storage"]["bytes_log"]), ("log_lost", 0), ("recoveries_total", 0),
                             ("layer0_bytes", told["storage"]["bytes_layer0"])):
            self.assertEqual(values["shortlist_index_" + name], wanted, name)
        self.assertEqual(types["shortlist_index_recoveries_total"], "counter")
        self.assertTrue(all(name.startswith("shortlist_index_") for name in types))
        parts = {dict(labels)["part"]: value for (name, labels), value in samples.items()
                 if name == "shortlist_index_part_bytes"}
        self.assertEqual({"bytes_" + part: value for part, value in parts.items()},
                         {key: told[key] for key in told if key.startswith("bytes_") and key[6:] in parts})
        self.assertEqual(len(parts), 8)
        (kind, one), = [(dict(labels), value) for (name, labels), value in samples.items()
                        if name == "shortlist_index_info"]
        self.assertEqual((kind["metric"], kind["codes"], kind["place"], one), ("cosine", "i8", "map", 1))

    def test_searches_of_other_processes(self):
        """A batch of searches announces its commit, and its process and thread."""
        self.vectors("many.fbin", clustered(500, DIM, 4) * 200)
        self.build("--room", 1000)
        told = self.run_json("info", "x.sl")
        self.assertEqual((told["holders"], self.metrics("x.sl")[1]["shortlist_index_running_searches"]), ([], 0))
        self.assertNotIn("searches of", self.run_ok("info", "x.sl"))
        search = subprocess.Popen([COMMAND, "search", "x.sl", "many.fbin", "-k", "300", "--ef", "600", "--threads", "1",
                                   "-o", "found.ibin"], cwd=self.folder)
        try:
            found, values, text = [], {}, ""
            while search.poll() is None and not (found and values and text):
                holders = self.run_json("info", "x.sl")["holders"]
                # The thread announces twice for the moment in which it makes a searcher.
                found = found or (holders if len(holders) == 1 else [])
                now = self.metrics("x.sl")[1]
                values = values or (now if now["shortlist_index_running_searches"] == 1 else {})
                text = text or "".join(re.findall("\nsearches of other processes: 1;.*", self.run_ok("info", "x.sl")))
            self.assertEqual([(one["pid"], one["tid"]) for one in found], [(search.pid, search.pid)])
            self.assertEqual((values["shortlist_index_running_searches"], values["shortlist_index_oldest_search_commit"]),
                             (1, found[0]["commit"]))
            self.assertIn(f"commit {found[0]['commit']}, in process {search.pid}, thread {search.pid}", text)
        finally:
            search.kill()
            search.wait()

    def test_of_a_sample(self):
        self.build()
        _, values, _ = self.metrics("x.sl", "--sample", 50)
        self.assertEqual(values["shortlist_index_sampled_vectors"], 50)
        self.assertGreater(values["shortlist_index_sampled_recall_ratio"], 0.9)
        self.assertEqual(values["shortlist_index_sampled_lost_vectors"], 0)
        self.assertNotIn("shortlist_index_sampled_vectors", self.metrics("x.sl")[1])

    def test_paths_of_any_name(self):
        """The label tells the path, with quotes, backslashes and line breaks escaped; no bytes but UTF-8."""
        self.build()
        for name in ('a "b" c.sl', "back\\slash\\n.sl", "line\nbreak.sl", "\u00e9\u4e2d\U0001f600.sl", "a,b{c}=d # HELP.sl"):
            os.link(self.path("x.sl"), self.path(name))
            self.assertEqual({dict(labels)["path"] for _, labels in self.metrics(name)[2]}, {name})
        raw = os.fsencode(self.path("x.sl")) + b"\xff.sl"
        os.link(self.path("x.sl"), raw)
        _, _, samples = self.metrics(os.fsdecode(raw))
        self.assertEqual({dict(labels)["path"] for _, labels in samples}, {self.path("x.sl") + "\ufffd.sl"})

    def test_refuses(self):
        self.build()
        self.run_bad(2, "info", "x.sl", "--prometheus", "--json", says=["--prometheus", "--json"])
        self.run_bad(2, "info", "--plan", "--dim", 4, "--n", 9, "--prometheus", says=["--prometheus", "--plan"])
        self.run_bad(1, "info", "base.fbin", "--prometheus", says=["base.fbin"])
        self.write("items.csv", b"id,year\n1,1990\n2,2000\n")
        self.run_ok("items", "items.csv", "-o", "items.sli")
        self.run_bad(2, "info", "items.sli", "--prometheus", says=["items.sli", "--prometheus"])

    @unittest.skipUnless(os.environ.get("WANT_PARSER"), "without the Python of the tests")
    def test_the_parser_is_there(self):
        self.assertIsNotNone(text_string_to_metric_families)


class Recall(Indexed):
    def test_measures(self):
        self.build("--m", 4, "--ef-build", 20)
        told = self.run_json("recall", "x.sl", "--sample", 100, "-k", 5, "--ef", 5)
        deep = self.run_json("recall", "x.sl", "--sample", 100, "-k", 5, "--ef", 500)
        self.assertEqual((told["sampled"], told["k"], told["ef"], told["n"]), (100, 5, 5, N))
        self.assertLess(told["recall"], deep["recall"])
        self.assertGreater(told["recall"], 0.3)
        self.assertGreater(deep["recall"], 0.99)
        self.assertGreater(told["standard_error"], 0)
        again = self.run_json("recall", "x.sl", "--sample", 100, "-k", 5, "--ef", 5)
        other = self.run_json("recall", "x.sl", "--sample", 100, "-k", 5, "--ef", 5, "--seed", 77)
        self.assertEqual([again[key] for key in ("recall", "lost")], [told[key] for key in ("recall", "lost")])
        self.assertNotEqual((other["recall"], other["standard_error"]), (told["recall"], told["standard_error"]))
        self.assertRegex(self.run_ok("recall", "x.sl", "--sample", 100, "-k", 5, "--ef", 5),
                         rf"x.sl: recall@5 {told['recall']:.4f} \+- .* at ef 5, of 100 vectors; {told['lost']} lost\n")
        self.assertEqual(self.run_json("recall", "x.sl", "--place", "dram")["recall"],
                         self.run_json("recall", "x.sl")["recall"])

    def test_is_bounded_in_time(self):
        self.vectors("big.fbin", clustered(4000, DIM, 3))
        self.build(base="big.fbin")
        told = self.run_json("recall", "x.sl", "--sample", 10**9, "--seconds", 0.2)
        self.assertLess(told["sampled"], 10**8)
        self.assertGreater(told["sampled"], 0)
        self.assertGreaterEqual(told["recall_s"], 0.2)

    def test_bad_input(self):
        self.build()
        self.run_bad(1, "recall", "x.sl", "--sample", 0, says=["x.sl", "sample is 0"])
        self.run_bad(1, "recall", "x.sl", "-k", 0, says=["x.sl", "k is 0"])
        self.run_bad(1, "recall", "base.fbin", says=["base.fbin"])
        self.run_bad(2, "recall", says=["INDEX"])
