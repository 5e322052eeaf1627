"""Draws speed over recall, from the settings tried on the queries for tuning, and speed over bytes, from the race."""

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  the backend is chosen first

import choose  # noqa: E402
import report  # noqa: E402

BYTES_AT = "0.95"
LEAST_RECALL = 0.8


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


def finish(figure, axes, about, what, path):
    axes.set_yscale("log")
    axes.set_title(f"{about['data']['name']}, {about['data']['metric']}, {about['machine']['cpu']}, one core: {what}",
                   fontsize=9)
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def draw(about, entries, summary, path):
    taking = [entry for entry in entries if not entry.get("skip")]
    style = styles(taking)
    figure, axes = pyplot.subplots(figsize=(9, 5.5))
    for entry in taking:
        points = [p for p in choose.front(entry["tried"]) if p["recall"] >= LEAST_RECALL]
        if points:
            axes.plot([p["recall"] for p in points], [p["qps"] for p in points], markersize=3, label=entry["name"],
                      **style[entry["name"]])
    axes.set_xlabel("recall@10")
    axes.set_ylabel("queries a second, whole matrix")
    finish(figure, axes, about, "every setting tried", path.with_suffix(".svg"))

    found = report.lookup(summary)
    figure, axes = pyplot.subplots(figsize=(9, 5.5))
    for entry in taking:
        qps = report.speed(found, entry["name"], "one", BYTES_AT)
        if qps:
            axes.plot([entry["bytes_per_vector"]], [qps], markersize=7, linestyle="none", label=entry["name"],
                      color=style[entry["name"]]["color"], marker=style[entry["name"]]["marker"])
    axes.set_xlabel("bytes a vector")
    axes.set_ylabel(f"queries a second at recall@10 {BYTES_AT}, one a call")
    finish(figure, axes, about, "speed and memory", path.with_name(path.stem + "-bytes.svg"))
