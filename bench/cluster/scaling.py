"""Scaling of training: measured computing, simulated sums, and the pipeline that joins both.

Measured: seconds of a step of the Criteo-shaped net at 4,096 rows on one thread, layer by layer (bench_cluster).
Simulated: MPI_Allreduce as Open MPI chooses it, by SimGrid (bench/cluster/simulate.py).
Derived: the time of a step on many ranks (pipeline.py)."""

import json
import pathlib
import statistics
import subprocess
import sys

import simulate
from pipeline import FLOAT, Curve, Step
from setting import ROOT, fact, output_of

HERE = pathlib.Path(__file__).resolve().parent
ROWS, STEPS = 4096, 15
RANKS = (4, 16, 64, 256, 1024)
TARGET, TARGET_RANKS = 0.9, 256
SIZES = (1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22, simulate.NET)
FEW_SIZES = (1 << 12, 1 << 20, 1 << 22)  # where a simulation takes minutes
GBIT, US = simulate.GBIT, simulate.US
# Name, network, bits a second of a link, its latency.
LINKS = (("100 Gb", "switch", 100, 1), ("25 Gb", "switch", 25, 1), ("10 Gb", "switch", 10, 1))
CHANGES = (("100 Gb, half the latency", "switch", 100, 0.5), ("100 Gb, twice the latency", "switch", 100, 2),
           ("100 Gb, half the bandwidth", "switch", 50, 1), ("100 Gb, twice the bandwidth", "switch", 200, 1),
           ("100 Gb, tree with a quarter of the links upward", "tapered", 100, 1))
BUCKETS = (1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 30)
# Kinds of computing: name, precision that was measured, times as fast as that.
KINDS = (("f32, one thread", "f32", 1), ("bf16, one thread", "bf16", 1), ("f32, 16 times as fast", "f32", 16),
         ("bf16, 16 times as fast", "bf16", 16))


# ---------------------------------------------------------------------------------------------------------------------
# Measured and simulated
# ---------------------------------------------------------------------------------------------------------------------

def computing(chosen, work):
    """The shape, and steps in each precision."""
    spec = work / "criteo.json"
    shape = json.loads((HERE.parent / "rank" / "criteo.json").read_text(encoding="utf-8"))
    spec.write_text(json.dumps({**shape, "train": {"epochs": 1, "batch": ROWS, "validation": 0}}), encoding="utf-8")
    events = []
    for precision in ("f32", "bf16"):
        printed = output_of("cluster", chosen.build / "bench" / "cluster" / "bench_cluster", spec,
                            chosen.data / "clicks-50000-1" / "train.tsv", 3 if chosen.quick else STEPS, precision)
        events += [json.loads(line) for line in printed.splitlines()]
    return events


def sums(folder, name, network, gigabits, latency, ranks):
    """Times of a sum on simulated ranks. The first case warms up: it has the skew of the start."""
    where = simulate.setting(network, ranks, gigabits * GBIT, latency * US)
    sizes = FEW_SIZES if ranks > 256 else SIZES
    cases = [(simulate.Sum("native"), size) for size in (SIZES[0], *sizes)]
    seconds = [float(line[0]) for line in simulate.simulate(folder, {**where, "selector": "ompi"}, cases)][1:]
    event = {"event": "sums", "link": name, **where, "bytes": list(sizes), "seconds": seconds}
    print(json.dumps(event), file=sys.stderr, flush=True)
    return event


def measure(chosen, work):
    folder = ROOT / "build" / "smpi"
    subprocess.run([HERE / "smpi.sh", folder], check=True)
    events = computing(chosen, work)
    for link in LINKS[:1] if chosen.quick else LINKS + CHANGES:
        for ranks in RANKS:
            if ranks <= 256 or (link in LINKS and not chosen.quick):
                events.append(sums(folder, *link, ranks))
    return events


# ---------------------------------------------------------------------------------------------------------------------
# Derived
# ---------------------------------------------------------------------------------------------------------------------

def medians(events, precision):
    """One step of the middle times."""
    steps = [event for event in events if event["event"] == "step" and event["precision"] == precision]
    return {"layers_s": [statistics.median(at) for at in zip(*(step["layers_s"] for step in steps))],
            "touched": [round(statistics.median(rows)) for rows in zip(*(step["touched"] for step in steps))],
            **{name: statistics.median(step[name] for step in steps)
               for name in ("forward_s", "collected_s", "end_s", "table_s", "sum_s")}}


