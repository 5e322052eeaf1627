"""Input that must not pass. Each case has its exit status and a line that names the file, the row and the remedy. Each
leaves every file as it was. And what ends a run: signals, full disks."""

import math
import os
import pty
import resource
import signal
import struct
import subprocess
import time
import unittest

from harness import COMMAND, SANITIZER, CommandTest, children_of, clustered, npy

N, DIM = 300, 8
BASE = clustered(N, DIM, 3)
CPU = min(os.sched_getaffinity(0))


def running(pid):
    """Tells whether there is such a process and it has not ended; what has ended may still wait to be asked how."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Values(CommandTest):
    def base_with(self, row, bad):
        rows = [list(r) for r in BASE]
        rows[row] = bad
        return rows

    def test_nan_and_infinity(self):
        for bad in (math.nan, math.inf, -math.inf):
            rows = self.base_with(123, [bad] + [0.5] * (DIM - 1))
            for ending, kind in ((".fbin", "f32"), (".npy", "f16"), (".npy", "f64")):
                for metric in ("ip", "cosine", "l2"):
                    with self.subTest(bad=bad, kind=kind, metric=metric):
                        self.vectors("b" + ending, rows, kind)
                        self.write("x.sl", b"what was here")
                        self.run_bad(1, "build", "b" + ending, "-o", "x.sl", "--metric", metric,
                                     says=["b" + ending, "row 123"])
            self.vectors("b.fbin", rows)
            self.vectors("q.fbin", BASE[:5])
            self.run_bad(1, "truth", "b.fbin", "q.fbin", "-k", 3, "--metric", "ip", "-o", "t.ibin",
                         says=["b.fbin", "row 123"])

    def test_zero_vector(self):
        self.vectors("b.fbin", self.base_with(7, [0.0] * DIM))
        self.run_bad(1, "build", "b.fbin", "-o", "x.sl", "--metric", "cosine", says=["b.fbin", "row 7"])
        self.run_ok("build", "b.fbin", "-o", "x.sl", "--metric", "l2")
        self.vectors("b.u8bin", [[1] * DIM, [0] * DIM, [2] * DIM])
        self.run_bad(1, "build", "b.u8bin", "-o", "y.sl", "--metric", "cosine", says=["b.u8bin", "row 1"])

    def test_bad_queries(self):
        self.vectors("b.fbin", BASE)
        self.vectors("t.ibin", [[0], [1], [2]])
        for metric, bad in (("l2", math.nan), ("cosine", 0.0)):
            self.run_ok("build", "b.fbin", "-o", "x.sl", "--metric", metric)
            self.vectors("q.fbin", [BASE[0], [bad] * DIM, BASE[1]])
            self.run_bad(1, "search", "x.sl", "q.fbin", "-k", 3, "-o", "r.ibin", says=["q.fbin", "row 1"])
            self.run_bad(1, "eval", "x.sl", "q.fbin", "t.ibin", "-k", 1, "--ef", 10, says=["q.fbin", "row 1"])
            self.run_bad(1, "eval", "x.sl", "q.fbin", "t.ibin", "-k", 1, "--ef", 10, "--procs", 2, "--pin", CPU,
                         says=["q.fbin", "row 1"])
            self.run_bad(1, "truth", "b.fbin", "q.fbin", "-k", 3, "--metric", metric, "-o", "r.ibin",
                         says=["q.fbin", "row 1"])

    def test_row_is_that_of_the_file_in_later_blocks(self):
        """--max-memory makes the blocks small; the row named is the file's all the same."""
        rows = [list(r) for r in clustered(40000, 8, 5)]
        rows[39990][3] = math.nan
        self.vectors("b.fbin", rows)
        self.run_bad(1, "build", "b.fbin", "-o", "x.sl", "--metric", "l2", "--m", 2, "--ef-build", 4, "--max-memory",
                     "8M", says=["b.fbin", "row 39990"])

    def test_float64_beyond_float32(self):
        self.vectors("b.npy", self.base_with(9, [1e300] * DIM), "f64")
        self.run_bad(1, "build", "b.npy", "-o", "x.sl", "--metric", "l2", says=["b.npy, row 9", "1e+300"])

    def test_integers_beyond_float32(self):
        self.vectors("b.ibin", [[1] * DIM, [2**24 + 1] * DIM])
        self.run_bad(1, "build", "b.ibin", "-o", "x.sl", "--metric", "l2", says=["b.ibin, row 1", "16777217"])


