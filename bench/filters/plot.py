"""Draws microseconds a query over the share allowed: near, by chance and far."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  the backend is chosen first

import keep  # noqa: E402
import report  # noqa: E402


def style_of(entry):
    return {"auto": {"color": "black", "linewidth": 2.2, "marker": "o"},
            "tuned": {"color": "black", "linestyle": "none", "marker": "x"},
            "forced": {"linestyle": ":", "linewidth": 1.2, "marker": "."},
            "unfiltered": {"color": "grey", "linestyle": "--"},
            "scan": {"color": "grey", "linestyle": "-.", "marker": "."},
            "peer": {"linewidth": 1, "marker": "^"}}[entry["kind"]]


def draw(record, path):
    """Points that do not reach the recall are left out."""
    every = [cell for cell in record["cells"] if not report.excludes(cell)]
    kinds = list(dict.fromkeys(cell["kind"] for cell in every))
    figure, panels = pyplot.subplots(1, len(kinds), figsize=(4.2 * len(kinds) + 2, 4.6), sharey=True, squeeze=False)
    for kind, axes in zip(kinds, panels[0]):
        cells = [cell for cell in every if cell["kind"] == kind]
        for number, entry in enumerate(cells[0]["entries"]):
            points = [(cell["share"] * 100, report.entry(cell, entry["name"])["us"]["median"]) for cell in cells
                      if report.entry(cell, entry["name"])["reached"]]
            colour = {"color": f"C{number % 10}", **style_of(entry)}
            axes.plot(*zip(*points) if points else ([], []), markersize=4, label=entry["name"], **colour)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.invert_xaxis()
        axes.set_title(f"{record['data']['name']}: queries {'by chance' if kind == 'chance' else kind}", fontsize=9)
        axes.set_xlabel("% allowed")
        axes.grid(True, which="both", linewidth=0.3)
    panels[0][0].set_ylabel("µs a query at recall@10 0.95, one core")
    panels[0][-1].legend(fontsize=6, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.tight_layout()
    keep.picture(figure, path)