def derived(events):
    """A row for each kind of computing, link and number of ranks."""
    shape = next(event for event in events if event["event"] == "shape")
    rows = []
    for kind, precision, faster in KINDS:
        step = Step(shape, medians(events, precision), faster)
        for event in events:
            if event["event"] != "sums":
                continue
            curve, ranks = Curve(event["bytes"], event["seconds"]), event["ranks"]
            common = (ranks, curve, event["bandwidth"])
            by_bucket = {bucket: step.efficiency(*common, bucket=bucket) for bucket in BUCKETS}
            rows.append({"computing": kind, "link": event["link"], "ranks": ranks,
                         "overlap": step.efficiency(*common), "no_overlap": step.efficiency(*common, overlap=False),
                         "tables_apart": step.efficiency(*common, apart=True),
                         "best_bucket": FLOAT * min(max(by_bucket, key=by_bucket.get), sum(shape["layers"])),
                         "best_bucket_overlap": max(by_bucket.values()),
                         "sparse_ms": 1000 * step.sparse_seconds(*common)})
    return rows


def summarise(events):
    rows = derived(events)
    computed = {precision: medians(events, precision) for precision in ("f32", "bf16")}
    facts = [fact(f"{row['ranks']} ranks, {row['link']}, {row['computing']}: scaling with overlap", TARGET,
                  row["overlap"], True)
             for row in rows if row["ranks"] == TARGET_RANKS and row["computing"] == KINDS[0][0]]
    simulated = [{name: event[name] for name in ("link", "network", "ranks", "bandwidth", "latency", "bytes", "seconds")}
                 for event in events if event["event"] == "sums"]
    return {"measured": computed, "simulated": simulated, "derived": rows, "targets": facts}


def table(summary):
    lines = [""]
    for precision, times in summary["measured"].items():
        lines.append(f"{precision}: a step of {ROWS} rows {1000 * times['end_s']:.0f} ms, forward "
                     f"{1000 * times['forward_s']:.0f}, layers complete at "
                     f"{', '.join(f'{1000 * at:.0f}' for at in times['layers_s'])}")
    for row in summary["derived"]:
        if row["ranks"] != TARGET_RANKS and row["link"] != LINKS[0][0]:
            continue
        lines.append(f"{row['computing']:24} {row['link']:48} {row['ranks']:5} ranks   overlap {row['overlap']:.3f}   "
                     f"none {row['no_overlap']:.3f}   a sum a table {row['tables_apart']:.3f}   best bucket "
                     f"{row['best_bucket'] >> 10} KB {row['best_bucket_overlap']:.3f}   sparse {row['sparse_ms']:.2f} ms")
    return "\n".join(lines)


def draw(summary, about, path):
    """Efficiency by ranks: a panel for each kind of computing, a colour for each link, dashed without overlap."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    import keep

    kinds = list(dict.fromkeys(row["computing"] for row in summary["derived"]))
    figure, axes = pyplot.subplots(1, len(kinds), figsize=(3 * len(kinds), 3), sharey=True, squeeze=False)
    for axis, kind in zip(axes[0], kinds):
        for (link, *_), colour in zip(LINKS, ("tab:blue", "tab:orange", "tab:green")):
            rows = [row for row in summary["derived"] if (row["computing"], row["link"]) == (kind, link)]
            for name, style in (("overlap", "-"), ("no_overlap", "--")):
                axis.plot([row["ranks"] for row in rows], [row[name] for row in rows], style, color=colour, marker=".",
                          label=link if name == "overlap" else None)
        axis.axhline(TARGET, color="black", linewidth=0.6)
        axis.set_xscale("log", base=2)
        axis.set_title(kind, fontsize=9)
        axis.set_xlabel("ranks", fontsize=8)
        axis.tick_params(labelsize=8)
    axes[0][0].set_ylabel("scaling; dashed: no overlap", fontsize=8)
    axes[0][0].legend(fontsize=8)
    figure.suptitle(f"Computing measured on {about['machine']['cpu']}, sums simulated", fontsize=9)
    figure.tight_layout()
    keep.picture(figure, path)
