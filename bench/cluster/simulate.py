"""All-reduces on simulated ranks: times by algorithm, size, shape and platform, beside those that MPI libraries choose.

bench/cluster/smpi.sh compiles the files of cluster/allreduce by SimGrid's smpicc. smpirun runs them on modelled
machines. The record goes to bench/results/cluster-simulated.json, and a picture beside it if matplotlib is there."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import keep  # noqa: E402  the path is set first

RESULTS = ROOT / "bench" / "results"
CHUNK = 1 << 20  # numbers of a chunk of torus-put above SMALL bytes, so that the windows of all ranks fit in memory
SMALL = 10_000_000
MOST_WINDOWS = 256  # ranks
NET = 9_400_000  # bytes: the gradient of the Criteo-shaped net
SIZES = tuple(1024 * 4**i for i in range(9))
MIDDLE = (1 << 20, NET, 64 << 20)
GB, GBIT, US = 1e9, 1e9 / 8, 1e-6
HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<zone id="world" routing="Full">
"""


# ---------------------------------------------------------------------------------------------------------------------
# Platforms
# ---------------------------------------------------------------------------------------------------------------------


def side(ranks):
    """The divisor of a number of ranks nearest above its root: nodes of a leaf switch, columns of a torus."""
    return next(columns for columns in range(1, ranks + 1) if columns**2 >= ranks and ranks % columns == 0)


