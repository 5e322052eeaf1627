"""Spark and Ray, two workers each on this machine, give the rows that one process gives, also if a worker is killed.
`./dev engines` makes ready what this needs and runs it: films for everybody of MovieLens-100k."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import pandas as pd
import pyarrow.parquet

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
WORKERS = 2
TIMES = 16  # The table of the killed worker has everybody so often: work for some ten seconds.


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)


def rows(path):
    """A table in the order of user and rank, since engines write rows in any order. The metadata is pandas's."""
    table = pyarrow.parquet.read_table(path).replace_schema_metadata()
    return table.sort_by([("key", "ascending"), ("rank", "ascending")])


def setUpModule():
    """Makes index, model and tables, and the rows of one process."""
    global FOLDER, ENVIRONMENT
    holder = tempfile.TemporaryDirectory(prefix="engines")
    unittest.addModuleCleanup(holder.cleanup)
    FOLDER = Path(holder.name)
    ENVIRONMENT = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "RAY_"))},
        "HOME": str(FOLDER), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1",
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": f"{FOLDER}/spark",
        "RAY_TMPDIR": f"{FOLDER}/ray",
    }
    made = run(sys.executable, EXAMPLES / "films.py", "--save", FOLDER / "films", env=ENVIRONMENT)
    assert made.returncode == 0, made.stderr
    people = pd.read_parquet(FOLDER / "films" / "people.parquet")
    for name, times in (("people", 1), ("crowd", TIMES)):
        table = pd.concat([people] * times, ignore_index=True)
        table["key"] = range(len(table))
        table.to_parquet(FOLDER / f"{name}.parquet")
        done = run(sys.executable, EXAMPLES / "recommend_table.py", *words(name, "one"), env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr
        print(f"{name}, one process: {done.stdout.strip()}", flush=True)


def words(users, out, **other):
    """The command line: the users' table, the table written, and the files of the job."""
    given = {"index": "films/films.sl", "model": "films/films.slr", "items": "films/films.sli", **other}
    paths = [word for what, path in given.items() for word in (f"--{what}", FOLDER / path)]
    return [FOLDER / f"{users}.parquet", FOLDER / f"{out}-{users}", *paths, "--user", "key", "--exclude", "seen"]


class Engine:
    """The tests of each engine. name: the start of its program's name; engine(): the command before the arguments."""

    def start(self, users, log, *more, **other):
        """The engine at work on a table, with its output in a file."""
        command = [*self.engine(), *words(users, self.name, log=log, **other), *more]
        with (FOLDER / f"{log}.out").open("w", encoding="utf-8") as output:
            return subprocess.Popen([str(word) for word in command], env=ENVIRONMENT, cwd=FOLDER, stdout=output,
                                    stderr=subprocess.STDOUT)

    def finish(self, process, log):
        """The exit status and the output."""
        try:
            status = process.wait(timeout=600)
        finally:
            process.kill()
        return status, (FOLDER / f"{log}.out").read_text(encoding="utf-8", errors="replace")

    def openings(self, log):
        """{pid: the times at which the process opened index and model} of a job's worker processes."""
        files = (FOLDER / log).glob("*") if (FOLDER / log).is_dir() else []
        return {int(file.name.rpartition("-")[2]): [float(line.split()[0]) for line in file.read_text().splitlines()]
                for file in files}

    def check_rows(self, users):
        """The same ids and the same bits of the scores as one process, and the same types."""
        self.assertTrue(rows(FOLDER / f"{self.name}-{users}").equals(rows(FOLDER / f"one-{users}")))

    def test_rows_are_those_of_one_process(self):
        log = f"{self.name}-same"
        begin = time.monotonic()
        status, output = self.finish(self.start("people", log, "--parts", 8, "--batch", 50), log)
        self.assertEqual(status, 0, output[-3000:])
        print(f"people, {self.name}: {time.monotonic() - begin:.1f} s with starting the engine", flush=True)
        self.check_rows("people")
        opened = self.openings(log)
        self.assertEqual(sorted(map(len, opened.values())), [1] * WORKERS, "openings of index and model by process")
        self.assertNotIn(os.getpid(), opened)

    def test_a_killed_worker_changes_no_row(self):
        log = f"{self.name}-killed"
        process = self.start("crowd", log, "--parts", 32, "--batch", 100)
        begin = time.monotonic()
        while len(self.openings(log)) < WORKERS and process.poll() is None and time.monotonic() - begin < 120:
            time.sleep(0.05)
        time.sleep(1)  # By then the worker is at its batches.
        before = self.openings(log)
        self.assertEqual((len(before), process.poll()), (WORKERS, None), self.finish(process, log)[1][-3000:]
                         if process.poll() is not None else "")
        victim = min(before, key=before.get)
        maps = Path(f"/proc/{victim}/maps").read_text()
        shared = [line for line in maps.splitlines() if line.endswith("films.sl")]
        self.assertTrue(shared and all(line.split()[1] in ("r--s", "r--p") for line in shared), maps)
        os.kill(victim, signal.SIGKILL)
        killed = time.time()
        status, output = self.finish(process, log)
        self.assertEqual(status, 0, output[-3000:])
        self.check_rows("crowd")
        after = self.openings(log)
        self.assertTrue(all(len(times) == 1 for times in after.values()), after)
        new = [times[0] for pid, times in after.items() if pid not in before]
        self.assertTrue(new and min(new) > killed, "a new worker takes the killed one's place")

    def test_a_missing_index_is_one_message(self):
        log = f"{self.name}-missing"
        status, output = self.finish(self.start("people", log, index="nowhere.sl"), log)
        self.assertFalse("Traceback" in output, output[-3000:])
        self.assertEqual((status, output.splitlines()[-1]), (1, f"{self.name}_recommend.py: there is no file "
                         f"{FOLDER}/nowhere.sl; --index takes a path that every machine sees"))

    def test_a_worker_that_cannot_open_ends_in_one_message(self):
        log = f"{self.name}-damaged"
        (FOLDER / "damaged.sl").write_text("no index\n" * 1000)
        status, output = self.finish(self.start("people", log, index="damaged.sl"), log)
        told = [line for line in output.splitlines() if line.startswith(f"{self.name}_recommend.py: ")]
        self.assertEqual((status, len(told)), (1, 1), output[-3000:])
        self.assertRegex(told[0], r": on \S+: .*damaged\.sl")


class Spark(Engine, unittest.TestCase):
    name = "spark"

    def engine(self):
        settings = ("spark.driver.bindAddress=127.0.0.1", "spark.ui.enabled=false")
        conf = [word for setting in settings for word in ("--conf", setting)]
        return [Path(sys.executable).parent / "spark-submit", "--master", f"local[{WORKERS},4]", *conf,
                EXAMPLES / "spark_recommend.py"]


class Ray(Engine, unittest.TestCase):
    name = "ray"

    def engine(self):
        return [sys.executable, EXAMPLES / "ray_recommend.py", "--workers", WORKERS]


if __name__ == "__main__":
    unittest.main(verbosity=2)
