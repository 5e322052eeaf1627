"""Chooses which settings are tried and which is taken: plain arithmetic over a function that measures."""

import itertools

STEP = 1.03  # between neighbouring values of the setting that is searched
LEAST_RECALL = 0.8  # of what a picture shows


class Sweep:
    """One whole-number setting that trades speed for recall, and lists of others that go with it."""

    def __init__(self, key, low, high, **grid):
        self.key, self.low, self.high, self.grid = key, low, high, grid

    def combinations(self):
        return [dict(zip(self.grid, values)) for values in itertools.product(*self.grid.values())]

    def ends(self, params):
        """The settings of these that are the largest tried of several, so that larger ones might be better. A choice
        among words has no end."""
        largest = {name: max(values) for name, values in self.grid.items()
                   if len(values) > 1 and not isinstance(values[0], str)}
        return [name for name, value in params.items() if largest.get(name) == value]

    def ladder(self):
        values = [self.low]
        while values[-1] < self.high:
            values.append(min(self.high, max(values[-1] + 1, round(values[-1] * STEP))))
        return values


def least(values, reaches):
    """The first of values, which get better and better but dearer, that reaches; None where the last does not."""
    low, high = 0, 0
    while not reaches(values[high]):  # in growing strides, so that the dearest are tried only where they are needed
        if high == len(values) - 1:
            return None
        low, high = high + 1, min(2 * high + 1, len(values) - 1)
    while low < high:
        middle = (low + high) // 2
        if reaches(values[middle]):
            high = middle
        else:
            low = middle + 1
    return values[low]


class Seen:
    """Every setting that was measured, each once."""

    def __init__(self, measure):
        self.measure, self.points = measure, {}

    def __call__(self, params):
        key = tuple(sorted(params.items()))
        if key not in self.points:
            self.points[key] = {"params": params, **self.measure(params)}
        return self.points[key]


def candidates(sweep, seen, targets):
    """For each target, of each combination of the other settings the least value that reaches it."""
    found = {target: [] for target in targets}
    for others in sweep.combinations():
        ladder = sweep.ladder()
        for target in sorted(targets):
            value = least(ladder, lambda v: seen({sweep.key: v, **others})["recall"] >= target)
            if value is None:
                break  # a higher target is out of reach too
            found[target].append({sweep.key: value, **others})
            ladder = ladder[ladder.index(value):]
    return found


def pick(params, speed):
    """The fastest of params by speed(params); None of none. One alone needs no measurement."""
    if len(params) < 2:
        return params[0] if params else None
    return max(params, key=speed)


def front(points):
    """The points that no other point beats in both recall and qps, by rising recall."""
    best, kept = 0.0, []
    for point in sorted(points, key=lambda p: (-p["recall"], -p["qps"])):
        if point["qps"] > best:
            best = point["qps"]
            kept.append(point)
    return kept[::-1]


def curve(points):
    """Returns the points of a picture: [recall, qps] of the front from LEAST_RECALL on."""
    return [[point["recall"], point["qps"]] for point in front(points) if point["recall"] >= LEAST_RECALL]