def topology(kind, ranks):
    if kind == "switch":
        return ""
    nodes = side(ranks)
    if kind == "torus":
        return f' topology="TORUS" topo_parameters="{ranks // nodes},{nodes}"'
    up = nodes if kind == "tree" else max(1, nodes // 4)
    return f' topology="FAT_TREE" topo_parameters="2;{nodes},{ranks // nodes};1,{up};1,1"'


def platform(kind, ranks, bandwidth, latency):
    """XML of machines of one rank. `switch`: one that never blocks; `tree`: a full fat tree of two levels; `tapered`:
    the same with a quarter of the links upward; `torus`: two dimensions. Bandwidth in bytes a second."""
    return (f'{HEAD}<cluster id="c" prefix="n-" suffix="" radical="0-{ranks - 1}" speed="10Gf" bw="{bandwidth:.0f}Bps" '
            f'lat="{latency * 1e9:.0f}ns"{topology(kind, ranks)}/>\n</zone>\n</platform>\n')


# ---------------------------------------------------------------------------------------------------------------------
# Sums
# ---------------------------------------------------------------------------------------------------------------------


class Sum:
    """One all-reduce of the lineup, as a line of the program's cases."""

    def __init__(self, algorithm, rows=0, columns=0, lane=0, sync=0, put_reduces=0):
        self.algorithm, self.rows, self.columns = algorithm, rows, columns
        self.lane, self.sync, self.put_reduces = lane, sync, put_reduces

    def name(self):
        words = [self.algorithm]
        if self.rows:
            words.append(f"{self.rows}x{self.columns}")
        words += ["ring"] * (self.lane == 1) + ["pscw"] * (self.sync == 1) + ["put-reduces"] * self.put_reduces
        return " ".join(words)

    def line(self, size):
        chunk = CHUNK if self.algorithm == "torus-put" and size > SMALL else 0
        return f"{size} {self.algorithm} {self.rows} {self.columns} {self.lane} {self.sync} {self.put_reduces} {chunk}\n"


def lineup(ranks, size, ring):
    """The sums that are measured: all algorithms, and shapes from square to flat. Windows need some numbers to win."""
    columns = side(ranks)
    rows = ranks // columns
    sums = [Sum("rabenseifner"), Sum("bine"), Sum("torus", 1, ranks), Sum("torus", rows, columns, 1)]
    # Windows of more ranks take tens of GB.
    if size >= 1 << 16 and ranks <= MOST_WINDOWS:
        sums += [Sum("torus-put", rows, columns, 0, 1), Sum("torus-put", rows, columns, 0, 1, 1)]
    return sums + [Sum("torus-put", rows, columns), Sum("torus-put", rows, columns, 1, 1), Sum("ring")] * ring


def simulate(folder, setting, cases):
    """Runs cases, pairs of Sum and bytes, on a platform. Returns their lines of numbers."""
    files = pathlib.Path(tempfile.mkdtemp(prefix="shortlist-simulated-"))
    (files / "platform.xml").write_text(
        platform(setting["network"], setting["ranks"], setting["bandwidth"], setting["latency"]), encoding="utf-8")
    (files / "hosts").write_text("".join(f"n-{i}\n" for i in range(setting["ranks"])), encoding="utf-8")
    (files / "cases").write_text("".join(one.line(size) for one, size in cases), encoding="utf-8")
    command = ["smpirun", "-np", str(setting["ranks"]), "-platform", files / "platform.xml", "-hostfile", files / "hosts",
               "--cfg=smpi/simulate-computation:no", f"--cfg=smpi/coll-selector:{setting['selector']}",
               "--log=root.thresh:critical", folder / "simulate_dry", files / "cases"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    if done.returncode or len(lines) != len(cases):
        sys.exit(f"bench cluster: smpirun failed on {setting}: {done.stdout[-300:]}{done.stderr[-600:]}")
    return lines


def race(folder, where, sizes, ring):
    """Times of all sums at all sizes, and of what Open MPI and Intel MPI choose. A table by size."""
    found = {size: {} for size in sizes}
    for selector, title in (("ompi", "Open MPI"), ("impi", "Intel MPI")):
        cases = [(one, size) for size in sizes
                 for one in [Sum("native"), *(lineup(where["ranks"], size, ring) if selector == "ompi" else [])]]
        # The first case has the skew of the start, and does not count.
        lines = simulate(folder, {**where, "selector": selector}, [(Sum("native"), sizes[0]), *cases])[1:]
        for (one, size), line in zip(cases, lines):
            found[size][title if one.algorithm == "native" else one.name()] = float(line[0])
    return [{"bytes": size, "seconds": times} for size, times in found.items()]


# ---------------------------------------------------------------------------------------------------------------------
# Experiments
# ---------------------------------------------------------------------------------------------------------------------


def setting(network, ranks, bandwidth=12.5 * GB, latency=1 * US):
    return {"network": network, "ranks": ranks, "bandwidth": bandwidth, "latency": latency}


def experiments():
    """What is simulated: a name, a setting, sizes, and whether the ring and slower shapes are among the sums."""
    yield "ring", setting("switch", 256), (NET,), True
    for network, ranks in (("tree", 240), ("tapered", 256), ("tapered", 240), ("torus", 256)):
        yield "networks", setting(network, ranks), MIDDLE, False
    yield "sizes", setting("switch", 256), SIZES, False
    yield "sizes", setting("switch", 64), (256 << 20,), False
    for gigabits in (10, 25, 100):
        yield "links", setting("tree", 240, gigabits * GBIT), (1 << 20, NET), False
    for faster, quicker in ((0.5, 1), (2, 1), (1, 0.5), (1, 2)):
        changed = {"bandwidth": faster * 12.5 * GB, "latency": quicker * US}
        yield "sensitivity", setting("switch", 256, **changed), (NET,), True
        yield "sensitivity", setting("tapered", 240, **changed), (NET,), False
    for ranks in (4, 16, 64, 240, 1024):
        yield "ranks", setting("switch", ranks), (NET,), ranks <= 256


def best(times, without=("Open MPI", "Intel MPI")):
    return min((seconds, name) for name, seconds in times.items() if name not in without)


def summary(runs):
    """What the record is for: the best sum beside MPI's choice, by run and size."""
    rows = []
    for run in runs:
        for row in run["sizes"]:
            seconds, name = best(row["seconds"])
            rows.append({"experiment": run["experiment"], "network": run["network"], "ranks": run["ranks"],
                         "bandwidth": run["bandwidth"], "latency": run["latency"], "bytes": row["bytes"], "best": name,
                         "seconds": seconds, "of_open_mpi": row["seconds"]["Open MPI"] / seconds,
                         "of_intel_mpi": row["seconds"]["Intel MPI"] / seconds})
    return rows


def draw(runs, path):
    """Times as fast as Open MPI's choice: by size on one switch, and by network for the net's gradient."""
    try:
        import matplotlib
    except ImportError:
        print("bench cluster: no matplotlib, so no picture", file=sys.stderr)
        return
    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.2))
    by_size = [row for run in runs if run["experiment"] == "sizes" and run["ranks"] == 256 for row in run["sizes"]]
    for name in by_size[-1]["seconds"] if by_size else ():
        points = [(row["bytes"], row["seconds"]["Open MPI"] / row["seconds"][name]) for row in by_size
                  if name in row["seconds"]]
        left.plot(*zip(*points), marker="o", markersize=3, linewidth=1, label=name)
    left.set_xscale("log", base=2)
    left.set_xlabel("bytes; 256 ranks on one switch")
    left.set_ylabel("times as fast as Open MPI's choice")
    if by_size:
        left.legend(fontsize=7)
    bars = [(f"{run['network']}\n{run['ranks']}", row["seconds"]) for run in runs
            if run["experiment"] in ("networks", "ring") for row in run["sizes"] if row["bytes"] == NET]
    names = sorted({kind(name) for _, times in bars for name in times} - {"Open MPI"})
    for number, name in enumerate(names):
        heights = [max((times["Open MPI"] / seconds for key, seconds in times.items() if kind(key) == name), default=0)
                   for _, times in bars]
        right.bar([at + 0.8 * number / len(names) for at in range(len(bars))], heights, 0.8 / len(names), label=name)
    right.set_xticks([at + 0.4 for at in range(len(bars))], [label for label, _ in bars], fontsize=8)
    right.set_xlabel("network and ranks; 9.4 MB")
    right.legend(fontsize=7)
    for axes in (left, right):
        axes.axhline(1, color="black", linewidth=0.6)
        axes.grid(True, axis="y", linewidth=0.3)
    figure.suptitle("Simulated by SimGrid, 12.5 GB/s and 1 us a link", fontsize=9)
    figure.tight_layout()
    keep.picture(figure, path)


