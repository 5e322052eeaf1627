"""Training: a step of Criteo's shape in f32 and bf16, ours and PyTorch's by turns, a process each on one thread."""

import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "rank"))

from beside_torch import MODES, Training  # noqa: E402

BATCH = 512
PRECISIONS = ("f32", "bf16")


def available(failed):
    try:
        import torch
    except (ImportError, OSError, ValueError) as error:
        failed["torch"] = str(error).splitlines()[0]
        return False
    return bool(torch.__version__)


def measure(chosen, failed):
    """Milliseconds of a step, by rounds. PyTorch's way is eager or compiled, whichever a trial finds faster."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    training = Training(chosen, "criteo", chosen.data / "clicks-50000-1" / "train.tsv")
    contenders = {f"shortlist/{p}": lambda p=p: training.ours(BATCH, 1, p) for p in PRECISIONS}
    if available(failed):
        modes = MODES if chosen.compiled else MODES[:1]
        for p in PRECISIONS:
            trials = {mode: training.theirs(BATCH, 1, mode, p)["rows_per_s"] for mode in modes} if len(modes) > 1 else {}
            best = max(trials, key=trials.get, default=modes[0])
            contenders[f"torch/{p}/{best}"] = lambda p=p, best=best: training.theirs(BATCH, 1, best, p)["rows_per_s"]
    times = {name: [] for name in contenders}
    for number in range(chosen.training_rounds):
        for name in list(contenders)[number % 2 * -1:] + list(contenders)[:number % 2 * -1] if number % 2 else contenders:
            times[name].append(BATCH / contenders[name]() * 1e3)
    return [{"event": "training", "batch": BATCH, "name": name, "ms": ms} for name, ms in times.items()]
