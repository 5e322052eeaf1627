"""Draws queries a second over recall for the two sides."""

import statistics

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  the backend is chosen first


def draw(events, peers, about, path):
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for side, peer in enumerate(peers):
        passes = [e for e in events if e["event"] == "pass" and e["side"] == side]
        points = []
        for ef in sorted({e["ef"] for e in passes}):
            here = [e for e in passes if e["ef"] == ef]
            points.append((here[0]["recall"], statistics.median(e["qps"] for e in here)))
        axes.plot(*zip(*points), marker="o", markersize=3.5, label=peer)
    axes.set_yscale("log")
    axes.set_xlabel("recall@10")
    axes.set_ylabel("queries a second, one thread")
    axes.set_title(f"{about['data']['name']}, cosine, M=16, {about['machine']['cpu']}", fontsize=10)
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
