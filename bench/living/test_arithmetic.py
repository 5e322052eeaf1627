"""The runbooks, the truth and the arithmetic of ./dev bench living. Needs no library but ours."""

import json
import pathlib
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "peers"), str(HERE.parent)]

import handle  # noqa: E402
import libraries  # noqa: E402
import numpy  # noqa: E402
import report  # noqa: E402
import runbooks  # noqa: E402
import runner  # noqa: E402
import table  # noqa: E402
import truth  # noqa: E402
from libraries import base  # noqa: E402
from libraries import shortlist_living as ours  # noqa: E402
from runbooks import COMPARE, DELETE, INSERT, REPLACE, SEARCH, Operation  # noqa: E402
from sets import read_matrix  # noqa: E402

ROWS, LIVE = 4000, 200


def made(name):
    return runbooks.make(name, ROWS, LIVE)


def steps_of(operations):
    """For each batch that was inserted, by its first id, the steps at which it was inserted and deleted or replaced."""
    step, found = 0, {}
    for one in operations:
        if len(one.ids):
            found.setdefault(int(one.ids[0]), []).append((step, one.kind))
        step += one.kind in (SEARCH, COMPARE)
    return found


class Recipes(unittest.TestCase):
    def test_every_recipe_keeps_its_books(self):
        for name in runbooks.RECIPES:
            operations = made(name)
            states = list(runbooks.replay(operations))
            self.assertEqual(runbooks.digest(operations), runbooks.digest(made(name)), name)
            for _, ids, rows in states:
                self.assertEqual(len(set(ids.tolist())), len(ids), name)
                self.assertEqual(len(set(rows.tolist())), len(rows), name)
            self.assertLess(max(rows.max(initial=0) for _, _, rows in states), ROWS, name)

    def test_expiration_has_260_operations_and_short_lives_of_20_steps(self):
        operations = made("expiration")
        counts = runbooks.counted(operations)
        self.assertEqual(len(operations), 260)
        self.assertEqual((counts["insert"], counts["search"], counts["delete"], counts["replace"]), (100, 99, 60, 0))
        self.assertEqual(operations[-1].kind, COMPARE)
        for history in steps_of(operations).values():
            self.assertIn([kind for _, kind in history], ([INSERT], [INSERT, DELETE]))
            if len(history) == 2:
                self.assertEqual(history[1][0] - history[0][0], runbooks.SHORT)

    def test_replaces_come_at_half_a_life_and_take_rows_that_waited(self):
        for name, deletes in (("replace-only", False), ("replace-delete", True)):
            operations = made(name)
            counts = runbooks.counted(operations)
            self.assertGreater(counts["replace"], 60, name)
            self.assertEqual(counts["delete"] > 30, deletes, name)
            used = numpy.concatenate([one.rows for one in operations])
            self.assertEqual(len(numpy.unique(used)), len(used), name)
            for history in steps_of(operations).values():
                for (before, _), (at, kind) in zip(history, history[1:]):
                    self.assertEqual(kind, DELETE if before != history[0][0] else kind)
                    self.assertLessEqual(at - before, runbooks.STEPS)

    def test_endless_batches_are_replaced_halfway_to_the_end(self):
        self.assertEqual(runbooks.due(20, "never", True), 60)
        self.assertIsNone(runbooks.due(20, "never", False))
        self.assertEqual(runbooks.due(3, "short", False), 23)
        self.assertEqual(runbooks.due(3, "short", True), 13)
        self.assertEqual(runbooks.due(3, "long", True), 53)
        self.assertIsNone(runbooks.due(90, "short", False))

    def test_the_window_slides(self):
        operations = made("sliding-window")
        self.assertEqual(len(operations), 400)
        self.assertEqual(runbooks.counted(operations)["compare"], 1)
        sizes = {len(ids) for ids, _ in runbooks.searches(operations)}
        self.assertEqual(sizes, {ROWS // 2})
        for number, (ids, _) in enumerate(runbooks.searches(operations)):
            self.assertEqual(int(ids.min()), number * ROWS // runbooks.WINDOW_STEPS)

    def test_a_generation_replaces_two_in_a_hundred(self):
        operations = made("generations")
        self.assertEqual(runbooks.counted(operations)["delete"], 100)
        self.assertEqual({len(one.ids) for one in operations[2:] if one.kind in (INSERT, DELETE)}, {LIVE // 50})
        self.assertEqual({len(ids) for ids, _ in runbooks.searches(operations)}, {LIVE})
        self.assertEqual(operations[1].kind, COMPARE)
        self.assertEqual(operations[-1].kind, COMPARE)

    def test_a_turnover_changes_ten_times_the_live_set(self):
        operations = made("turnover")
        added = sum(len(one.ids) for one in operations if one.kind == INSERT)
        self.assertEqual(added, LIVE + 10 * LIVE)

    def test_rows_come_back_once_all_were_used(self):
        operations = runbooks.churn(300, 200, 10, 0.5, 1, 5)
        inserted = numpy.concatenate([one.rows for one in operations if one.kind == INSERT])
        self.assertEqual(len(set(inserted.tolist())), 300)
        self.assertEqual(len(set(inserted[:300].tolist())), 300)
        self.assertRaises(ValueError, runbooks.churn, 200, 200, 1, 0.5, 1, 5)


class Replay(unittest.TestCase):
    def live(self, *operations):
        return [dict(zip(ids.tolist(), rows.tolist())) for _, ids, rows in runbooks.replay(operations)]

    def test_it_follows_every_kind(self):
        two = numpy.array([1, 2])
        self.assertEqual(self.live(Operation(INSERT, two, numpy.array([7, 8])), Operation(SEARCH),
                                   Operation(REPLACE, two[:1], numpy.array([9])), Operation(DELETE, two[1:])),
                         [{1: 7, 2: 8}, {1: 7, 2: 8}, {1: 9, 2: 8}, {1: 9}])

    def test_it_refuses_what_cannot_be(self):
        one, other, row = numpy.array([1]), numpy.array([2]), numpy.array([0])
        first = Operation(INSERT, one, row)
        for wrong in (Operation(INSERT, one, row), Operation(DELETE, other), Operation(REPLACE, other, row),
                      Operation(DELETE, numpy.array([1, 1]))):
            with self.assertRaises(ValueError):
                self.live(first, wrong)

    def test_a_file_holds_it_all(self):
        operations = made("replace-delete")
        with tempfile.TemporaryDirectory() as folder:
            runbooks.save(pathlib.Path(folder) / "a.npz", operations)
            found = runbooks.load(pathlib.Path(folder) / "a.npz")
        self.assertEqual(runbooks.digest(found), runbooks.digest(operations))
        self.assertEqual([one.kind for one in found], [one.kind for one in operations])
        self.assertNotEqual(runbooks.digest(found[:-1]), runbooks.digest(operations))


class Handle(unittest.TestCase):
    BEFORE = """/* A graph. Threads: any number may search at once. check, get and ids calls may run beside them. add, delete,
   set and free need the handle to
   themselves. */
typedef struct sl_index sl_index;"""

    def test_the_header_says_whether_threads_may_change_it(self):
        self.assertFalse(handle.one_handle(self.BEFORE))
        self.assertTrue(handle.one_handle(self.BEFORE.replace("add, delete,", "rebuild,")))
        self.assertTrue(handle.one_handle(self.BEFORE.replace("add, delete,\n   set and free need", "free needs")))
        self.assertFalse(handle.one_handle("/* Calls that change it run alone. */ typedef struct sl_index sl_index;"))
        self.assertTrue(handle.one_handle("/* All at once. free needs it alone. */ typedef struct sl_index sl_index;"))
        self.assertFalse(handle.one_handle("no contract"))

    def test_our_header_has_the_contract(self):
        header = (HERE.parent.parent / "include/shortlist.h").read_text(encoding="utf-8")
        self.assertRegex(header, r"Threads:(?:(?!\*/)[\s\S])*\*/\s*typedef struct sl_index sl_index;")


class Exact(base.Living):
    """An index without a graph. `forget`: it never finds these ids."""
    forget = ()
    sizes = []

    def __init__(self, shape):
        self.vectors = {}

    def add(self, ids, rows, threads=1):
        self.vectors.update(zip(ids.tolist(), rows))

    def delete(self, ids):
        for id_ in ids.tolist():
            del self.vectors[id_]

    def set(self, depth):
        self.depth_now = depth

    def one(self):
        ids = numpy.array([id_ for id_ in self.vectors if id_ not in self.forget])
        rows = numpy.array([self.vectors[id_] for id_ in ids.tolist()])
        self.sizes.append(len(self.vectors))
        return lambda query: (ids[numpy.argsort(-(rows @ query), kind="stable")[:base.K]], None)

    def bytes(self):
        return 4 * len(self.vectors)

    def settings(self):
        return {}


def small(name):
    return runbooks.churn(800, 200, 4, 0.25, 1, 2) if name in runbooks.CHURN else runbooks.make(name, 2000)


class Books(unittest.TestCase):
    """Small runbooks with an exact index in place of a library, and with ours."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.work = pathlib.Path(self.folder.name)
        dice = numpy.random.default_rng(1)
        rows = dice.normal(size=(2500, 8)).astype(numpy.float32)
        rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
        rows[7] = rows[3]
        data = types.SimpleNamespace(name="some", metric="cosine", dim=8, rows=rows,
                                     part=lambda name: (rows[:20] if name == "tune" else rows[20:40] + 0.1,))
        self.rows = truth.Rows(data, 2000, self.work)

    def run_book(self, living, operations, count=20):
        path = truth.of_runbook(self.rows, operations, count, self.work / "cache")
        runbooks.save(self.work / "book.npz", operations)
        order = {"library": "some", "base": str(self.rows.base), "metric": "cosine", "m": 8, "rounds": 3,
                 "queries": {part: str(file) for part, file in self.rows.queries.items()},
                 "room": runbooks.most_live(operations), "truth": str(path), "runbook": str(self.work / "book.npz"),
                 "count": count, "depths": [64], "memory": True, "instructions": ""}
        module = types.SimpleNamespace(Living=living)
        known, libraries.library = libraries.library, lambda name: module
        self.addCleanup(setattr, libraries, "library", known)
        said = []
        runner.Runner(order).run(lambda event: said.append(json.loads(json.dumps(event))))
        return report.book(said, "wall", len(runbooks.searches(operations)))

    def test_no_two_rows_are_alike(self):
        self.assertEqual(len(self.rows), 2000)
        self.assertEqual(len(numpy.unique(self.rows.rows, axis=0)), 2000)
        self.assertEqual(truth.unlike(numpy.array([[1.0], [2], [1], [3]], numpy.float32)).tolist(), [0, 1, 3])

    def test_truth_is_that_of_all_pairs_and_kept(self):
        operations = runbooks.make("replace-delete", 2000)
        path = truth.of_runbook(self.rows, operations, 20, self.work / "cache")
        queries = read_matrix(self.rows.queries["measure"])[:20]
        found = read_matrix(path, numpy.uint32).reshape(-1, 20, base.K)
        for near, (ids, rows) in zip(found, runbooks.searches(operations)):
            scores = queries @ self.rows.rows[rows].T
            far = ids[numpy.argsort(-scores, axis=1)[:, :base.K]]
            self.assertEqual(numpy.sort(near, axis=1).tolist(), numpy.sort(far, axis=1).tolist())
        with self.assertRaises(ValueError):
            truth.nearest(self.rows.rows[:9], numpy.arange(9), queries, "cosine")
        before = path.stat().st_mtime_ns
        self.assertEqual(truth.of_runbook(self.rows, operations, 20, self.work / "cache").stat().st_mtime_ns, before)
        self.assertNotEqual(truth.of_runbook(self.rows, operations, 10, self.work / "cache"), path)

    def test_an_exact_index_has_recall_1_in_every_recipe(self):
        for name in runbooks.RECIPES:
            found = self.run_book(Exact, small(name))
            self.assertEqual(found["depths"][0]["least"], 1, name)
            self.assertEqual(found["lost"]["lost"], 0, name)
            self.assertEqual(found["fresh"]["depths"][0]["lost_most"], 0, name)
            self.assertGreater(found["depths"][0]["p99_us"], 0, name)

    def test_it_tells_what_an_index_has_lost(self):
        class Forgetful(Exact):
            def __init__(self, shape):
                super().__init__(shape)
                Forgetful.forget = () if getattr(Forgetful, "made", False) else range(0, 400, 2)
                self.forget, Forgetful.made = Forgetful.forget, True

        found = self.run_book(Forgetful, runbooks.churn(800, 200, 4, 0.25, 1, 2))
        last = found["compares"][-1]
        self.assertLess(last["depths"][0]["recall"], 0.7)
        self.assertEqual(last["depths"][0]["fresh_recall"], 1)
        self.assertGreater(last["depths"][0]["error"], 0.001)
        self.assertGreater(last["lost"], 50)
        self.assertEqual((last["fresh_lost"], last["bytes"], last["fresh_bytes"]), (0, 800, 800))
        self.assertFalse(all(one["met"] for one in report.facts(
            {"libraries": [{"library": "shortlist", "books": {"generations": {**found, "unreachable": 0}}}]})))

    def test_ours_goes_through_every_recipe(self):
        for name in runbooks.RECIPES:
            found = self.run_book(ours.Living, small(name))
            self.assertGreater(found["depths"][0]["recall"], 0.98, name)
            self.assertEqual((found["lost"]["lost"], found["unreachable"]), (0, 0), name)


def search(*recalls, **more):
    return {"event": "search", "bytes": 8, "resident": 2, "unreachable": None,
            "searches": [{"depth": depth, "recall": recall} for depth, recall in recalls], **more}


def change(kind, wall, tidy=0.0, vectors=10):
    return {"event": kind, "vectors": vectors, "s": wall, "cpu_s": wall / 2, "tidy_s": tidy, "tidy_cpu_s": tidy / 2}


def compare(recall, fresh, turns, size=10, build=2.0, error=0.0, unreachable=0):
    return {"event": "compare", "step": 1, "live": 5, "bytes": size, "resident": None, "unreachable": unreachable,
            "lost": {"sampled": 9, "lost": 1},
            "fresh": {"build_s": build, "build_cpu_s": build, "bytes": 10, "unreachable": 0,
                      "lost": {"sampled": 9, "lost": 0}},
            "searches": [{"depth": 16, "recall": recall, "fresh_recall": fresh, "error": error,
                          "turns": {"wall": turns, "cpu": [[1, 1]]}}]}


ALL = {"event": "all", "searches": [{"depth": 16, "us": 5, "p50_us": 4, "p99_us": 9}],
       "lost": {"sampled": 9, "lost": 1}}
CHURNED = [change("insert", 4, vectors=100), compare(0.9, 0.9, [[1, 1]]),
           change("delete", 0.1, 0.3), change("insert", 0.2), search((16, 0.95)),
           change("delete", 0.1), change("insert", 0.3),
           compare(0.9, 0.902, [[2, 1], [30, 20], [3, 1]], size=12, build=4.0), ALL]


class Stub:
    """An index of the module to come, which notes calls."""
    def __init__(self, live, deleted):
        self.calls, self.live, self.deleted = [], live, deleted

    def stats(self):
        return {"n": self.live, "deleted": self.deleted}

    def __getattr__(self, name):
        return lambda *arguments, **more: self.calls.append((name, more))


class Ours(unittest.TestCase):
    def living(self, has, stub):
        made = ours.Living(base.Shape(8, "cosine", 8, 10))
        made.index = stub
        for name in ("REPLACES", "COMPACTS"):
            self.addCleanup(setattr, ours, name, getattr(ours, name))
            setattr(ours, name, has)
        return made

    def test_it_replaces_and_compacts_where_the_module_can(self):
        for live, deleted, compacts in ((91, 9, []), (89, 11, [("compact", {})])):
            living = self.living(True, Stub(live, deleted))
            living.replace(numpy.array([1]), numpy.zeros((1, 8)))
            living.tidy()
            self.assertEqual(living.index.calls, [("add", {"threads": 1, "replace": True}), *compacts])

    def test_it_deletes_and_adds_where_the_module_cannot(self):
        living = self.living(False, Stub(0, 11))
        living.replace(numpy.array([1]), numpy.zeros((1, 8)))
        living.tidy()
        self.assertEqual([name for name, _ in living.index.calls], ["delete", "add"])


def window(kind, number, p99, **more):
    return {"event": kind, "library": "usearch", "round": number, "p50_us": 1, "p99_us": p99, "p999_us": 9, **more}


WINDOWS = [{"event": "ef", "library": "usearch", "ef": 28, "recall": 0.96}, window("idle", 0, 10),
           window("apart", 0, 16), window("apart", 1, 110),
           window("beside", 0, 20, changed=50, wrote_s=0.5), window("idle", 1, 100),
           window("beside", 1, 110, changed=50, wrote_s=1), window("idle", 2, 10)]


class Arithmetic(unittest.TestCase):
    def test_the_least_depth_that_reaches(self):
        tried = [{"depth": 10, "recall": 0.9}, {"depth": 20, "recall": 0.96}, {"depth": 30, "recall": 0.97}]
        self.assertEqual(report.least_depth(tried, 0.95)["depth"], 20)
        self.assertEqual(report.least_depth(tried, 0.99),
                         {"target": 0.99, "depth": 30, "recall": 0.97, "reached": False})

    def test_recall_of_each_query(self):
        near = numpy.array([[1, 2], [3, 4]])
        self.assertEqual(runner.per_query([[2, 9], [4, 3]], near).tolist(), [0.5, 1])

    def test_generations_end_with_a_search(self):
        self.assertEqual([round(s, 3) for s in report.generation_seconds(CHURNED, "wall")], [0.6, 0.4])
        self.assertEqual([round(s, 3) for s in report.generation_seconds(CHURNED, "cpu")], [0.3, 0.2])

    def test_costs(self):
        costs = report.costs(CHURNED, "wall")
        self.assertAlmostEqual(costs["insert"]["s"], 4.5)
        self.assertEqual((costs["insert"]["vectors"], costs["delete"]["vectors"]), (120, 20))
        self.assertNotIn("replace", costs)
        self.assertAlmostEqual(costs["tidy"]["s"], 0.3)
        self.assertAlmostEqual(report.micro(costs["delete"]), 1e4)
        self.assertIsNone(report.micro(None))

    def test_ratios_are_of_the_same_round(self):
        found = report.book(CHURNED, "wall", 3)
        self.assertEqual(found["compares"][-1]["depths"][0]["ratio"], {"median": 2, "min": 1.5, "max": 3})
        self.assertEqual(report.book(CHURNED, "cpu", 3)["compares"][-1]["depths"][0]["ratio"]["max"], 1)
        self.assertAlmostEqual(found["fresh"]["rebuild_share"], 0.5 / 4)
        self.assertEqual((found["fresh"]["bytes"], found["fresh"]["depths"][0]["time"]), (1.2, 2))
        self.assertEqual(found["depths"][0]["least"], 0.9)
        self.assertEqual(found["bytes"], {"last": 12, "most": 12})

    def test_the_record_of_the_tree_is_small(self):
        found = report.book(CHURNED, "wall", 3)
        told = report.small({"libraries": [{"library": "shortlist", "book": {"tried": [1], "depths": [2]},
                                            "books": {"generations": found}}], "targets": []})["libraries"][0]
        self.assertEqual(told["book"], {"depths": [2]})
        kept = told["books"]["generations"]
        self.assertEqual((kept["compares"]["bytes"], kept["compares"]["fresh_bytes"]), ([10, 12], 10))
        self.assertEqual(kept["compares"]["depths"][0]["fresh_recall"], [0.9, 0.902])
        self.assertEqual(kept["compares"]["depths"][0]["time"], [1, 2])
        self.assertNotIn("series", kept["depths"][0])
        self.assertIn("series", found["depths"][0])

    def test_the_first_comparison_judges_nothing(self):
        rows = report.compares([compare(0.1, 0.9, [[9, 1]]), compare(0.9, 0.902, [[1, 1]], error=0.0005),
                                compare(0.9, 0.9, [[1, 1]], error=0.0005)], "wall")
        found = report.beside_fresh(rows, [1])
        self.assertAlmostEqual(found["depths"][0]["lost_mean"], 0.001)
        self.assertAlmostEqual(found["depths"][0]["lost_most"], 0.001)
        self.assertEqual(found["depths"][0]["time"], 1)

    def test_verdicts(self):
        found = {one["name"].split(": ", 1)[1]: one["met"] for one in report.facts(
            {"libraries": [{"library": "shortlist", "books": {"generations": report.book(CHURNED, "wall", 3)}},
                           {"library": "hnswlib", "books": {"generations": report.book(CHURNED, "wall", 3)}}]})}
        self.assertEqual(found, {"recall lost, mean of generations": True, "the most lost, beyond two errors": True,
                                 "time a query over a fresh build's, most": False,
                                 "bytes over a fresh build's, most": False, "unreachable vectors, most": True,
                                 "seconds of one over a rebuild's": True})

    def test_a_library_that_fails_is_told(self):
        found = report.book([search((16, 1)), {"event": "failed", "why": "SIGSEGV"}], "wall", 3)
        self.assertEqual(found, {"failed": "SIGSEGV", "searches_done": 1, "searches": 3})
        facts = report.facts({"libraries": [{"library": "shortlist", "books": {"expiration": found}}]})
        self.assertEqual([one["met"] for one in facts], [False])

    def test_tails_are_of_the_same_round(self):
        row = report.beside(WINDOWS)[0]
        self.assertEqual(row["ratio"]["p99_us"], {"median": 1.55, "min": 1.1, "max": 2.0})
        self.assertEqual(row["over_apart"]["p99_us"], {"median": 1.125, "min": 1.0, "max": 1.25})
        self.assertEqual(row["changes_per_s"], {"median": 75, "min": 50, "max": 100})
        self.assertEqual((row["ef"], row["adds"], row["idle"]["p99_us"]["median"]), (28, {}, 10))

    def test_adds_are_compared_with_hnswlibs(self):
        events = [{"event": "adds", "library": library, "round": number, "how": how, "rows_per_s": speed}
                  for library, how, number, speed in (("hnswlib", "one", 0, 10), ("hnswlib", "one", 1, 20),
                                                      ("shortlist", "many", 0, 30), ("shortlist", "many", 1, 40))]
        ours = {row["library"]: row for row in report.beside(events)}["shortlist"]
        self.assertEqual(ours["adds"]["many"]["over_hnswlib"], {"median": 2.5, "min": 2, "max": 3})
        self.assertIsNone(ours["ratio"]["p99_us"])
        facts = report.facts({"beside": {"libraries": [ours]}})
        self.assertEqual([(one["target"], one["met"]) for one in facts], [(2.0, True)])

    def test_requests_are_compared_with_the_idle_window_of_the_round(self):
        found = report.requests([{"kind": kind, "round": number, "p50_us": 1, "p99_us": p99, "updates_per_s": 1000}
                                 for kind, number, p99 in (("idle", 0, 10), ("items", 0, 12), ("items", 1, 60),
                                                           ("idle", 1, 20), ("idle", 2, 20), ("items", 2, 22))])
        self.assertEqual(found["kinds"]["items"]["ratio"]["p99_us"], {"median": 1.2, "min": 1.1, "max": 3})
        facts = report.facts({"beside": {"libraries": [], "requests": found}})
        self.assertEqual([(one["target"], one["met"]) for one in facts], [(1.2, True)])

    def test_table(self):
        record = {"data": {"name": "some", "dim": 8, "metric": "cosine"}, "parameters": {"m": 8},
                  "machine": {"cpu": "a processor", "load_average": 0.0},
                  "runbooks": {"generations": {"operations": 9}, "expiration": {"operations": 2}},
                  "libraries": [{"library": "shortlist", "books": {"generations": report.book(CHURNED, "wall", 3)}},
                                {"library": "faiss", "failed": "no package", "books": {}}]}
        record["targets"] = report.facts(record)
        text = report.table(record)
        self.assertIn("MISSED   generations, depth 16: time a query over a fresh build's, most", text)
        self.assertIn("faiss     no package", text)
        self.assertIn("time  2.000   bytes 1.20", text)
        page = table.markdown("living-some", {**report.small(record), "commit": "c0ffee", "date": "2026-01-01",
                                              "beside": {"live": 9, "libraries": report.beside(WINDOWS)}})
        self.assertIn("| generations | shortlist | 16 | 0.0020 | 0.0020 | 2.00 | 1.20 | 0.125 |", page)
        self.assertIn("| generations | shortlist | 16 | 0.9167 | 0.900 | 5 | 9 | 37500 | 10000 | – | 0.0 | 1 |", page)
        self.assertIn("| usearch | 28 | 1 / 10 / 9 | 1 / 63 / 9 | 1 / 65 / 9 | 1.55 | 1.00 | 1.12 | 75 |", page)
        self.assertIn("- faiss: no package", page)
        rows = [line for line in page.splitlines() if line.startswith("|")]
        self.assertEqual([line.count("|") for line in rows], [13] * 3 + [9] * 3 + [11] * 3)


if __name__ == "__main__":
    unittest.main()