class Ids(CommandTest):
    def setUp(self):
        super().setUp()
        self.vectors("b.fbin", BASE)

    def refuse(self, data, *says, name="ids.npy"):
        self.write(name, data)
        self.run_bad(1, "build", "b.fbin", "-o", "x.sl", "--metric", "l2", "--ids", name, says=says)

    def test_twice(self):
        ids = [[i] for i in range(N)]
        ids[250] = [17]
        self.refuse(npy(ids, "u64"), "row 250", "17")

    def test_wrong_count_shape_type(self):
        self.refuse(npy([[i] for i in range(N - 1)], "u64"), "ids.npy", "299 ids", "300 vectors")
        self.refuse(npy([[i, i] for i in range(N)], "u64"), "ids.npy", "one column")
        self.refuse(npy([[float(i)] for i in range(N)], "f32"), "ids.npy", "whole numbers")

    def test_reserved_or_negative(self):
        self.refuse(npy([[i] for i in range(N - 1)] + [[2**64 - 1]], "u64"), "row 299")
        self.refuse(npy([[i] for i in range(N - 1)] + [[-4]], "i64"), "ids.npy, row 299", "-4")


class Arguments(CommandTest):
    def setUp(self):
        super().setUp()
        self.vectors("b.fbin", BASE)
        self.vectors("q.fbin", BASE[:4])
        self.vectors("t.ibin", [[i, i + 1] for i in range(4)])
        self.run_ok("build", "b.fbin", "-o", "x.sl", "--metric", "l2")

    def test_k_and_ef(self):
        search = ("search", "x.sl", "q.fbin", "-o", "r.ibin")
        evaluate = ("eval", "x.sl", "q.fbin", "t.ibin")
        truth = ("truth", "b.fbin", "q.fbin", "--metric", "l2", "-o", "r.ibin")
        for command in (search, evaluate, truth):
            self.run_bad(1, *command, "-k", 0, says=["-k is 0"])
            self.run_bad(1, *command, "-k", N + 1, says=["-k is 301", "300"])
        for command in (search, evaluate):
            self.run_bad(1, *command, "-k", 1, "--ef", 0, says=["--ef is 0"])
            self.run_bad(1, *command, "-k", 1, "--ef", N + 1, says=["--ef is 301", "300"])
        self.run_bad(1, *evaluate, "-k", 1, "--threads", 0, says=["--threads is 0"])
        self.run_bad(1, *evaluate, "-k", 1, "--procs", 0, says=["--procs is 0"])
        self.run_bad(1, *evaluate, "-k", 1, "--repeat", 0, says=["--repeat is 0"])

    def test_build_parameters(self):
        build = ("build", "b.fbin", "-o", "y.sl", "--metric", "l2")
        for options in (("--m", 0), ("--m", 1), ("--m", 257), ("--m", 2**63), ("--ef-build", 0), ("--ef-build", 10**9),
                        ("--codes", "i4", "--refine", "bf16"), ("--codes", "f32", "--refine", "f32"), ("--place", "map"),
                        ("--place", "pmem")):
            with self.subTest(options=options):
                self.run_bad(1, *build, *options)
        self.assertNotIn("b.fbin", self.run_bad(1, *build, "--m", 1, says=["m is 1; give 2 to 256"]))
        for clip in ("median", "quantile:", "quantile:0.6", "quantile:-0.1", "quantile:nan", "quantile:0.1x", "mse:1", ""):
            with self.subTest(clip=clip):
                self.run_bad(2, *build, "--clip", clip, says=["--clip", "quantile:SHARE"])
        self.run_bad(1, *build, "--codes", "f32", "--clip", "mse", says=["use clip auto"])
        self.vectors("b.u8bin", [[1] * DIM, [2] * DIM])
        for options in (("--codes", "f32"), ("--codes", "i16"), ("--refine", "f32")):
            with self.subTest(options=options):
                self.run_bad(1, "build", "b.u8bin", "-o", "y.sl", "--metric", "l2", *options, says=["b.u8bin"])

    def test_wrong_dimension(self):
        self.vectors("q.fbin", [row[:5] for row in BASE[:4]])
        says = ["q.fbin", "5 elements", "have 8"]
        self.run_bad(1, "search", "x.sl", "q.fbin", "-k", 1, "-o", "r.ibin", says=says)
        self.run_bad(1, "eval", "x.sl", "q.fbin", "t.ibin", "-k", 1, says=says)
        self.run_bad(1, "truth", "b.fbin", "q.fbin", "-k", 1, "--metric", "l2", "-o", "r.ibin", says=says)

    def test_dimension_beyond_the_limit(self):
        self.vectors("wide.u8bin", [[1] * 65537])
        self.run_bad(1, "build", "wide.u8bin", "-o", "y.sl", "--metric", "l2", says=["wide.u8bin", "65536"])

    def test_wrong_type(self):
        self.vectors("q.u8bin", [[1] * DIM])
        says = ["q.u8bin", "u8", "f32", "convert"]
        self.run_bad(1, "search", "x.sl", "q.u8bin", "-k", 1, "-o", "r.ibin", says=says)
        self.run_bad(1, "truth", "b.fbin", "q.u8bin", "-k", 1, "--metric", "l2", "-o", "r.ibin", says=says)
        self.vectors("b.i8bin", [[1] * DIM, [2] * DIM])
        self.run_ok("build", "b.i8bin", "-o", "i.sl", "--metric", "l2")
        self.run_bad(1, "search", "i.sl", "q.u8bin", "-k", 1, "-o", "r.ibin", says=["q.u8bin", "i.sl", "i8"])
        self.run_bad(1, "search", "i.sl", "q.fbin", "-k", 1, "-o", "r.ibin", says=["q.fbin", "i.sl", "i8"])

    def test_outputs(self):
        search = ("search", "x.sl", "q.fbin", "-k", 1, "-o")
        self.run_bad(1, *search, "none/r.ibin", says=["none/r.ibin", "No such file"])
        self.run_bad(1, *search, "r.fbin", says=["r.fbin", "not ids"])
        self.run_bad(1, *search, "r.txt", says=["r.txt"])
        self.run_bad(1, *search, "r.ibin", "--scores", "s.ibin", says=["s.ibin", "not scores"])
        self.run_bad(1, *search, "r.npy", "--scores", "r.npy", says=["r.npy"])
        os.mkdir(self.path("folder.ibin"))
        self.run_bad(1, *search, "folder.ibin", says=["folder.ibin", "not a regular file"])
        os.symlink("/dev/full", self.path("full.ibin"))
        self.run_bad(1, *search, "full.ibin", says=["full.ibin", "not a regular file"])
        self.run_bad(1, "build", "b.fbin", "-o", "none/x.sl", "--metric", "l2", says=["none/x.sl"])
        self.run_bad(1, "build", "b.fbin", "-o", self.folder, "--metric", "l2", says=["not a regular file"])
        self.run_bad(1, "build", "b.fbin", "-o", "b.fbin/x.sl", "--metric", "l2", says=["b.fbin/x.sl"])
        self.run_bad(1, "eval", "x.sl", "q.fbin", "t.ibin", "-k", 1, "--plot", "none/p.svg", says=["none/p.svg"])

    def test_output_over_an_input(self):
        os.link(self.path("b.fbin"), self.path("same.fbin"))
        self.run_bad(1, "build", "b.fbin", "-o", "b.fbin", "--metric", "l2", says=["b.fbin", "input"])
        self.run_bad(1, "build", "b.fbin", "-o", "same.fbin", "--metric", "l2", says=["same.fbin", "input b.fbin"])
        self.run_bad(1, "convert", "b.fbin", "./b.fbin", says=["input b.fbin"])
        self.run_bad(1, "search", "x.sl", "q.fbin", "-k", 1, "-o", "r.ibin", "--scores", "q.fbin",
                     says=["input q.fbin"])
        self.run_bad(1, "truth", "b.fbin", "q.fbin", "-k", 1, "--metric", "l2", "-o", "r.ibin", "--scores", "b.fbin",
                     says=["input b.fbin"])
        self.run_bad(1, "eval", "x.sl", "q.fbin", "t.ibin", "-k", 1, "--plot", "x.sl", says=["input x.sl"])

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_folder_that_refuses(self):
        os.mkdir(self.path("locked"), 0o555)
        self.run_bad(1, "build", "b.fbin", "-o", "locked/x.sl", "--metric", "l2", says=["locked/x.sl", "denied"])
        self.run_bad(1, "convert", "b.fbin", "locked/b.npy", says=["locked/b.npy", "denied"])


