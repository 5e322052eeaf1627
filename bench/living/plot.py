"""Draws recall over the searches of each runbook, what generations cost beside fresh builds, and tails beside a writer."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, ticker  # noqa: E402  the backend is chosen first

import keep  # noqa: E402
import runbooks  # noqa: E402
from options import NAMES  # noqa: E402

COLOURS = {name: "black" if name == "shortlist" else f"C{number}" for number, name in enumerate(NAMES)}
WIDE = 4  # panels in a row
POINTS = 20  # of a line
LEAST = 0.93  # recall that is drawn


def style(library):
    return {"color": COLOURS[library], "linewidth": 1.6 if library == "shortlist" else 1, "label": library}


def of_book(record, name):
    return [(library["library"], library["books"][name]) for library in record.get("libraries", [])
            if "depths" in library["books"].get(name, {})]


def blocks(series):
    """(places, means) of at most POINTS blocks of neighbours."""
    size = -(-len(series) // POINTS)
    parts = [series[at:at + size] for at in range(0, len(series), size)]
    return [size * number + (len(part) + 1) / 2 for number, part in enumerate(parts)], [sum(p) / len(p) for p in parts]


def recalls(axes, record, name):
    """Recall at the last depth, that for 0.99."""
    for library, found in of_book(record, name):
        axes.plot(*blocks(found["depths"][-1]["series"]), **style(library))
    axes.set_ylim(max(LEAST, axes.get_ylim()[0]), min(1.001, axes.get_ylim()[1]))
    axes.set_title(f"{name}: recall@10", fontsize=8)
    axes.set_xlabel("search", fontsize=7)


def over_fresh(axes, record, name, title, ratio):
    """A ratio with fresh builds at each comparison, of the libraries that have it."""
    for library, found in of_book(record, name):
        points = [(number, ratio(row)) for number, row in enumerate(found["compares"]) if ratio(row) is not None]
        if points:
            axes.plot(*zip(*points), **style(library))
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title(f"{name}: {title}", fontsize=8)
    axes.set_xlabel("comparison with a fresh build", fontsize=7)


def seconds(row):
    return row["depths"][-1]["ratio"]["median"]


def size(row):
    return row["bytes"] / row["fresh_bytes"] if row["bytes"] else None


def tails(axes, about):
    """Bars of p99 and p99.9, idle and beside a writer."""
    rows = [row for row in about["libraries"] if "failed" not in row]
    for number, row in enumerate(rows):
        for place, (kind, tail) in enumerate((kind, tail) for tail in ("p99_us", "p999_us")
                                             for kind in ("idle", "beside")):
            if row[kind][tail]:
                axes.bar(number + 0.2 * place, row[kind][tail]["median"], 0.18, color=COLOURS[row["library"]],
                         alpha=0.4 if kind == "idle" else 1)
    axes.set_xticks([number + 0.3 for number in range(len(rows))], [row["library"] for row in rows], fontsize=7)
    axes.set_yscale("log")
    axes.set_title("p99, p99.9 in µs: idle (pale), beside a writer", fontsize=8)


def panels(record):
    """Gives a function of axes for each panel."""
    found = []
    for name in record.get("runbooks", {}):
        found.append(lambda axes, name=name: recalls(axes, record, name))
        if name in runbooks.CHURN:
            found += [lambda axes, name=name: over_fresh(axes, record, name, "time a query over a fresh build's", seconds),
                      lambda axes, name=name: over_fresh(axes, record, name, "bytes over a fresh build's", size)]
    if "libraries" in record.get("beside", {}):
        found.append(lambda axes: tails(axes, record["beside"]))
    return found


def draw(record, path):
    drawn = panels(record)
    rows = -(-len(drawn) // WIDE)
    figure, grid = pyplot.subplots(rows, WIDE, figsize=(3.6 * WIDE, 2.7 * rows), squeeze=False)
    every = [axes for row in grid for axes in row]
    for act, axes in zip(drawn, every):
        act(axes)
        axes.tick_params(which="both", labelsize=6)
        axes.locator_params(axis="x", nbins=5)
        if axes.get_yscale() == "linear":
            axes.locator_params(axis="y", nbins=5)
        axes.grid(True, linewidth=0.3)
    for axes in every[len(drawn):]:
        axes.axis("off")
    lines = {line.get_label(): line for axes in every for line in axes.get_lines()}
    figure.legend(lines.values(), lines.keys(), fontsize=7, loc="lower center", ncol=len(NAMES))
    about = record["data"]
    figure.suptitle(f"{about['name']}, m {record['parameters']['m']}, {record['machine']['cpu']}, one core", fontsize=9)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    keep.picture(figure, path)
