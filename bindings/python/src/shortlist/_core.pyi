"""The library's calls over buffers; see src/core/module.cpp."""

from typing import Any

from ._index import IndexStats
from ._progress import ProgressFunction
from ._system import SystemInfo

METRICS: dict[str, int]
DTYPES: dict[str, int]
CODES: dict[str, int]
REFINES: dict[str, int]
PLACES: dict[str, int]
MAX_EF: int
NO_ID: int

def version() -> str: ...
def system() -> SystemInfo: ...
def exact(
    x: object,
    q: object,
    dtype: int,
    metric: int,
    dim: int,
    k: int,
    threads: int,
    ids_out: object,
    scores_out: object,
) -> None: ...

class Index:
    @staticmethod
    def create(
        dim: int, metric: int, dtype: int, codes: int, refine: int, m: int, ef_construction: int, seed: int
    ) -> Index: ...
    @staticmethod
    def open(path: bytes, place: int) -> Index: ...
    def add(
        self, rows: object, dtype: int, ids: object | None, threads: int, progress: ProgressFunction | None
    ) -> None: ...
    def search(
        self,
        rows: object,
        dtype: int,
        k: int,
        ef: int,
        rerank: int,
        threads: int,
        ids_out: object,
        scores_out: object,
    ) -> None: ...
    def get(self, ids: object, n: int, dtype: int, out: object) -> None: ...
    def save(self, path: bytes, progress: ProgressFunction | None) -> None: ...
    def check(
        self, sample: int, k: int, ef: int, threads: int, progress: ProgressFunction | None
    ) -> dict[str, Any]: ...
    def stats(self) -> IndexStats: ...
    def close(self) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def closed(self) -> bool: ...
