"""Common parts of the makers of vector sets: queries held out by a fixed seed, duplicates dropped, files written."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

QUERIES, SEED = 2000, 20240100
MASK = (1 << 64) - 1
SUFFIX = {"float32": "fbin", "uint8": "u8bin"}

Rows = npt.NDArray[np.generic]


def random_at(counter: int, seed: int = SEED) -> int:
    """SplitMix64 over a counter, as base/random.h and glove100.js."""
    z = (seed + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def choose(n: int, count: int) -> npt.NDArray[np.int64]:
    """`count` different rows of n, ascending."""
    if not 0 < count < n:
        raise ValueError(f"{count} of {n} rows cannot be drawn")
    chosen: set[int] = set()
    counter = 0
    while len(chosen) < count:
        chosen.add(random_at(counter) % n)
        counter += 1
    return np.array(sorted(chosen))


def distinct(rows: Rows) -> npt.NDArray[np.int64]:
    """The first row of each value, ascending."""
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    _, first = np.unique(whole, return_index=True)
    return np.sort(first)


def write_rows(path: Path, rows: Rows) -> None:
    """.fbin and .u8bin: row count and dimension as u32, then the rows, all little-endian."""
    with path.open("wb") as file:
        np.array(rows.shape, "<u4").tofile(file)
        np.ascontiguousarray(rows, rows.dtype.newbyteorder("<")).tofile(file)


def write_set(out: Path, rows: Rows, texts: list[str] | None = None, queries: int = QUERIES) -> None:
    """base and queries, and the lines of texts.txt and query_texts.txt that belong to their rows."""
    held = np.zeros(len(rows), bool)
    held[choose(len(rows), queries)] = True
    for name, lines, chosen in ("base", "texts", ~held), ("queries", "query_texts", held):
        file = f"{name}.{SUFFIX[rows.dtype.name]}"
        write_rows(out / file, rows[chosen])
        if texts is not None:
            kept = [texts[row] for row in np.flatnonzero(chosen)]
            (out / f"{lines}.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
        print(f"{out.name.removesuffix('.new')}: {file}: {chosen.sum()} x {rows.shape[1]}")
