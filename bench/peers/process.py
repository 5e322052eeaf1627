"""A child process that answers orders, a line of JSON each; and what is told of one that ends."""

import json
import pathlib
import signal
import subprocess

PAUSE_S = 600  # for which a worker may be silent before it is given up


class Lost(Exception):
    """The process ended or said nothing any more; why, as far as it told."""


def last_words(path, code):
    """Tells the last lines of an ended process, and its exit status."""
    lines = [line.strip() for line in pathlib.Path(path).read_text(errors="replace").splitlines() if line.strip()]
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return (lines[-1][:300] + f" ({how})") if lines else how


class Worker:
    """Started by its first order; `hello` is what it said then."""

    def __init__(self, command, environment, log):
        self.log = log
        with open(log, "w") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                            text=True, env=environment)
        self.hello = self.answer()

    def answer(self):
        # A worker that hangs is ended by the alarm of its own process group's patience, not by a thread here.
        timer = signal.signal(signal.SIGALRM, self.give_up)
        signal.alarm(PAUSE_S)
        try:
            line = self.process.stdout.readline()
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, timer)
        if not line:
            raise Lost(f"its process ended: {last_words(self.log, self.process.wait())}")
        return json.loads(line)

    def give_up(self, *_):
        self.process.kill()

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # what it said last is read by answer()
        return self.answer()

    def stop(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()
