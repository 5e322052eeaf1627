"""Code that the tests of shortlist-mpi share: running it on several ranks, in the folder of a test."""

import ctypes
import json
import os
import signal
import subprocess
import time

from harness import CommandTest
from test_mounts import AS_ROOT_OF_ITS_OWN, call, mount_over

MPI_COMMAND = os.environ["SHORTLIST_MPI"]
MPIRUN = os.environ["MPIRUN"].split()
# For jobs that fail at once. Open MPI's mpirun else waits two seconds before it is sure that the ranks have ended.
ENDS_SOON = {"OMPI_MCA_odls_base_sigkill_timeout": "0"}


def mount_small(folder, size="8k"):
    """In the child: a file system of this size over a folder."""
    mount_over(as_root_of_its_own=AS_ROOT_OF_ITS_OWN)
    libc = ctypes.CDLL(None, use_errno=True)
    call(libc.mount, b"none", folder.encode(), b"tmpfs", ctypes.c_ulong(0), f"size={size}".encode())


def processes_in(folder):
    """The processes of shortlist-mpi that run in a folder: mpirun's children, or those of its proxy."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(MPI_COMMAND) and \
                    os.readlink(f"/proc/{pid}/cwd") == os.path.realpath(folder):
                found.append(int(pid))
        except OSError:
            pass  # it has ended, or is another user's
    return sorted(found)


class JobTest(CommandTest):
    """A folder per test, and jobs of several ranks run in it."""

    def job(self, ranks, *arguments, env=None, **options):
        command = [*MPIRUN, str(ranks), MPI_COMMAND, *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env={**(env or os.environ), **ENDS_SOON}, **options)

    def job_ok(self, ranks, *arguments, **options):
        done = self.job(ranks, *arguments, **options)
        self.assertEqual(done.returncode, 0, f"{ranks} ranks, {arguments}: {done.stderr}")
        return done.stdout

    def job_json(self, ranks, *arguments, **options):
        """Exactly one JSON object is on stdout, in one line."""
        out = self.job_ok(ranks, *arguments, "--json", **options)
        self.assertEqual(out.count("\n"), 1, out)
        return json.loads(out)

    def started(self, ranks, *arguments, **environment):
        """A job that runs on; its ranks' processes, in their order."""
        job = subprocess.Popen([*MPIRUN, str(ranks), MPI_COMMAND, *arguments], cwd=self.folder, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment})
        self.addCleanup(job.kill)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            pids = processes_in(self.folder)
            if len(pids) == ranks:
                return job, pids
            self.assertIsNone(job.poll(), "the job ended before its ranks were seen")
            time.sleep(0.02)
        raise AssertionError(f"not {ranks} ranks in a minute")

    def mixed(self, *ranks):
        """A job whose ranks have command lines of their own."""
        command = []
        for arguments in ranks:
            command += [":", *MPIRUN[1:]] if command else MPIRUN
            command += ["1", *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env={**os.environ, **ENDS_SOON})

    def fails(self, done, status, says):
        """A job failed with this status and one line of the program, which holds all of `says`. Returns the line."""
        self.assertEqual(done.returncode, status, f"{done.args}: {done.stdout}{done.stderr}")
        lines = [line for line in done.stderr.splitlines() if line.startswith("shortlist-mpi")]
        self.assertEqual(len(lines), 1, done.stderr)
        for text in says:
            self.assertIn(text, lines[0], done.args)
        return lines[0]

    def job_bad(self, ranks, status, *arguments, says=(), **options):
        """Fails, and leaves the folder as it was. Returns the line of the program."""
        before = self.snapshot()
        done = self.job(ranks, *arguments, **options)
        line = self.fails(done, status, says)
        self.assertEqual(self.snapshot(), before, f"{arguments} changed the folder")
        return line

    def full_bad(self, ranks, *arguments, says, size="8k"):
        """Fails because the folder `small`, which an argument names, lies on a file system of this size."""
        os.makedirs(self.path("small"), exist_ok=True)
        self.job_bad(ranks, 1, *arguments, says=says, preexec_fn=lambda: mount_small(self.path("small"), size))

    def stands_still(self, job, pid):
        """Stops a rank. The job ends within 30 s, with status 1. Returns what it said."""
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: subprocess.run(["kill", "-9", str(pid)], capture_output=True))
        begin = time.monotonic()
        _, said = job.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(job.returncode, 1)
        return said

    def interrupted(self, *command, until=None):
        """Ends soon, and says why, after a signal to one rank of a job that would take long. The signal comes when `until`
        is true, or after a second."""
        job, pids = self.started(2, *map(str, command))
        deadline = time.monotonic() + (60 if until else 1)
        while time.monotonic() < deadline and not (until and until()):
            time.sleep(0.01)
        self.assertIsNone(job.poll(), f"{command} had ended before the signal")
        os.kill(pids[1], signal.SIGTERM)
        out, err = job.communicate(timeout=30)
        return self.fails(subprocess.CompletedProcess(command, job.returncode, out, err), 1, ("interrupted",))

    def elsewhere_bad(self, *arguments, says=()):
        """Fails on three ranks of one command line, of which rank 1 runs in the folder `other`. Leaves the folder as it
        was."""
        before = self.snapshot()
        own = [MPI_COMMAND, *arguments]
        done = self.mixed(own, ["bash", "-c", 'cd other; exec "$@"', "bash", *own], own)
        self.fails(done, 1, ("rank 1 (", *says))
        self.assertEqual(self.snapshot(), before, f"{arguments} changed the folder")
