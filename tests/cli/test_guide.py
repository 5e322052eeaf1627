"""The guide's commands, run as they are written on what the demo leaves: here fewer vectors and people of its kinds."""

import os
import random
import re
import subprocess
import unittest

from harness import COMMAND, CommandTest, clustered, encode

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GUIDE = os.path.join(ROOT, "docs", "GUIDE.md")
SECTIONS = ("On the command line", "Change an index while it serves", "What to watch")


def blocks(section):
    """The shell blocks of a section of the guide."""
    with open(GUIDE, encoding="utf-8") as file:
        text = file.read()
    body = re.search(rf"^#+ {re.escape(section)}\n(.*?)(?=^##)", text, re.DOTALL | re.MULTILINE)
    return re.findall(r"^```sh\n(.*?)^```", body.group(1), re.DOTALL | re.MULTILINE)


def people(n, seed):
    """Rows with the columns that examples/specs/adult.json names."""
    source = random.Random(seed)
    words = {"workclass": 4, "education": 6, "marital-status": 3, "occupation": 5, "relationship": 4, "race": 3,
             "gender": 2, "native-country": 5}
    numbers = {"age": (17, 90), "educational-num": (1, 16), "capital-gain": (0, 9999), "capital-loss": (0, 2000),
               "hours-per-week": (1, 99)}
    lines = [",".join([*words, *numbers, "income"])]
    for _ in range(n):
        cells = [f"{name}{source.randrange(many)}" for name, many in words.items()]
        years = [source.randint(*span) for span in numbers.values()]
        lines.append(",".join([*cells, *map(str, years), ">50K" if years[1] > 10 else "<=50K"]))
    return "\n".join(lines) + "\n"


class Guide(CommandTest):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("data/glove100"))
        os.makedirs(self.path("data/adult"))
        os.symlink(os.path.join(ROOT, "examples"), self.path("examples"))
        os.symlink(os.path.dirname(COMMAND), self.path("build"))
        for name, rows in (("base", clustered(3000, 20, 1)), ("queries", clustered(400, 20, 2))):
            self.write(f"data/glove100/{name}.fbin", encode(rows, ".fbin"))
        for name, seed in (("train", 1), ("test", 2)):
            self.write(f"data/adult/{name}.csv", people(600, seed).encode())
        self.write("dev", b"#!/bin/sh\n[ \"$*\" = 'data adult' ]\n")
        os.chmod(self.path("dev"), 0o755)

    def run_lines(self, lines):
        done = subprocess.run(["bash", "-e", "-c", lines], cwd=self.folder, capture_output=True,
                              text=True, timeout=600)
        self.assertEqual(done.returncode, 0, f"{lines}\n{done.stdout}{done.stderr}")

    def test_the_commands_run_as_written(self):
        written = [block for section in SECTIONS for block in blocks(section)]
        self.assertEqual(len(written), 3)
        for command in ("build", "truth", "tune", "eval", "search", "check", "snapshot", "add", "delete",
                        "rebuild", "merge", "info", "recall", "train", "evaluate"):
            self.assertTrue(any(f"\nshortlist {command} " in block for block in written), command)
        export = "export PATH=\"$PWD/build:$PATH\"\n"
        trains = self.run_json("cpu")["onednn"]
        for block in written:
            if not trains:
                block = re.sub(r"(?m)^shortlist (train|evaluate) .*$", "", block)
            self.run_lines(export + block)
        for name in ("items.sl", "copy.sl"):
            told = self.run_json("info", f"data/glove100/{name}")
            self.assertEqual((told["n"], told["deleted"]), (3000 + 400 - 2, 0))
        told = self.run_json("info", "data/glove100/live.sl")
        self.assertEqual((told["n"], told["deleted"]), (3000 + 400 - 2, 2))


if __name__ == "__main__":
    unittest.main()
