"""Draws the seconds of whole builds, a panel a set, with the least and the most of the rounds."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  the backend is chosen first

import keep  # noqa: E402


def draw(record, path):
    sets = record["summary"]["sets"]
    figure, panels = pyplot.subplots(1, len(sets), figsize=(4.6 * len(sets) + 1, 3.6), squeeze=False)
    for found, axes in zip(sets, panels[0]):
        rows = found["builds"][::-1]
        seconds = [row["seconds"] for row in rows]
        reach = [[s["median"] - s["min"] for s in seconds], [s["max"] - s["median"] for s in seconds]]
        colours = ["black" if row["name"].startswith("shortlist") else "C0" for row in rows]
        axes.barh([row["name"] for row in rows], [s["median"] for s in seconds], xerr=reach, capsize=2, color=colours,
                  ecolor="grey")
        axes.set_title(f"{found['set']}, {found['rows']:,} rows", fontsize=9)
        axes.set_xlabel(f"seconds, {record['parameters']['threads']} threads")
        axes.tick_params(axis="y", labelsize=7)
        axes.grid(True, axis="x", linewidth=0.3)
    figure.suptitle(record["machine"]["cpu"], fontsize=9)
    figure.tight_layout()
    keep.picture(figure, path)
