"""Laws of two factors each, by least squares, and how far they are off."""

import math


def least_squares(one, two, values):
    """Factors (a, b) of a * one + b * two that are nearest to the values."""
    aa, bb = sum(x * x for x in one), sum(y * y for y in two)
    ab = sum(x * y for x, y in zip(one, two))
    av, bv = sum(x * v for x, v in zip(one, values)), sum(y * v for y, v in zip(two, values))
    det = aa * bb - ab * ab
    return (av * bb - bv * ab) / det, (bv * aa - av * ab) / det


def off(law, sizes, values):
    """The largest error of a law, in parts of the value."""
    return max(abs(law(size) / value - 1) for size, value in zip(sizes, values))


def logarithm(sizes, values):
    """a + b ln N, with b not below 0: what is read lies further away the more there is"""
    a, b = least_squares([1.0] * len(sizes), [math.log(size) for size in sizes], values)
    if b < 0:
        a, b = sum(values) / len(values), 0.0
    return {"law": "a + b ln N", "a": a, "b": b, "off": off(lambda n: a + b * math.log(n), sizes, values)}


def power(sizes, values):
    """a N^b, by the logarithms"""
    a, b = least_squares([1.0] * len(sizes), [math.log(size) for size in sizes], [math.log(value) for value in values])
    return {"law": "a N^b", "a": math.exp(a), "b": b, "off": off(lambda n: math.exp(a) * n ** b, sizes, values)}


def of_relative(sizes, values, name, two):
    """a N + b two(N), neither below 0: errors count in parts of the value."""
    one, other = [n / v for n, v in zip(sizes, values)], [two(n) / v for n, v in zip(sizes, values)]
    ones = [1.0] * len(sizes)
    a, b = least_squares(one, other, ones)
    if b < 0:
        a, b = sum(one) / sum(x * x for x in one), 0.0
    elif a < 0:
        a, b = 0.0, sum(other) / sum(y * y for y in other)
    return {"law": name, "a": a, "b": b, "off": off(lambda n: a * n + b * two(n), sizes, values)}


def line(sizes, values):
    """a + b N"""
    a, b = least_squares([1.0] * len(sizes), list(map(float, sizes)), values)
    return {"law": "a + b N", "a": a, "b": b, "off": off(lambda n: a + b * n, sizes, values)}


MEMBERS, LOOKED_AT, FLAT = 48, 12, 2048


def near(centres, are_heads=False):
    """Centres that a vector is compared with: see hnsw/construct/centre_groups.c."""
    if are_heads and centres <= FLAT:
        return centres
    groups = centres // MEMBERS + 1
    return near(groups, True) + min(1.0, LOOKED_AT / groups) * centres


def compared(n):
    """Comparisons of vectors with centres of leaves at ef_construction 200."""
    return 2.0 * n * near(n * 4 // 800 + 1)


def with_centres(sizes, values):
    return of_relative(sizes, values, "a N + b C(N)", compared)


def n_log_n(sizes, values):
    return of_relative(sizes, values, "a N + b N ln N", lambda n: n * math.log(n))


def at(law, n):
    """A law's value for n."""
    a, b = law["a"], law["b"]
    return {"a + b ln N": lambda: a + b * math.log(n), "a + b N": lambda: a + b * n, "a N^b": lambda: a * n ** b,
            "a N + b C(N)": lambda: a * n + b * compared(n), "a N + b N ln N": lambda: a * n + b * n * math.log(n)}[law["law"]]()
