"""Interpolation of a measured curve at a recall between its settings."""

import math

EFS = "10,14,20,28,40,56,80,112,160,224,320,448,640,896,1280,1792"


def at_recall(points, recall, field):
    """A field at a recall: its logarithm between the two settings around, evenly by log(1 - recall). None where the
    curve does not reach so far, or begins above."""
    def place(value):
        return -math.log(max(1 - value, 1e-9))

    ordered = sorted(points, key=lambda point: point["recall"])
    for before, after in zip(ordered, ordered[1:]):
        if before["recall"] <= recall <= after["recall"] and before["recall"] < after["recall"]:
            share = (place(recall) - place(before["recall"])) / (place(after["recall"]) - place(before["recall"]))
            return math.exp((1 - share) * math.log(before[field]) + share * math.log(after[field]))
    return None
