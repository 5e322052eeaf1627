"""A set divided over 4 ranks: one whole index, neighbourhoods, slices, at the same recall.

Counted, not timed: distances computed per query, ranks asked, copies. Each way takes the smallest ef that reaches the
recall on the queries, with and without a stop."""

import json
import sys

from jobs import on_ranks
from parts import call
from setting import fact

SETS = ("glove100", "gloss384")
RANKS, K, RECALL = 4, 10, 0.95
# The widest stop that still ends walks early: glove100's distances lie closer together.
STOPS = {"glove100": 0.1, "gloss384": 0.06}
COVERS = (0.98, 0.985, 0.99, 0.993)
COPIES = (0.3, 1)  # --replicate: the default, and a second part for nearly every vector
EVALUATIONS, ASKED = 1.3, 1.6  # targets: of the whole index's evaluations, and ranks per query
FIGURES = ("ef", "recall", "evaluations", "asked", "routing", "messages", "bytes")


def made(chosen, work, name):
    """The whole index and both splits of a set; made once for each program."""
    base = chosen.data / name / "base.fbin"
    program = chosen.build / "shortlist-mpi"
    whole = work / f"{name}.sl"
    call([chosen.build / "shortlist", "build", base, "-o", whole, "--metric", "cosine", "--threads", "1"])
    folders = {"whole index": whole}
    for way, options in (("slices", ["--split", "slices"]), *((copies, ["--replicate", copies]) for copies in COPIES)):
        folders[way] = work / f"{name}-{way}"
        on_ranks(RANKS, [program, "split", base, "-o", folders[way], "--metric", "cosine", *options, "--json"])
    return folders


def evaluated(chosen, name, path, stop, cover=None):
    """The smallest ef that reaches the recall: its figures."""
    words = [chosen.build / "shortlist-mpi", "eval", path, chosen.data / name / "queries.fbin",
             chosen.data / name / "truth.ibin", "-k", K, "--recall", RECALL, "--repeat", "1", "--stop", stop, "--json"]
    found = on_ranks(RANKS, words + (["--cover", cover] if cover else []))[0]
    at = found["at"][0]
    return {"event": "split", "set": name, "stop": stop, "cover": cover, "replication": found.get("replication", 0),
            "reached": at["reached"], **{figure: at[figure] for figure in FIGURES if figure in at}}


def measure(chosen, work):
    events = []
    for name in SETS[-1:] if chosen.quick else SETS:
        folders = made(chosen, work, name)
        for stop in (0, STOPS[name]):
            tries = [("whole index", None), ("slices", None)]
            tries += [(copies, cover) for copies in COPIES for cover in (COVERS[:1] if chosen.quick else COVERS)]
            for way, cover in tries:
                event = {**evaluated(chosen, name, folders[way], stop, cover),
                         "way": "neighbourhoods" if way in COPIES else way, "copies": way if way in COPIES else 0}
                events.append(event)
                print(json.dumps(event), file=sys.stderr, flush=True)
    return events


def rows_of(events):
    """Each event with its evaluations as a multiple of the whole index's of the same set and stop."""
    whole = {(event["set"], event["stop"]): event["evaluations"] for event in events if event["way"] == "whole index"}
    return [{**event, "ratio": event["evaluations"] / whole[event["set"], event["stop"]],
             "ratio_plain": event["evaluations"] / whole[event["set"], 0], "asked": event.get("asked", 1)}
            for event in events if event["reached"]]


def best_of(rows, name, stop):
    """The cheapest neighbourhoods that ask few enough ranks; else the one that asks the fewest."""
    near = [row for row in rows if (row["set"], row["stop"], row["way"]) == (name, stop, "neighbourhoods")]
    few = [row for row in near if row["asked"] <= ASKED]
    return min(few, key=lambda row: row["ratio"]) if few else min(near, key=lambda row: row["asked"], default=None)


def summarise(events):
    rows = rows_of(events)
    targets = []
    for name in SETS:
        for stop in (0, STOPS[name]):
            best = best_of(rows, name, stop)
            if not best:
                continue
            which = f"{name}, stop {stop}" if stop else f"{name}, ef alone"
            targets += [fact(f"{which}: evaluations of one whole index", EVALUATIONS, best["ratio"], False),
                        fact(f"{which}: ranks asked", ASKED, best["asked"], False)]
    return {"k": K, "ranks": RANKS, "recall": RECALL, "rows": rows, "targets": targets}


def table(summary):
    lines = ["| Set | Stop | Way | Cover | ef | Recall | Evaluations | of whole | Ranks asked | Copies | Bytes |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in summary["rows"]:
        lines.append(f"| {row['set']} | {row['stop']} | {row['way']} | {row['cover'] or ''} | {row['ef']} "
                     f"| {row['recall']:.4f} | {row['evaluations']:.0f} | {row['ratio']:.2f} | {row['asked']:.2f} "
                     f"| {100 * row['replication']:.0f} % | {row.get('bytes', 0):.0f} |")
    return "\n".join(lines)


def draw(summary, about, path):
    import keep
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [name for name in SETS if any(row["set"] == name for row in summary["rows"])]
    figure, axes = pyplot.subplots(1, len(names), figsize=(5 * len(names), 3.6), squeeze=False)
    for axis, name in zip(axes[0], names):
        for stop, marker in ((0, "o"), (STOPS[name], "s")):
            rows = [row for row in summary["rows"] if (row["set"], row["stop"]) == (name, stop)]
            label = f"stop {stop}" if stop else "ef alone"
            for copies in COPIES:
                near = [row for row in rows if row["way"] == "neighbourhoods" and row["copies"] == copies]
                axis.plot([row["asked"] for row in near], [row["ratio"] for row in near], f"{marker}-",
                          label=f"neighbourhoods, {100 * copies:.0f} % copies, {label}")
            axis.plot([row["asked"] for row in rows if row["way"] == "slices"],
                      [row["ratio"] for row in rows if row["way"] == "slices"], f"{marker}", label=f"slices, {label}")
        axis.axhline(EVALUATIONS, linewidth=0.6, color="grey")
        axis.axvline(ASKED, linewidth=0.6, color="grey")
        axis.set(title=name, xlabel="ranks asked per query", ylabel="evaluations, of one whole index", ylim=(0.9, 4.2))
        axis.legend(fontsize=7)
    figure.suptitle(f"recall@{summary['k']} {summary['recall']} on {summary['ranks']} ranks", fontsize=9)
    figure.tight_layout()
    keep.picture(figure, path)


if __name__ == "__main__":
    sys.exit("bench cluster: ./dev bench cluster --only split")
