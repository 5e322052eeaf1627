"""Training: a step of Criteo's shape by precision, ours and PyTorch's by turns, a process each on one thread."""

import json
import os
import pathlib
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "rank"))

from beside_torch import MODES, Training, run  # noqa: E402

BATCH, STEPS = 512, 20
PRECISIONS = ("f32", "bf16")


def there(failed):
    try:
        import torch
        return bool(torch.__version__)
    except (ImportError, OSError, ValueError) as error:
        failed["torch"] = str(error).splitlines()[0]
        return False


class Sides:
    """Both sides' milliseconds of a step, by the processor's time."""

    def __init__(self, chosen, failed):
        self.chosen, self.training = chosen, Training(chosen, "criteo", chosen.data / "clicks-50000-1" / "train.tsv")
        self.spec = self.training.work / "spec-steps.json"
        how = {"epochs": 1, "batch": BATCH, "validation": 0}
        self.spec.write_text(json.dumps({**self.training.spec, "train": how}))
        self.turns = [self.ours]
        for precision in PRECISIONS if there(failed) else ():
            best = self.best_mode(precision)
            self.turns.append(lambda precision=precision, best=best: self.theirs(precision, best))

    def ours(self):
        """The precisions take turns step by step in one process, as in ./dev bench mixed."""
        lines = run([self.chosen.build / "bench" / "mixed" / "bench_mixed", self.spec, self.training.csv, STEPS,
                     *PRECISIONS], {"OMP_NUM_THREADS": "1"})
        steps = [line for line in lines if line["event"] == "step"]
        return {f"shortlist/{precision}": statistics.median(step["processor_ms"] for step in steps
                                                            if step["precision"] == precision)
                for precision in PRECISIONS}

    def theirs(self, precision, mode):
        rate = self.training.theirs(BATCH, 1, mode, precision)["rows_per_processor_s"]
        return {f"torch/{precision}/{mode}": BATCH / rate * 1e3}

    def best_mode(self, precision):
        """Eager, or with --compiled whichever a trial finds faster."""
        if not self.chosen.compiled:
            return MODES[0]
        return min(MODES, key=lambda mode: next(iter(self.theirs(precision, mode).values())))


def measure(chosen, failed):
    allowed, times = os.sched_getaffinity(0), {}
    os.sched_setaffinity(0, {max(allowed)})
    try:
        sides = Sides(chosen, failed)
        for number in range(chosen.training_rounds):
            for turn in sides.turns[::-1] if number % 2 else sides.turns:
                for name, ms in turn().items():
                    times.setdefault(name, []).append(ms)
    finally:
        os.sched_setaffinity(0, allowed)
    return [{"event": "training", "batch": BATCH, "name": name, "ms": ms} for name, ms in sorted(times.items())]
