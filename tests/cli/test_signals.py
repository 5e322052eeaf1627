"""Every command ends by SIGINT itself, so that a shell ends its loop too."""

import os
import shlex
import signal
import subprocess
import unittest

from every import EveryCommand
from harness import PRELOAD, CommandTest


def setUpModule():
    """A background job ignores SIGINT, and so would the commands."""
    unittest.addModuleCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
    signal.signal(signal.SIGINT, signal.default_int_handler)


@unittest.skipUnless(PRELOAD, "nothing to load before the C library")
class Interrupted(EveryCommand):
    def test_every_command_ends_by_the_signal(self):
        """The signal comes when the command opens its first file."""
        for command in self.commands() + self.changes() + self.others() + [("cpu",)]:
            with self.subTest(command=command):
                first = "" if command[0] == "cpu" else command[2 if command[0] == "import" else 1]
                done = self.start(*command, env={**os.environ, "LD_PRELOAD": PRELOAD, "INTERRUPT_AT": first})
                self.assertEqual(done.returncode, -signal.SIGINT, done.stderr)
                self.assertLessEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertEqual([name for name in os.listdir(self.folder) if ".tmp" in name], [])

    def test_other_signals_end_with_a_status(self):
        build = self.long_build("b.i8bin")
        for number, status in ((signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 1), (signal.SIGHUP, 1)):
            process = subprocess.Popen(build, cwd=self.folder, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            process.stderr.readline()
            process.send_signal(number)
            said = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, status, said)
            self.assertEqual(said.splitlines()[-1], "shortlist build: interrupted; nothing was written")


    def test_ignored_signals_stay_ignored(self):
        """A background job of a script ignores SIGINT, and nohup SIGHUP. Another signal ends the command."""
        build = self.long_build("b.i8bin")
        for ignored, ends, status in ((signal.SIGINT, signal.SIGTERM, 1), (signal.SIGHUP, signal.SIGINT, -signal.SIGINT),
                                      (signal.SIGTERM, signal.SIGINT, -signal.SIGINT)):
            with self.subTest(ignored=ignored):
                process = subprocess.Popen(build, cwd=self.folder, stderr=subprocess.PIPE, text=True,
                                           preexec_fn=lambda number=ignored: signal.signal(number, signal.SIG_IGN))
                self.addCleanup(process.kill)
                process.stderr.readline()
                process.send_signal(ignored)
                process.send_signal(ignored)
                self.assertNotIn("interrupted", process.stderr.readline())
                process.send_signal(ends)
                said = process.communicate(timeout=60)[1]
                self.assertEqual(process.returncode, status, said)
                self.assertIn("interrupted; nothing was written", said)


class Loops(CommandTest):
    def test_a_loop_of_the_shell_ends(self):
        """The shell alone is not told: it ends its loop because the command died of the signal."""
        script = f"for i in 1 2 3; do echo $i; {shlex.join(self.long_build('b.i8bin'))}; done; echo went on"
        shell = subprocess.Popen(["bash", "-c", script], cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(shell.kill)
        shell.stderr.readline()
        os.killpg(shell.pid, signal.SIGINT)
        out = shell.communicate(timeout=60)[0]
        self.assertEqual((shell.returncode, out), (-signal.SIGINT, "1\n"))
