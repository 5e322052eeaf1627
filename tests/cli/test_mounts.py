"""Outputs that cannot be renamed over: told before the work, and the finished file is never lost."""

import ctypes
import errno
import json
import os
import re
import subprocess
import unittest

from every import EveryCommand
from harness import PRELOAD, SANITIZER

CLONE_NEWNS, CLONE_NEWUSER, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x10000000, 0x1000, 0x4000, 0x40000


def call(function, *arguments):
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def own_mounts(libc, as_root_of_its_own):
    """Leaves the system's mounts. A user who may not do so becomes root of a namespace of its own, with its own ids."""
    user, group = os.getuid(), os.getgid()
    call(libc.unshare, CLONE_NEWNS | (CLONE_NEWUSER if as_root_of_its_own else 0))
    if as_root_of_its_own:
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def mount_over(*paths, as_root_of_its_own=None):
    """In the child: mounts of its own, with each of these files over itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    own_mounts(libc, AS_ROOT_OF_ITS_OWN if as_root_of_its_own is None else as_root_of_its_own)
    call(libc.mount, b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    for path in paths:
        call(libc.mount, path.encode(), path.encode(), None, ctypes.c_ulong(MS_BIND), None)


def can_mount(as_root_of_its_own):
    try:
        return subprocess.run(["true"], preexec_fn=lambda: mount_over(
            "/etc/passwd", as_root_of_its_own=as_root_of_its_own)).returncode == 0
    except subprocess.SubprocessError:
        return False


AS_ROOT_OF_ITS_OWN = not can_mount(False)
MOUNTS = can_mount(AS_ROOT_OF_ITS_OWN)


class Mounted(EveryCommand):
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


@unittest.skipUnless(PRELOAD and not SANITIZER, "nothing to load before the C library")
class Refused(EveryCommand):
    """Renaming fails all the same, at the end."""

    def refuse(self, command, ending):
        environment = {**os.environ, "LD_PRELOAD": PRELOAD, "REFUSE_RENAME": ending}
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
        environment = {**os.environ, "LD_PRELOAD": PRELOAD, "REFUSE_RENAME": "all"}
        for command in self.commands() + self.changes():
            with self.subTest(command=command):
                self.run_bad(1, *command, says=["cannot rename a file in"], env=environment)

@unittest.skipUnless(PRELOAD and not SANITIZER, "nothing to load before the C library")
class Unlocked(EveryCommand):
    """The file system has no locks."""

    def test_what_works_and_what_says_why_not(self):
        self.run_ok("build", "base.fbin", "-o", "own.sl", "--metric", "l2", "--room", "1000")
        for error in (errno.ENOLCK, errno.EBADF, errno.ENOSYS, errno.EOPNOTSUPP):
            environment = {**os.environ, "LD_PRELOAD": PRELOAD, "REFUSE_LOCKS": str(error)}
            for place in ("map", "dram"):
                self.run_ok("search", "own.sl", "q.fbin", "-k", "3", "--place", place, env=environment)
            self.run_ok("build", "base.fbin", "-o", "new.sl", "--metric", "l2", env=environment)
            for command in self.changes():
                self.run_bad(1, *command, says=["own.sl", "its file system has no locks", "works"], env=environment)
