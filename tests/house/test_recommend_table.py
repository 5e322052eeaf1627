"""examples/recommend_table.py, which the examples of Spark and Ray share, on a small index and model. Those two are only
compiled here: ./dev engines runs them."""

import dataclasses
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import pandas as pd
import pyarrow.parquet

import shortlist

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
sys.dont_write_bytecode = True
sys.path.insert(0, str(EXAMPLES))
import recommend_table  # noqa: E402
from recommend_table import Job, JobError  # noqa: E402

DIM, ITEMS, USERS = 8, 300, 40
SPEC = {"label": {"column": "click"}, "deep": {"hidden": [16]}, "features": [
    {"name": "age", "type": "numeric"}, {"name": "year", "type": "numeric", "side": "item"},
    {"name": "city", "type": "categorical"}, {"name": "near", "type": "score"}]}


def make(folder):
    """Index, model, item table and a frame of users. User 3 has no vector; user 5 has seen the items 0 to 4."""
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((ITEMS, DIM), np.float32)
    index = shortlist.Index(dim=DIM, metric="ip", codes="f32")
    index.add(vectors, threads=1)
    index.save(folder / "index.sl")
    year = rng.random(ITEMS, np.float32)
    shortlist.Items({"id": np.arange(ITEMS), "year": year}).save(folder / "items.sli")
    clicks = {"age": rng.random(200), "year": rng.random(200), "city": rng.choice(["Oslo", "Rome"], 200),
              "near": rng.random(200), "click": rng.integers(2, size=200)}
    shortlist.Ranker.create(SPEC, clicks, seed=1).save(folder / "model.slr")
    users = pd.DataFrame({"user_id": np.arange(100, 100 + USERS), "age": rng.random(USERS),
                          "city": rng.choice(["Oslo", "Rome"], USERS)})
    users["vector"] = list(rng.standard_normal((USERS, DIM), np.float32))
    users["seen"] = [[] for _ in range(USERS)]
    users.at[3, "vector"] = None
    users.at[5, "seen"] = [0, 1, 2, 3, 4]
    return vectors, users


