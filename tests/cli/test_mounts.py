"""Outputs that cannot be renamed over: told before the work, and the finished file is never lost."""

import ctypes
import json
import os
import re
import subprocess
import unittest

from harness import COMMAND, SANITIZER
from ranking import DEEP, IDS, VECTORS, RankingTest

REFUSING = os.environ.get("REFUSING_RENAMES", "")
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000


def call(function, *arguments):
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount_over(*paths):
    """In the child: mounts of its own, with each of these files over itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    call(libc.unshare, CLONE_NEWNS)
    call(libc.mount, b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    for path in paths:
        call(libc.mount, path.encode(), path.encode(), None, ctypes.c_ulong(MS_BIND), None)


def can_mount():
    done = subprocess.run(["true"], preexec_fn=lambda: mount_over("/etc/passwd"))
    return done.returncode == 0


try:
    MOUNTS = can_mount()
except subprocess.SubprocessError:
    MOUNTS = False


class MountTest(RankingTest):
    """The writing commands, each with the output that it is given last."""

    def setUp(self):
        super().setUp()
        self.with_model()
        self.with_index()
        self.vectors("q.fbin", VECTORS[:60])
        self.vectors("t.ibin", [[i] for i in IDS[:60]])
        self.run_ok("items", "items.csv", "-o", "own.sli")
        self.run_ok("build", "base.fbin", "-o", "own.sl", "--metric", "l2")
        self.vectors("gone.ibin", [[3]])

    @staticmethod
    def commands():
        made = [
            ("build", "base.fbin", "--metric", "l2", "-o", "out.sl"),
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


class Mounted(MountTest):
    @unittest.skipUnless(MOUNTS, "this process may not mount")
    def test_every_output_is_tried_before_the_work(self):
        for command in self.commands() + self.changes():
            output = self.output(command)
            if output.startswith("out."):
                self.write(output, b"")
            with self.subTest(command=command):
                said = self.run_bad(1, *command, preexec_fn=lambda: mount_over(self.path(output)),
                                    says=[output, "mounted there", "mount its folder", "the mount: "])
                self.assertNotIn("finished", said)

    @unittest.skipUnless(MOUNTS, "this process may not mount")
    def test_a_mounted_index_with_room_is_changed_in_place(self):
        self.run_ok("build", "base.fbin", "-o", "own.sl", "--metric", "l2", "--room", "1000")
        for command in (("add", "own.sl", "base.fbin"), ("delete", "own.sl", "--ids", "gone.ibin")):
            self.run_ok(*command, preexec_fn=lambda: mount_over(self.path("own.sl")))
        self.assertEqual(json.loads(self.run_ok("info", "own.sl", "--json"))["n"], 479)


@unittest.skipUnless(REFUSING and not SANITIZER, "no library that refuses to rename")
class Refused(MountTest):
    """Renaming fails all the same, at the end."""

    def refuse(self, command, ending):
        environment = {**os.environ, "LD_PRELOAD": REFUSING, "REFUSE_RENAME": ending}
        done = self.start(*command, env=environment)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        found = re.search(r"the finished file is ([^:]*): move it", done.stderr)
        self.assertIsNotNone(found, done.stderr)
        return os.path.basename(found[1])

    def test_finished_files_stay_and_are_whole(self):
        for command in self.commands() + self.changes():
            if "--threads" not in command and command[0] in ("train", "prune", "quantize", "build", "merge"):
                command = (*command, "--threads", "1")
            output = self.output(command)
            names = set(os.listdir(self.folder))
            if output.startswith("out.") and output in names:
                os.unlink(self.path(output))
            with self.subTest(command=command):
                before = self.snapshot()
                kept = self.refuse(command, "/" + output if output in before else output)
                after = self.snapshot()
                data = after.pop(kept)
                after.pop("ids.ibin", None)
                self.assertEqual(after, before)
                os.unlink(self.path(kept))
                self.run_ok(*command)
                if command[0] not in ("eval", "quantize"):  # which measure times
                    self.assertEqual(len(data), len(self.read(output)))
                for name in ("m2.slr", "ids.ibin"):
                    if name in os.listdir(self.folder):
                        os.unlink(self.path(name))

    def test_where_nothing_can_be_renamed_no_work_is_done(self):
        environment = {**os.environ, "LD_PRELOAD": REFUSING, "REFUSE_RENAME": "all"}
        for command in self.commands() + self.changes():
            with self.subTest(command=command):
                self.run_bad(1, *command, says=["cannot rename a file in"], env=environment)