def kind(name):
    """The algorithm of a sum's name, whatever its shape."""
    return name if name.endswith("MPI") else name.split()[0]


def other_runs(options):
    """With --only: what the record has of other experiments."""
    if not options.only or not options.output.exists():
        return []
    runs = json.loads(options.output.read_text(encoding="utf-8"))["runs"]
    return [run for run in runs if run["experiment"] not in options.only.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="experiments to run anew, by commas: sizes,ring,networks,links,ranks,sensitivity")
    parser.add_argument("--most", type=int, default=1024, help="ranks at most (default 1024)")
    parser.add_argument("--output", type=pathlib.Path, default=RESULTS / "cluster-simulated.json")
    options = parser.parse_args()
    folder = ROOT / "build" / "smpi"
    subprocess.run([ROOT / "bench" / "cluster" / "smpi.sh", folder], check=True)
    runs = other_runs(options)
    for name, where, sizes, ring in experiments():
        if where["ranks"] > options.most or (options.only and name not in options.only.split(",")):
            continue
        begin = time.monotonic()
        runs.append({"experiment": name, **where, "sizes": race(folder, where, sizes, ring)})
        print(f"{name} {where}: {time.monotonic() - begin:.0f} s", flush=True)
        version = subprocess.run(["smpicc", "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
        keep.record(options.output, {"simulator": version, "summary": summary(runs), "runs": runs})
    draw(runs, options.output.with_suffix(".svg"))


if __name__ == "__main__":
    main()