class Shared(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.addCleanup(recommend_table.opened.cache_clear)
        recommend_table.opened.cache_clear()
        self.folder = pathlib.Path(holder.name)
        self.vectors, self.users = make(self.folder)
        files = {what: str(self.folder / name) for what, name in
                 (("index", "index.sl"), ("model", "model.slr"), ("items", "items.sli"))}
        self.job = Job(**files, n=5, candidates=50)

    def with_job(self, **fields):
        return dataclasses.replace(self.job, **fields)

    def test_rows_are_those_of_recommend(self):
        found = recommend_table.recommend_frame(self.job, self.users)
        rest = self.users.drop(index=3)
        wanted = shortlist.recommend(
            shortlist.open(self.job.index), shortlist.Ranker.open(self.job.model), shortlist.Items.open(self.job.items),
            np.array(list(rest.vector), np.float32), rest, n=5, candidates=50)
        self.assertEqual(found.user_id.tolist(), np.repeat(rest.user_id, 5).tolist())
        self.assertEqual(found["rank"].tolist(), [1, 2, 3, 4, 5] * (USERS - 1))
        self.assertEqual(found.item.tolist(), wanted.ids.ravel().tolist())
        self.assertEqual(found.score.tolist(), wanted.scores.ravel().tolist())
        self.assertEqual([str(kind) for kind in found.dtypes[1:]], ["int32", "int64", "float32"])

    def test_a_row_does_not_depend_on_its_batch(self):
        whole = recommend_table.recommend_frame(self.job, self.users)
        parts = [self.users[first:first + 7] for first in range(0, USERS, 7)]
        pieces = pd.concat(recommend_table.recommend_frames(self.job, parts), ignore_index=True)
        pd.testing.assert_frame_equal(pieces, whole, check_exact=True)

    def test_short_lists_and_empty_frames(self):
        ids, scores = np.array([[7, shortlist.NO_ID], [8, 9]], np.uint64), np.array([[0.5, np.nan], [0.25, 0]], np.float32)
        frame = recommend_table.as_frame(self.job, pd.Series([1, 2]), ids, scores)
        self.assertEqual(frame.to_numpy().tolist(), [[1, 1, 7, 0.5], [2, 1, 8, 0.25], [2, 2, 9, 0]])
        for empty in (self.users[:0], self.users[3:4]):
            self.assertEqual(recommend_table.recommend_frame(self.job, empty).shape, (0, 4))
        ids[1, 0] = 2**63
        with self.assertRaisesRegex(JobError, "9223372036854775808 is larger"):
            recommend_table.as_frame(self.job, pd.Series([1, 2]), ids, scores)

    def test_only_columns_in_use_are_read(self):
        there = [*self.users, "zip", "year"]
        self.assertEqual(self.job.columns(there), ["user_id", "vector", "age", "city"])
        self.assertEqual(self.with_job(exclude="seen", vector=None, vector_of="seen", user="age").columns(there),
                         ["age", "seen", "city"])

    def test_excluded_items_do_not_come(self):
        job = self.with_job(exclude="seen", n=ITEMS, candidates=ITEMS)
        self.users.at[6, "seen"] = None
        items = recommend_table.recommend_frame(job, self.users).groupby("user_id").item.apply(set)
        self.assertEqual(set(range(ITEMS)) - items[105], {0, 1, 2, 3, 4})
        self.assertEqual(len(items[106]), ITEMS)

    def test_the_mean_of_items_stands_for_a_vector(self):
        job = self.with_job(vector=None, vector_of="seen")
        self.users.at[7, "seen"] = [2, ITEMS + 50]  # An item that the index lacks.
        index, _ = recommend_table.opened(job)
        there, vectors = recommend_table.with_vectors(job, index, self.users)
        self.assertEqual(there.user_id.tolist(), [105, 107])
        np.testing.assert_allclose(vectors, [self.vectors[:5].mean(axis=0), self.vectors[2]], rtol=1e-6)

    def test_a_process_opens_the_files_once(self):
        job = self.with_job(log=str(self.folder / "log"))
        for _ in recommend_table.recommend_frames(job, [self.users] * 3):
            pass
        (file,) = (self.folder / "log").iterdir()
        self.assertEqual(len(file.read_text().splitlines()), 1)

    def test_failures_say_what_and_where(self):
        nowhere = str(self.folder / "nowhere.sl")
        with self.assertRaisesRegex(JobError, "there is no file .*nowhere.sl; --index takes"):
            self.with_job(index=nowhere).check_files()
        with self.assertRaisesRegex(JobError, r"on \S+: cannot open .*nowhere.sl"):
            recommend_table.recommend_frame(self.with_job(index=nowhere), self.users)
        with self.assertRaisesRegex(JobError, r"on \S+: .*model.slr"):
            recommend_table.recommend_frame(self.with_job(items=self.job.model), self.users)
        with self.assertRaisesRegex(JobError, "no column 'no'; it has user_id, age"):
            self.with_job(exclude="no").columns(list(self.users))
        with self.assertRaisesRegex(JobError, "users' ids is named 'item'"):
            self.with_job(user="item").columns(["item", *self.users])
        with self.assertRaisesRegex(JobError, "no column 'city', which the model asks about; it has user_id, age"):
            self.job.columns(["user_id", "age", "vector"])
        with self.assertRaisesRegex(JobError, r"on \S+: .*city"):
            recommend_table.recommend_frame(self.job, self.users.drop(columns="city"))
        self.users.at[1, "vector"] = np.zeros(DIM + 1, np.float32)
        with self.assertRaisesRegex(JobError, "user 101 has a vector of 9 numbers; the index has 8"):
            recommend_table.recommend_frame(self.job, self.users)

    def test_the_reason_is_found_in_an_engines_report(self):
        report = "Job aborted.\nTraceback:\n  raise JobError(..)\nrecommend_table.JobError: on a: it broke\n at java"
        self.assertEqual(recommend_table.reason(RuntimeError(report)), "on a: it broke")
        self.assertEqual(recommend_table.reason(JobError("it broke")), "it broke")
        self.assertIsNone(recommend_table.reason(RuntimeError("Job aborted.")))

    def test_the_program_writes_the_table(self):
        self.users.to_parquet(self.folder / "users.parquet", row_group_size=9)
        out = self.folder / "top.parquet"
        files = [word for what in ("index", "model", "items") for word in (f"--{what}", getattr(self.job, what))]
        command = [sys.executable, "-B", EXAMPLES / "recommend_table.py", self.folder / "users.parquet", out, *files,
                   "-n", "5", "--candidates", "50", "--batch", "4"]
        subprocess.run(command, check=True, capture_output=True)
        wanted = recommend_table.recommend_frame(self.job, self.users)
        pd.testing.assert_frame_equal(pyarrow.parquet.read_table(out).to_pandas(), wanted, check_exact=True)
        self.assertEqual(sorted(path.suffix for path in self.folder.glob("top*")), [".parquet"])
        failed = subprocess.run([*command, "--index", "nowhere.sl"], capture_output=True, text=True)
        self.assertEqual((failed.returncode, failed.stderr.count("\n")), (1, 1))
        self.assertRegex(failed.stderr, "^recommend_table.py: there is no file .*nowhere.sl")


class Engines(unittest.TestCase):
    def test_the_programs_are_sound_python(self):
        for name in ("spark_recommend.py", "ray_recommend.py"):
            compile((EXAMPLES / name).read_text(encoding="utf-8"), name, "exec")


if __name__ == "__main__":
    unittest.main()
