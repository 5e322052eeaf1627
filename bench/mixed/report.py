"""From steps and seeds to ratios, the Kolmogorov-Smirnov test and targets."""

import statistics
from fractions import Fraction

from setting import fact, span, spread, verdicts

STEP_TARGET = 0.6  # of f32's time, for bf16 by the machine's instructions
LEVEL = 0.05  # of the test


def ks_distance(one, other):
    """Returns the largest distance between two samples' distribution functions."""
    return max(abs(Fraction(sum(x <= at for x in one), len(one)) - Fraction(sum(x <= at for x in other), len(other)))
               for at in [*one, *other])


def ks_level(one, other):
    """Returns the exact chance that samples of one distribution are as far apart as these, or further.

    The chance is the share of paths from (0, 0) to (m, n) that leave the band of the distance. Samples with ties are
    judged as if there were none, which errs to the side of no difference.
    """
    m, n, distance = len(one), len(other), ks_distance(one, other)
    inside = {0: 1}  # paths to (i, j) that stay below the distance, by j
    for i in range(m + 1):
        row = {}
        for j in range(n + 1):
            if abs(Fraction(i, m) - Fraction(j, n)) >= distance:
                continue
            row[j] = 1 if i == j == 0 else row.get(j - 1, 0) + (inside.get(j, 0) if i else 0)
        inside = row
    paths = Fraction(1)
    for i in range(1, m + 1):
        paths = paths * (n + i) / i
    return float(1 - inside.get(n, 0) / paths)


def steps(events):
    """A row for each precision but f32: its time as a share of f32's in the same round."""
    rounds, found = {}, []
    for event in events:
        if event["event"] == "step":
            rounds.setdefault(event["round"], {})[event["precision"]] = event
    for precision in sorted({name for turn in rounds.values() for name in turn} - {"f32"}):
        turns = [turn for turn in rounds.values() if precision in turn and "f32" in turn]
        row = {"precision": precision, "emulated": turns[0][precision]["emulated"], "rounds": len(turns)}
        for clock in ("wall_ms", "processor_ms"):
            row[clock] = statistics.median(turn[precision][clock] for turn in turns)
            row["f32_" + clock] = statistics.median(turn["f32"][clock] for turn in turns)
            row["ratio_" + clock[:-3]] = quartiles([turn[precision][clock] / turn["f32"][clock] for turn in turns])
        found.append(row)
    return found


def quartiles(values):
    ordered = sorted(values)
    return {"median": statistics.median(ordered), "min": ordered[len(ordered) // 4],
            "max": ordered[len(ordered) * 3 // 4]}


def accuracy(events):
    """A row for each precision: AUC over the seeds, and whether a test tells it from f32's."""
    found = {}
    for event in events:
        if event["event"] == "seed":
            found.setdefault(event["precision"], []).append(event)
    exact = [event["auc"] for event in found.get("f32", [])]
    return [{"precision": name, "seeds": len(group), "auc": spread([e["auc"] for e in group]),
             "mean": statistics.mean(e["auc"] for e in group), "skipped_steps": max(e["skipped_steps"] for e in group),
             "distance": float(ks_distance(exact, [e["auc"] for e in group])) if exact else None,
             "level": ks_level(exact, [e["auc"] for e in group]) if exact else None}
            for name, group in found.items()]


def summarise(events):
    summary = {"steps": steps(events), "accuracy": accuracy(events)}
    facts = [fact("bf16, Criteo's shape, time a step as a share of f32's", STEP_TARGET, row["ratio_processor"]["median"],
                  False) for row in summary["steps"] if row["precision"] == "bf16" and not row["emulated"]]
    facts += [fact(f"{row['precision']}, Adult, chance of AUCs so far apart", LEVEL, row["level"], True)
              for row in summary["accuracy"] if row["precision"] != "f32"]
    return {**summary, "targets": facts}


def table(about, summary):
    lines = ["", about["machine"]["cpu"], ""]
    for row in summary["steps"]:
        lines.append(f"{row['precision']:5}{' emulated' if row['emulated'] else '':9} {row['processor_ms']:7.2f} ms "
                     f"against {row['f32_processor_ms']:7.2f} ms   ratio {span(row['ratio_processor'], 3)}, by the wall "
                     f"clock {span(row['ratio_wall'], 3)}   (median, quartiles of {row['rounds']} rounds)")
    for row in summary["accuracy"]:
        lines.append(f"{row['precision']:5} AUC {row['mean']:.5f} mean, {span(row['auc'], 5)} over {row['seeds']} seeds   "
                     f"distance from f32's {row['distance']:.2f}, p = {row['level']:.3f}   {row['skipped_steps']} steps "
                     "skipped at most")
    return "\n".join([*lines, "", *verdicts(summary["targets"])]) + "\n"
