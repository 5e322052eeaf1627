"""All commands of one small set of data, for the tests of what holds for every command."""

import os
import shutil

from ranking import DEEP, IDS, VECTORS, RankingTest


FOREIGN = os.path.join(os.path.dirname(__file__), os.pardir, "golden", "foreign", "hnswlib-0.8.0.bin")


class EveryCommand(RankingTest):
    """Every command that writes, each with an output named out."""

    def setUp(self):
        super().setUp()
        self.with_model()
        self.with_index()
        self.vectors("q.fbin", VECTORS[:60])
        self.vectors("t.ibin", [[i] for i in IDS[:60]])
        self.run_ok("items", "items.csv", "-o", "own.sli")
        self.run_ok("build", "base.fbin", "-o", "own.sl", "--metric", "l2")
        self.vectors("gone.ibin", [[3]])
        shutil.copy(FOREIGN, self.path("foreign.bin"))

    @staticmethod
    def commands():
        made = [
            ("build", "base.fbin", "--metric", "l2", "-o", "out.sl"),
            ("import", "hnswlib", "foreign.bin", "--metric", "l2", "-o", "out.sl"),
            ("merge", "x.sl", "-o", "out.sl"),
            ("rebuild", "x.sl", "-o", "out.sl"),
            ("snapshot", "x.sl", "-o", "out.sl"),
            ("truth", "base.fbin", "q.fbin", "-k", "3", "--metric", "l2", "-o", "out.ibin"),
            ("search", "x.sl", "q.fbin", "-k", "3", "-o", "out.ibin"),
            ("search", "x.sl", "q.fbin", "-k", "3", "-o", "ids.ibin", "--scores", "out.fbin"),
            ("convert", "base.fbin", "out.npy"),
            ("eval", "x.sl", "q.fbin", "t.ibin", "-k", "1", "--plot", "out.svg"),
            ("train", "spec.json", "clicks.csv", "-o", "out.slr"),
            ("train", "spec.json", "clicks.csv", "-o", "m2.slr", "--checkpoint", "out.slr"),
            ("predict", "m.slr", "test.csv", "-o", "out.npy"),
            ("items", "items.csv", "-o", "out.sli"),
            ("recommend", "x.sl", "m.slr", "items.sli", "requests.csv", "-n", "3", "-o", "out.csv"),
        ]
        if DEEP:
            made.append(("prune", "m.slr", "--data", "clicks.csv", "--units", "0.5", "-o", "out.slr"))
            made.append(("quantize", "m.slr", "--data", "clicks.csv", "--max-drop", "1", "-o", "out.slr"))
        return made

    @staticmethod
    def changes():
        return [("add", "own.sl", "base.fbin"), ("delete", "own.sl", "--ids", "gone.ibin"),
                ("tune", "own.sl", "q.fbin", "-k", "1"), ("rebuild", "own.sl"),
                ("items", "own.sli", "--update", "items.csv")]

    @staticmethod
    def output(command):
        return next((word for word in command if word.startswith("out.")), command[1])

    @staticmethod
    def others():
        """Commands that write nothing."""
        return [("search", "x.sl", "q.fbin", "-k", "3"), ("eval", "x.sl", "q.fbin", "t.ibin", "-k", "1"),
                ("info", "x.sl"), ("check", "x.sl"), ("check", "m.slr"), ("check", "items.sli"),
                ("evaluate", "m.slr", "test.csv"),
                ("recommend", "x.sl", "m.slr", "items.sli", "requests.csv", "-n", "3")]
