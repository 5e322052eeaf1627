"""Code that the tests of shortlist-mpi share: running it on several ranks, in the folder of a test."""

import json
import os
import subprocess

from harness import CommandTest

MPI_COMMAND = os.environ["SHORTLIST_MPI"]
MPIRUN = os.environ["MPIRUN"].split()


class JobTest(CommandTest):
    """A folder per test, and jobs of several ranks run in it."""

    def job(self, ranks, *arguments, **options):
        command = [*MPIRUN, str(ranks), MPI_COMMAND, *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300, **options)

    def job_ok(self, ranks, *arguments, **options):
        done = self.job(ranks, *arguments, **options)
        self.assertEqual(done.returncode, 0, f"{ranks} ranks, {arguments}: {done.stderr}")
        return done.stdout

    def job_json(self, ranks, *arguments, **options):
        """Exactly one JSON object is on stdout, in one line."""
        out = self.job_ok(ranks, *arguments, "--json", **options)
        self.assertEqual(out.count("\n"), 1, out)
        return json.loads(out)

    def job_bad(self, ranks, status, *arguments, says=(), **options):
        """Fails with this status and one line of the program, which holds all of `says`; leaves the folder as it was."""
        before = self.snapshot()
        done = self.job(ranks, *arguments, **options)
        self.assertEqual(done.returncode, status, f"{ranks} ranks, {arguments}: {done.stdout}{done.stderr}")
        lines = [line for line in done.stderr.splitlines() if line.startswith("shortlist-mpi")]
        self.assertEqual(len(lines), 1, done.stderr)
        for text in says:
            self.assertIn(text, lines[0], arguments)
        self.assertEqual(self.snapshot(), before, f"{arguments} changed the folder")
        return lines[0]