class BadIndexes(CommandTest):
    def setUp(self):
        super().setUp()
        self.vectors("b.fbin", BASE)
        self.vectors("q.fbin", BASE[:4])
        self.vectors("t.ibin", [[i] for i in range(4)])
        self.run_ok("build", "b.fbin", "-o", "x.sl", "--metric", "l2")
        self.whole = self.read("x.sl")

    def refuse(self, data, *says):
        self.write("bad.sl", data)
        for command in (("info", "bad.sl"), ("check", "bad.sl"),
                        ("search", "bad.sl", "q.fbin", "-k", 1, "-o", "r.ibin"),
                        ("eval", "bad.sl", "q.fbin", "t.ibin", "-k", 1)):
            said = self.run_bad(1, *command, says=["bad.sl", *says])
            self.assertEqual(said.count("bad.sl"), 1, said)

    def test_no_index(self):
        self.refuse(b"", "empty")
        self.refuse(self.read("b.fbin"), "not a Shortlist index")
        self.refuse(b"X" + self.whole[1:], "not a Shortlist index")
        self.run_bad(1, "info", "none.sl", says=["none.sl", "No such file"])
        self.run_bad(1, "info", self.folder)
        self.run_bad(1, "info", "b.fbin", says=["b.fbin", "not a Shortlist index, model or item table"])

    def test_version(self):
        self.refuse(self.whole[:8] + struct.pack("<I", 99) + self.whole[12:], "version")

    def test_header(self):
        for at in (24, 40, 48, 60, 200, 520):
            data = bytearray(self.whole)
            data[at] ^= 1
            self.refuse(bytes(data), "damaged")

    def test_truncated(self):
        for size in (1, 7, 100, 4095, 4096, len(self.whole) // 2, len(self.whole) - 1):
            self.refuse(self.whole[:size])

    def test_longer(self):
        self.refuse(self.whole + b"x")


class Endings(CommandTest):
    """How runs end that do not come to their end."""

    def interrupt(self, command, number):
        """Waits for the first line of --progress, sends the signal, and returns what was said afterwards."""
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            first = process.stderr.readline()
            self.assertRegex(first, r"building +\d+% .* of 60000 vectors")
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        ended = -number if number == signal.SIGINT else 1
        self.assertEqual((process.returncode, out), (ended, ""), err)
        return err.splitlines()[-1]

    def test_signals_end_a_build_and_leave_nothing(self):
        command = self.long_build("b.i8bin")
        self.write("x.sl", b"what was here")
        before = self.snapshot()
        for number in (signal.SIGINT, signal.SIGTERM):
            self.assertEqual(self.interrupt(command, number), "shortlist build: interrupted; nothing was written")
            self.assertEqual(self.snapshot(), before)

    def start_processes(self):
        """A measurement by two processes that would take minutes."""
        self.vectors("b.fbin", BASE)
        self.vectors("q.fbin", BASE * 10)
        self.vectors("t.ibin", [[i] for i in range(N)] * 10)
        self.run_ok("build", "b.fbin", "-o", "x.sl", "--metric", "l2")
        process = subprocess.Popen([COMMAND, "eval", "x.sl", "q.fbin", "t.ibin", "-k", "1", "--procs", "2", "--pin",
                                    str(CPU), "--repeat", "1000"], cwd=self.folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(process.kill)
        return process, children_of(process, 2)

    def test_signal_ends_measuring_processes(self):
        """Ctrl-C reaches the whole group, a plain SIGTERM the first process alone."""
        for number in (signal.SIGINT, signal.SIGTERM):
            process, children = self.start_processes()
            if number == signal.SIGINT:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
            err = process.communicate(timeout=60)[1]
            ended = -number if number == signal.SIGINT else 1
            self.assertEqual((process.returncode, err), (ended, "shortlist eval: interrupted; nothing was written\n"))
            for pid in children:
                self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_measuring_process_that_dies(self):
        process, children = self.start_processes()
        os.kill(children[0], signal.SIGKILL)
        err = process.communicate(timeout=60)[1]
        self.assertEqual((process.returncode, err.count("\n")), (1, 1), err)
        self.assertIn("signal 9", err)

    def test_measuring_process_that_dies_while_others_wait(self):
        """The first waits at the start of the pass for the second. The second is stopped and then killed."""
        process, children = self.start_processes()
        os.kill(children[1], signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(children[1], signal.SIGKILL)
        err = process.communicate(timeout=60)[1]
        self.assertEqual((process.returncode, err.count("\n")), (1, 1), err)
        self.assertIn("signal 9", err)

    def test_measuring_processes_whose_parent_dies(self):
        """One command waits for the other, and the other is stopped."""
        process, children = self.start_processes()
        os.kill(children[1], signal.SIGSTOP)
        time.sleep(0.2)
        process.kill()
        process.wait(timeout=60)
        process.stderr.close()
        os.kill(children[1], signal.SIGCONT)
        deadline = time.monotonic() + 60
        while any(running(pid) for pid in children) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual([running(pid) for pid in children], [False, False])

    @unittest.skipIf(os.environ.get("SANITIZER") == "thread", "the sanitizer's runtime itself dies of the limit")
    def test_disk_full(self):
        """A limit on file sizes stands for a full disk: writes fail beyond it."""
        self.vectors("b.fbin", BASE * 10)
        self.vectors("q.fbin", BASE)
        self.run_ok("build", "b.fbin", "-o", "x.sl", "--metric", "l2")
        self.write("y.sl", b"what was here")
        self.write("r.ibin", b"what was here")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        for command, name in ((("build", "b.fbin", "-o", "y.sl", "--metric", "l2"), "y.sl"),
                              (("convert", "b.fbin", "r.npy"), "r.npy"),
                              (("search", "x.sl", "q.fbin", "-k", 10, "-o", "r.ibin"), "r.ibin"),
                              (("truth", "b.fbin", "q.fbin", "-k", 10, "--metric", "l2", "-o", "r.ibin"), "r.ibin")):
            with self.subTest(command=command):
                self.run_bad(1, *command, says=[name, "File too large"], preexec_fn=limit)

    def test_progress_lines(self):
        self.vectors("b.fbin", BASE)
        done = self.start("build", "b.fbin", "-o", "x.sl", "--metric", "l2", "--json", "--progress")
        self.assertEqual((done.returncode, done.stdout.count("\n")), (0, 1))
        self.assertRegex(done.stderr, r"building done: 300 vectors in \d+\.\d s")

    def test_bar_on_a_terminal(self):
        """On a terminal the bar is drawn and wiped, and never reaches stdout."""
        copies = 100 if SANITIZER else 1000
        self.vectors("b.fbin", BASE * copies)
        try:
            main, side = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal can be made here: {error}")
        process = subprocess.Popen([COMMAND, "build", "b.fbin", "-o", "x.sl", "--metric", "l2", "--json"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=side, text=True)
        os.close(side)
        seen = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        out = process.communicate(timeout=60)[0]
        os.close(main)
        self.assertEqual((process.returncode, out.count("\n")), (0, 1))
        self.assertRegex(seen.decode(), rf"\rbuilding \[#*\.*\] +\d+%  \d+ of {N * copies} vectors  \d+/s")
        self.assertTrue(seen.endswith(b"\r\x1b[K"))
