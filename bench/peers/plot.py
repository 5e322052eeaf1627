"""Draws speed over recall, from the settings tried on the queries for tuning."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  the backend is chosen first

import keep  # noqa: E402


def styles(entries):
    """A colour for each library, ours thick and black; its variants differ by their markers."""
    names = list(dict.fromkeys(entry["engine"] for entry in entries if not entry["ours"]))
    palette = pyplot.get_cmap("tab10")
    markers, seen, found = "osv^D*XP", {}, {}
    for entry in entries:
        number = seen[entry["engine"]] = seen.get(entry["engine"], -1) + 1
        colour = "black" if entry["ours"] else palette(names.index(entry["engine"]) % 10)
        found[entry["name"]] = {"color": colour, "marker": markers[number % len(markers)],
                                "linewidth": 2.2 if entry["ours"] else 1.0}
    return found


def draw(about, entries, path):
    taking = [entry for entry in entries if not entry.get("skip")]
    style = styles(taking)
    figure, axes = pyplot.subplots(figsize=(9, 5.5))
    for entry in taking:
        if entry["curve"]:
            axes.plot(*zip(*entry["curve"]), markersize=3, label=entry["name"], **style[entry["name"]])
    axes.set_xlabel("recall@10")
    axes.set_ylabel("queries a second, whole matrix")
    axes.set_yscale("log")
    axes.set_title(f"{about['data']['name']}, {about['data']['metric']}, {about['machine']['cpu']}, one core: every setting "
                   "tried", fontsize=9)
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.tight_layout()
    keep.picture(figure, path)
