"""Item tables and recommending: the whole funnel, and what must not pass it."""

import json
import math
import os
import struct
import unittest

from harness import decode
from ranking import CLICKS, IDS, ITEMS, ITEM_ROWS, REQUESTS, SPEC, VECTORS, RankingTest, limit_files, table


class Items(RankingTest):
    def test_build_and_info(self):
        told = self.run_json("items", "items.csv", "-o", "items.sli")
        self.assertEqual((told["rows"], told["output"]), (ITEMS, "items.sli"))
        info = self.run_json("info", "items.sli")
        self.assertEqual((info["rows"], info["bytes"]), (ITEMS, os.path.getsize(self.path("items.sli"))))
        self.assertEqual(info["columns"][0], "id")
        said = self.run_ok("info", "items.sli")
        self.assertIn(f"an item table, {ITEMS} items", said)
        self.assertIn("columns: id, ", said)
        self.assertEqual(self.run_ok("items", "items.csv", "-o", "items.sli"), f"items.sli: {ITEMS} items\n")

    def test_update(self):
        self.with_index()
        self.write("new.csv", table(["id", "genres", "title"], [[IDS[3], "crime", "Changed"], [1, "drama", "Added"]]))
        told = self.run_json("items", "items.sli", "--update", "new.csv")
        self.assertEqual((told["rows"], told["updated"], told["added"]), (ITEMS + 1, 2, 1))
        self.run_ok("recommend", "x.sl", "none", "items.sli", "requests.csv", "-n", 100, "-o", "r.csv", "--show",
                    "title,price")
        rows = {row[2]: row[5:] for row in self.lines("r.csv")[1:]}
        self.assertEqual(rows[str(IDS[3])], ["Changed", ""])
        self.assertEqual(rows[str(IDS[4])], [ITEM_ROWS[4][1], str(ITEM_ROWS[4][3])])
        self.run_ok("items", "items.sli", "--update", "new.csv", "-o", "other.sli")
        self.assertEqual(self.run_json("info", "other.sli")["rows"], ITEMS + 1)

    def test_id_column(self):
        self.write("films.csv", table(["film", "title"], [[9, "a"], [4, "b"]]))
        self.run_ok("items", "films.csv", "-o", "films.sli", "--id", "film")
        self.run_bad(1, "items", "films.csv", "-o", "f.sli", says=["films.csv", "'id'"])
        self.write("more.csv", table(["film", "title"], [[9, "c"], [5, "d"]]))
        self.assertEqual(self.run_ok("items", "films.sli", "--update", "more.csv", "--id", "film"),
                         "films.sli: 3 items; 1 rows replaced, 1 added\n")

    def test_partial_update(self):
        self.with_index()
        self.write("new.csv", table(["title", "id"], [["Changed", IDS[3]], ["Too", IDS[4]]]))
        self.assertEqual(self.run_ok("items", "items.sli", "--update", "new.csv", "--partial"),
                         f"items.sli: {ITEMS} items; 2 rows changed\n")
        self.run_ok("recommend", "x.sl", "none", "items.sli", "requests.csv", "-n", 100, "-o", "r.csv", "--show",
                    "title,price")
        rows = {row[2]: row[5:] for row in self.lines("r.csv")[1:]}
        self.assertEqual(rows[str(IDS[3])], ["Changed", str(ITEM_ROWS[3][3])])
        self.assertEqual(rows[str(IDS[4])], ["Too", str(ITEM_ROWS[4][3])])
        self.assertEqual(rows[str(IDS[5])], [ITEM_ROWS[5][1], str(ITEM_ROWS[5][3])])
        before = self.read("items.sli")
        for header, rows, says in ((["id", "title"], [[IDS[3], "a"], [1, "b"]], ["line 3", "id 1 is not in the item"]),
                                   (["id", "colour"], [[IDS[3], "red"]], ["'colour'"])):
            self.write("bad.csv", table(header, rows))
            self.run_bad(1, "items", "items.sli", "--update", "bad.csv", "--partial", says=["bad.csv", *says])
        self.run_bad(2, "items", "items.sli", "--partial", "-o", "other.sli", says=["--partial", "--update"])
        self.assertEqual(self.read("items.sli"), before)

    def test_delete(self):
        self.with_index()
        self.vectors("gone.ibin", [[i] for i in IDS[3:5]])
        told = self.run_json("items", "items.sli", "--delete", "gone.ibin", "-o", "fewer.sli")
        self.assertEqual((told["rows"], told["deleted"], told["updated"], told["added"]), (ITEMS - 2, 2, 0, 0))
        self.assertEqual(self.run_json("info", "fewer.sli")["rows"], ITEMS - 2)
        self.run_ok("check", "fewer.sli")

        def served(items):
            self.run_ok("recommend", "x.sl", "none", items, "requests.csv", "-n", 100, "-o", "r.csv", "--show", "title")
            return {int(row[2]): row[5] for row in self.lines("r.csv")[1:]}
        self.assertEqual(set(served("items.sli")) - set(served("fewer.sli")), set(IDS[3:5]))
        # Deletions come before updates, so that an id may come back.
        self.write("new.csv", table(["id", "title"], [[IDS[3], "Back"], [IDS[6], "Other"]]))
        self.vectors("more.ibin", [[i] for i in [IDS[5]]])
        self.assertEqual(self.run_ok("items", "fewer.sli", "--update", "new.csv", "--delete", "more.ibin"),
                         f"fewer.sli: {ITEMS - 2} items; 1 deleted; 1 rows replaced, 1 added\n")
        found = served("fewer.sli")
        self.assertEqual(found[IDS[3]], "Back")
        self.assertEqual(set(served("items.sli")) - set(found), set(IDS[4:6]))
        before = self.read("fewer.sli")
        self.vectors("bad.ibin", [[i] for i in [IDS[6], IDS[4]]])
        self.run_bad(1, "items", "fewer.sli", "--delete", "bad.ibin",
                     says=["bad.ibin", f"number 1: id {IDS[4]} is not in the item table"])
        self.vectors("bad.ibin", [[i] for i in [IDS[6], IDS[7], IDS[6]]])
        self.run_bad(1, "items", "fewer.sli", "--delete", "bad.ibin", says=["bad.ibin", "twice"])
        self.run_bad(1, "items", "fewer.sli", "--delete", "none.ibin", says=["none.ibin"])
        self.run_bad(1, "items", "fewer.sli", "--delete", "gone.ibin", "-o", "gone.ibin", says=["input gone.ibin"])
        self.assertEqual(self.read("fewer.sli"), before)

    def test_refuses(self):
        def refuse(rows, *says, header=("id", "title")):
            self.write("bad.csv", table(header, rows))
            self.run_bad(1, "items", "bad.csv", "-o", "x.sli", says=["bad.csv", *says])
            self.run_bad(1, "items", "items.sli", "--update", "bad.csv", says=["bad.csv", *says])
        self.run_ok("items", "items.csv", "-o", "items.sli")
        refuse([[1, "a"], ["two", "b"]], "line 3", "two")
        refuse([[1, "a"], [2]], "line 3")
        refuse([[-1, "a"]], "line 2")
        self.write("twice.csv", table(["id"], [[1], [2], [1]]))
        self.run_bad(1, "items", "twice.csv", "-o", "x.sli", says=["twice.csv", "1"])
        self.run_bad(2, "items", "items.csv", says=["--output"])
        self.run_bad(2, "items", "items.sli", says=["--update"])
        self.run_bad(1, "items", "none.csv", "-o", "x.sli", says=["none.csv", "No such file"])
        self.run_bad(1, "items", "items.csv", "-o", "items.csv", says=["input items.csv"])
        self.run_bad(1, "items", "items.sli", "--update", "items.csv", "-o", "items.csv", says=["input items.csv"])
        self.run_bad(1, "items", "base.fbin", "-o", "x.sli", says=["base.fbin", "not a Shortlist item table"])
        whole = self.read("items.sli")
        self.write("cut.sli", whole[:len(whole) // 2])
        self.run_bad(1, "items", "cut.sli", "--update", "items.csv", says=["cut.sli"])
        self.run_bad(1, "info", "cut.sli", says=["cut.sli"])


class Recommend(RankingTest):
    def setUp(self):
        super().setUp()
        self.with_index()

    def recommend(self, *options, model="m.slr", items="items.sli"):
        self.run_ok("recommend", "x.sl", model, items, "requests.csv", "-n", 10, "-o", "r.csv", *options)
        header, *rows = self.lines("r.csv")
        self.assertEqual(header[:5], ["request", "rank", "id", "score", "recall_score"])
        lists = [[] for _ in self.requests]
        for row in rows:
            lists[int(row[0])].append(row[1:])
            self.assertEqual(int(row[1]), len(lists[int(row[0])]))
        return lists

    def test_recall_alone_is_search(self):
        lists = self.recommend("--ef", 200, "--candidates", 200, model="none", items="none")
        asked = [[float(x) for x in row[2].split()] for row in self.requests]
        self.vectors("q.fbin", asked)
        self.run_ok("search", "x.sl", "q.fbin", "-k", 10, "--ef", 200, "-o", "s.ibin", "--scores", "s.fbin")
        self.assertEqual([[int(row[1]) for row in rows] for rows in lists], decode(self.path("s.ibin"))[0])
        for rows, scores in zip(lists, decode(self.path("s.fbin"))[0]):
            for row, score in zip(rows, scores):
                self.assertAlmostEqual(float(row[3]), score, places=4)
                self.assertEqual(row[2], row[3])

    def test_scores_are_those_of_predict(self):
        """Every item a candidate: the top n are those of predicting all pairs."""
        self.with_model()
        self.requests = self.requests[:5]
        self.write("requests.csv", table(REQUESTS, self.requests))
        pairs = [[1, age, job, item[2], item[3], 0] for age, job, *_ in self.requests for item in ITEM_ROWS]
        self.write("pairs.csv", table(CLICKS, pairs))
        self.run_ok("predict", "m.slr", "pairs.csv", "-o", "p.npy")
        scores = struct.unpack(f"<{len(pairs)}f", self.read("p.npy")[128:])
        for items in ("items.sli", "items.csv"):
            lists = self.recommend("--candidates", ITEMS, "--ef", ITEMS, items=items)
            for i, rows in enumerate(lists):
                own = dict(zip(IDS, scores[i * ITEMS:(i + 1) * ITEMS]))
                best = sorted(own.values(), reverse=True)[:10]
                self.assertEqual(len(rows), 10)
                for row, score in zip(rows, best):
                    self.assertAlmostEqual(float(row[2]), score, places=5)
                    self.assertAlmostEqual(own[int(row[1])], score, places=5)

    def test_smaller_item_parts(self):
        """Parts in bf16 and in bytes take the memory that their names say, and give nearly the same scores."""
        self.with_model()
        options = ("--candidates", ITEMS, "--ef", ITEMS)
        base = ("recommend", "x.sl", "m.slr", "items.sli", "requests.csv", "-n", 10, "-o", "r.npy")
        wanted = self.recommend(*options)
        whole = self.run_json(*base)["item_bytes"]
        width = SPEC["deep"]["hidden"][0] if SPEC["deep"] else 0
        for part, share, most in (("layer-bf16", 2, 0.005), ("layer-i8", 4, 0.02)):
            lists = self.recommend("--item-part", part, *options)
            for rows, exact in zip(lists, wanted):
                self.assertAlmostEqual(float(rows[0][2]), float(exact[0][2]), delta=most)
            told = self.run_json(*base, "--item-part", part)
            self.assertEqual(whole - told["item_bytes"], ITEMS * (4 * width - 4 * width // share))
            funnel = self.run_json("evaluate", "m.slr", "requests.csv", "--index", "x.sl", "--items", "items.sli", "-k",
                                   10, "--item-part", part)
            self.assertEqual(funnel["item_bytes"], told["item_bytes"])
            self.run_bad(2, "evaluate", "m.slr", "clicks.csv", "--item-part", part, says=["--item-part", "--items"])
        self.run_bad(2, *base, "--item-part", "half", says=["--item-part", "layer-bf16"])

    def test_outputs_agree(self):
        self.with_model()
        base = ("recommend", "x.sl", "m.slr", "items.sli", "requests.csv", "-n", 10, "--threads", 2)
        lists = self.recommend("--show", "title,genres")
        ids = [[int(row[1]) for row in rows] for rows in lists]
        titles = dict((row[0], row[1]) for row in ITEM_ROWS)
        self.assertEqual([row[4] for row in lists[0]], [titles[int(row[1])] for row in lists[0]])
        for name in ("r.ibin", "r.npy", "r.ivecs"):
            told = self.run_json(*base, "-o", name)
            self.assertEqual(decode(self.path(name))[0], ids)
            self.assertNotIn("answers", told)
        self.run_ok(*base, "-o", "r.json", "--show", "title")
        results = json.loads(self.read("r.json"))["answers"]
        self.assertEqual([[item["id"] for item in r["items"]] for r in results], ids)
        self.assertEqual([r["request"] for r in results], list(range(len(ids))))
        self.assertEqual(results[0]["items"][0]["title"], titles[ids[0][0]])
        told = self.run_json(*base)
        self.assertEqual([[item["id"] for item in r["items"]] for r in told["answers"]], ids)
        out = self.run_ok(*base, "--show", "title,price")
        self.assertRegex(out, rf"^request 0\n +1 +{ids[0][0]} +0\.\d+ +\d+\.\d+  The \"\d+\", again  [\d.]+\n")
        self.assertEqual(out.count("request "), len(ids))

    def test_fields_and_quality(self):
        self.with_model()
        told = self.run_json("recommend", "x.sl", "m.slr", "items.sli", "requests.csv", "-n", 10, "--candidates", 40,
                             "-o", "r.npy")
        n = len(self.requests)
        self.assertEqual((told["requests"], told["results"], told["candidates"], told["without_features"]),
                         (n, 10 * n, 40 * n, 0))
        self.assertGreaterEqual(told["p99_us"], told["p50_us"])
        self.assertGreater(told["qps"], 0)
        self.assertEqual(told["judged"], sum(bool(row[4]) for row in self.requests))
        ranked = decode(self.path("r.npy"))[0]
        self.run_ok("recommend", "x.sl", "none", "none", "requests.csv", "-n", 10, "--candidates", 40, "-o", "r.npy")
        alone = decode(self.path("r.npy"))[0]
        for ids, end in ((ranked, ""), (alone, "_alone")):
            for key, value in zip(("ndcg", "recall", "hit_rate"), self.quality(ids)):
                self.assertAlmostEqual(told[key + end], value, places=6, msg=key + end)
        self.assertGreater(told["ndcg"], told["ndcg_alone"])
        funnel = self.run_json("evaluate", "m.slr", "requests.csv", "--index", "x.sl", "--items", "items.sli", "-k", 10,
                               "--candidates", 40)
        for key in ("ndcg", "recall", "hit_rate", "ndcg_alone", "recall_alone", "hit_rate_alone", "requests"):
            self.assertEqual(funnel[key], told[key])
        out = self.run_ok("evaluate", "m.slr", "requests.csv", "--index", "x.sl", "--items", "items.sli")
        self.assertRegex(out, r"recall alone +0\.\d+ +0\.\d+ +0\.\d+\n +recall \+ rank +0\.\d+")

    def quality(self, lists):
        """NDCG, recall and hit rate at 10, means over the requests with something relevant."""
        sums, judged = [0, 0, 0], 0
        for ids, row in zip(lists, self.requests):
            relevant = {int(x) for x in row[4].split("|") if x}
            if not relevant:
                continue
            judged += 1
            hits = [i for i, id in enumerate(ids) if id in relevant]
            ideal = sum(1 / math.log2(i + 2) for i in range(min(10, len(relevant))))
            sums[0] += sum(1 / math.log2(i + 2) for i in hits) / ideal
            sums[1] += len(hits) / len(relevant)
            sums[2] += bool(hits)
        return [s / judged for s in sums]

    def test_exclude(self):
        self.with_model()
        plain = self.recommend("--candidates", 60)
        seen = [[row[1] for row in rows[:4]] for rows in plain]
        for row, ids in zip(self.requests, seen):
            row[3] = " | ".join(ids)
        self.write("requests.csv", table(REQUESTS, self.requests))
        for rows, ids in zip(self.recommend("--candidates", 60), seen):
            self.assertEqual(len(rows), 10)
            self.assertFalse(set(ids) & {row[1] for row in rows})

    def test_max_per_group(self):
        self.with_model()
        for rows in self.recommend("--max-per-group", 2, "--group", "genres", "--show", "genres"):
            kinds = [row[4] for row in rows]
            self.assertLessEqual(max(kinds.count(kind) for kind in kinds), 2)

    def test_vectors_from_a_file(self):
        self.with_model()
        want = self.recommend()
        self.vectors("q.fbin", [[float(x) for x in row[2].split()] for row in self.requests])
        self.write("requests.csv", table(["age", "job"], [row[:2] for row in self.requests]))
        got = self.recommend("--vectors", "q.fbin")
        self.assertEqual([[row[1] for row in rows] for rows in got], [[row[1] for row in rows] for rows in want])
        command = ("recommend", "x.sl", "m.slr", "items.sli", "requests.csv", "-n", 10)
        for count in (59, 61):
            self.vectors("r.fbin", [VECTORS[0]] * count)
            self.run_bad(1, *command, "-o", "r.npy", "--vectors", "r.fbin", says=["r.fbin", f"{count} vectors"])
        self.vectors("r.fbin", [row[:3] for row in VECTORS])
        self.run_bad(1, *command, "--vectors", "r.fbin", says=["r.fbin", "3 elements", "have 6"])

    def test_candidates_without_features(self):
        self.with_model()
        self.write("items.csv", table(["id", "title", "genres", "price"], ITEM_ROWS[:ITEMS // 2]))
        told = self.run_json("recommend", "x.sl", "m.slr", "items.csv", "requests.csv", "-n", 10, "--candidates", ITEMS,
                             "--ef", ITEMS, "--show", "title")
        self.assertEqual(told["without_features"], len(self.requests) * ITEMS // 2)
        shown = {item["id"]: item["title"] for r in told["answers"] for item in r["items"]}
        for id, title in shown.items():
            self.assertEqual(title == "", id not in IDS[:ITEMS // 2])

    def test_ids_that_have_nothing_in_common(self):
        self.with_model()
        rows = [[10 ** 6 + row[0], *row[1:]] for row in ITEM_ROWS]
        self.write("items.csv", table(["id", "title", "genres", "price"], rows))
        self.run_bad(1, "recommend", "x.sl", "m.slr", "items.csv", "requests.csv", "-n", 10, "-o", "top.csv",
                     says=["items.csv", "none of the", "x.sl", "--ids"])
        self.assertFalse(os.path.exists(self.path("top.csv")))

    def test_integer_index(self):
        whole = [[round(20 * x) % 100 for x in row] for row in VECTORS]
        self.vectors("b.u8bin", whole)
        self.run_ok("build", "b.u8bin", "-o", "u.sl", "--metric", "l2", "--ids", "ids.npy")
        self.write("requests.csv", table(["vector"], [[" ".join(map(str, whole[9]))]]))
        self.run_ok("recommend", "u.sl", "none", "none", "requests.csv", "-n", 1, "-o", "r.npy")
        self.assertIn(decode(self.path("r.npy"))[0][0][0], [i for i, row in zip(IDS, whole) if row == whole[9]])
        self.write("requests.csv", table(["vector"], [["1 2 3 4 5 0.5"]]))
        self.run_bad(1, "recommend", "u.sl", "none", "none", "requests.csv", "-n", 1, says=["requests.csv", "u8"])

    def test_cells(self):
        def refuse(column, text, *says):
            rows = [list(row) for row in self.requests]
            rows[7][REQUESTS.index(column)] = text
            self.write("bad.csv", table(REQUESTS, rows))
            self.run_bad(1, "recommend", "x.sl", "none", "items.sli", "bad.csv", "-n", 5,
                         says=["bad.csv, line 9", f"column {column}", *says])
            self.run_bad(1, "recommend", "x.sl", "none", "items.sli", "bad.csv", "-n", 5, "--json", says=["line 9"])
        refuse("vector", "1 2 3", "3 numbers", "6 elements")
        refuse("vector", "1 2 3 4 5 six", "'six'")
        refuse("vector", "1 2 3 4 5 nan", "'nan'")
        refuse("vector", "", "0 numbers")
        refuse("exclude", "3|x", "'x'")
        refuse("exclude", "3||4", "''")
        refuse("relevant", "-3", "'-3'")
        refuse("relevant", str(2**64), str(2**64))
        self.write("bad.csv", table(["age", "job"], [[3, "nurse"]]))
        self.run_bad(1, "recommend", "x.sl", "none", "items.sli", "bad.csv", "-n", 5, says=["bad.csv", "'vector'"])
        self.write("bad.csv", table(REQUESTS, []))
        self.run_bad(1, "recommend", "x.sl", "none", "items.sli", "bad.csv", "-n", 5, says=["bad.csv", "no requests"])

    def test_refuses(self):
        self.with_model()
        good = ["recommend", "x.sl", "m.slr", "items.sli", "requests.csv", "-n", 5]

        def refuse(status, *options, says, at=None, name=None):
            command = list(good)
            if at:
                command[at] = name
            self.run_bad(status, *command, *options, says=says)

        refuse(1, at=1, name="m.slr", says=["m.slr", "index"])
        refuse(1, at=2, name="items.sli", says=["items.sli", "item table"])
        refuse(1, at=3, name="m.slr", says=["m.slr", "ranker model"])
        for at in (1, 2, 3, 4):
            refuse(1, at=at, name="none.csv", says=["none.csv", "No such file"])
        refuse(1, at=3, name="none", says=["m.slr"])
        refuse(1, at=6, name=0, says=["-n is 0"])
        refuse(1, at=6, name=ITEMS + 1, says=["-n is 241"])
        refuse(1, "--candidates", 3, says=["--candidates is 3", "-n is 5"])
        refuse(1, "--ef", 5000, says=["--ef is 5000"])
        refuse(1, "--show", "title,nobody", says=["'nobody'"])
        refuse(1, "--show", "title", "-o", "r.ibin", says=["r.ibin"])
        refuse(1, "-o", "r.txt", says=["r.txt"])
        refuse(1, "-o", "none/r.csv", says=["none/r.csv"])
        refuse(1, "-o", "requests.csv", says=["input requests.csv"])
        refuse(1, "--group", "nobody", "--max-per-group", 2, says=["nobody"])
        refuse(2, "--max-per-group", 2, says=["--group"])
        refuse(2, "--group", "genres", says=["--max-per-group"])
        self.write("bare.csv", table(["id", "title"], [row[:2] for row in ITEM_ROWS]))
        refuse(1, at=3, name="bare.csv", says=["genres"])
        self.write("users.csv", table(["age", "vector"], [[3, self.requests[0][2]]]))
        refuse(1, at=4, name="users.csv", says=["users.csv", "job"])
        funnel = ("evaluate", "m.slr", "requests.csv")
        self.run_bad(2, *funnel, "--items", "items.sli", says=["--index"])
        self.run_bad(2, *funnel, "--candidates", 30, says=["--items"])
        self.run_bad(2, *funnel, "--index", "x.sl", "--items", "items.sli", "--group", "job", says=["--group"])
        self.write("plain.csv", table(REQUESTS[:3], [row[:3] for row in self.requests]))
        self.run_bad(1, "evaluate", "m.slr", "plain.csv", "--index", "x.sl", "--items", "items.sli",
                     says=["plain.csv", "relevant"])

    def test_interrupt(self):
        self.write("requests.csv", table(REQUESTS, self.requests * 1000))
        self.write("r.csv", b"what was here")
        err = self.interrupt_writing("recommend", "x.sl", "none", "items.sli", "requests.csv", "-n", 10, "-o", "r.csv")
        self.assertEqual(err, "shortlist recommend: interrupted; nothing was written\n")

    @unittest.skipIf(os.environ.get("SANITIZER") == "thread", "the sanitizer's runtime itself dies of the limit")
    def test_disk_full(self):
        self.write("requests.csv", table(REQUESTS, self.requests * 10))
        for name in ("r.csv", "r.json", "r.npy"):
            self.write(name, b"what was here")
            self.run_bad(1, "recommend", "x.sl", "none", "items.sli", "requests.csv", "-n", 20, "-o", name,
                         says=[name, "File too large"], preexec_fn=limit_files)
