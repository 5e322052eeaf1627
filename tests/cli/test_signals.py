"""Every command ends by SIGINT itself, so that a shell ends its loop too."""

import os
import signal
import subprocess
import unittest

from every import EveryCommand
from harness import COMMAND, PRELOAD, CommandTest


@unittest.skipUnless(PRELOAD, "nothing to load before the C library")
class Interrupted(EveryCommand):
    def test_every_command_ends_by_the_signal(self):
        """The signal comes when the command opens its first file."""
        for command in self.commands() + self.changes() + self.others() + [("cpu",)]:
            with self.subTest(command=command):
                first = "" if command[0] == "cpu" else command[1]
                done = self.start(*command, env={**os.environ, "LD_PRELOAD": PRELOAD, "INTERRUPT_AT": first})
                self.assertEqual(done.returncode, -signal.SIGINT, done.stderr)
                self.assertLessEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertEqual([name for name in os.listdir(self.folder) if ".tmp" in name], [])

    def test_other_signals_end_with_a_status(self):
        self.vectors("b.fbin", [[float(i % 7), float(i % 11)] for i in range(20000)])
        for number, status in ((signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 1), (signal.SIGHUP, 1)):
            process = subprocess.Popen([COMMAND, "build", "b.fbin", "-o", "b.sl", "--metric", "l2", "--ef-build", "900",
                                        "--builder", "insert", "--progress"], cwd=self.folder, stderr=subprocess.PIPE,
                                       text=True)
            self.addCleanup(process.kill)
            process.stderr.readline()
            process.send_signal(number)
            said = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, status, said)
            self.assertEqual(said.splitlines()[-1], "shortlist build: interrupted; nothing was written")


class Loops(CommandTest):
    def test_a_loop_of_the_shell_ends(self):
        """The shell alone is not told: it ends its loop because the command died of the signal."""
        self.vectors("b.fbin", [[float(i % 7), float(i % 11)] for i in range(20000)])
        script = f'for i in 1 2 3; do echo $i; "{COMMAND}" build b.fbin -o b.sl --metric l2 --builder insert ' \
                 '--ef-build 900 --progress; done; echo went on'
        shell = subprocess.Popen(["bash", "-c", script], cwd=self.folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(shell.kill)
        shell.stderr.readline()
        os.killpg(shell.pid, signal.SIGINT)
        out = shell.communicate(timeout=60)[0]
        self.assertEqual((shell.returncode, out), (-signal.SIGINT, "1\n"))
