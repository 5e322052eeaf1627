"""The library's calls over buffers; see src/core/module.cpp."""

from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from ._arrays import Ids, Scores
from ._index import IndexStats, NumaPages
from ._progress import ProgressFunction
from ._system import SystemInfo

METRICS: dict[str, int]
DTYPES: dict[str, int]
CODES: dict[str, int]
REFINES: dict[str, int]
CLIPS: dict[str, int]
CALIBRATIONS: dict[str, int]
PLACES: dict[str, int]
LAYOUTS: dict[str, int]
TIERS: dict[str, int]
MAX_EF: int
NO_ID: int

def version() -> str: ...
def system() -> SystemInfo: ...
def parse_numa(text: str) -> tuple[int, int]: ...
def snapshot(path: bytes, copy: bytes, progress: ProgressFunction | None) -> None: ...
def rebuild(
    path: bytes,
    output: bytes | None,
    m: int,
    ef_construction: int,
    room: int,
    builder: int,
    threads: int,
    wait: float,
    progress: ProgressFunction | None,
) -> dict[str, Any]: ...
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
        dim: int,
        metric: int,
        dtype: int,
        codes: int,
        refine: int,
        clip: int,
        clip_share: float,
        m: int,
        ef_construction: int,
        seed: int,
        numa: int,
        numa_node: int,
        tags: bool,
        keys: bool,
        multi: bool,
        max_memory: int,
        work_path: bytes | None,
    ) -> Index: ...
    @staticmethod
    def open(
        path: bytes,
        place: int,
        writable: bool,
        numa: int,
        numa_node: int,
        tier: int,
        threads: int,
        exclusive: bool,
        wait: float,
    ) -> Index: ...
    @staticmethod
    def merge(
        indexes: list[Index],
        m: int,
        ef_construction: int,
        clash: int,
        builder: int,
        threads: int,
        progress: ProgressFunction | None,
    ) -> Index: ...
    @staticmethod
    def import_file(
        path: bytes,
        format: int,
        metric: int,
        dim: int,
        codes: int,
        refine: int,
        clip: int,
        clip_share: float,
        threads: int,
        progress: ProgressFunction | None,
    ) -> Index: ...
    def add(
        self,
        rows: object,
        dtype: int,
        ids: object | None,
        tags: object | None,
        keys: object | None,
        replace: int,
        old: object | None,
        builder: int,
        threads: int,
        progress: ProgressFunction | None,
    ) -> None: ...
    def set_words(self, keys: bool, ids: object, n: int, words: object) -> None: ...
    def get_words(self, keys: bool, ids: object, n: int, words_out: object) -> None: ...
    def delete(self, ids: object, n: int) -> None: ...
    def undelete(self, ids: object, n: int) -> None: ...
    def compact(self, progress: ProgressFunction | None) -> None: ...
    def search(
        self, rows: object, dtype: int, k: int, options: dict[str, Any], ids_out: object, scores_out: object
    ) -> None: ...
    def search_ids(
        self, ids: object, n: int, k: int, options: dict[str, Any], ids_out: object, scores_out: object
    ) -> None: ...
    def range(
        self,
        rows: object,
        dtype: int,
        radius: float,
        exact: bool,
        ef: int,
        slack: float,
        threads: int,
        filter: Filter | None,
    ) -> tuple[bytes, bytes, bytes]: ...
    def search_as_is(
        self,
        q: object,
        k: object,
        ef: object,
        threads: object,
        rerank: object,
        recall: object,
        stop: object,
        probes: object,
        groups: object,
    ) -> tuple[Ids, Scores] | None: ...
    def tune(
        self,
        rows: object,
        dtype: int,
        k: int,
        truth: object | None,
        targets: object | None,
        target_count: int,
        max_ef: int,
        threads: int,
        progress: ProgressFunction | None,
    ) -> dict[str, int]: ...
    def tuned(self) -> list[dict[str, Any]]: ...
    def get(self, ids: object, n: int, dtype: int, out: object) -> None: ...
    def get_all(self, id: int, dtype: int) -> bytes: ...
    def contains(self, id: int) -> bool: ...
    def list(self, ids_out: object, room: int) -> int: ...
    def save(self, path: bytes, room: int, layout: int, progress: ProgressFunction | None) -> None: ...
    def plan(self, n: int, builder: int, threads: int, room: int, layout: int) -> dict[str, Any]: ...
    def sync(self) -> None: ...
    def check(
        self, sample: int, k: int, ef: int, threads: int, scrub: bool, progress: ProgressFunction | None
    ) -> dict[str, Any]: ...
    def recall(
        self,
        sample: int,
        k: int,
        ef: int,
        seconds: float,
        seed: int,
        progress: ProgressFunction | None,
    ) -> dict[str, Any]: ...
    def resolution(self, threads: int) -> tuple[int, int]: ...
    def stats(self) -> IndexStats: ...
    def numa(self) -> NumaPages: ...
    def close(self) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def closed(self) -> bool: ...

class Filter:
    def __init__(
        self,
        index: Index,
        bits: object | None,
        bits_count: int,
        allow: object | None,
        allow_count: int,
        exclude: object | None,
        exclude_count: int,
        accept: Callable[[int], object] | None,
        masks: tuple[int, int, int],
        keys: tuple[int, int],
    ) -> None: ...
    def refresh(self) -> None: ...
    def count(self) -> int: ...

class Iterator:
    def __init__(
        self, index: Index, rows: object, dtype: int, ef: int, rerank: int, filter: Filter | None, max_visits: int
    ) -> None: ...
    def next(self, k: int, ids_out: object, scores_out: object) -> tuple[int, bool]: ...

class Table:
    def __init__(self, rows: int, columns: list[tuple[Any, ...]]) -> None: ...
    @property
    def rows(self) -> int: ...

class Csv:
    def __init__(self, path: bytes, spec: str | None, delimiter: str, names: list[str] | None) -> None: ...

_Find = Callable[[str, int], npt.NDArray[np.float32]]

class Ranker:
    @staticmethod
    def train(
        spec: str,
        rows: Table | Csv,
        valid: Table | Csv | None,
        options: dict[str, Any],
        lookup: _Find | None,
        progress: ProgressFunction | None,
        on_epoch: Callable[[dict[str, Any]], object] | None,
    ) -> tuple[Ranker, dict[str, Any]]: ...
    def prune(
        self,
        rows: Table | Csv | None,
        valid: Table | Csv | None,
        cuts: dict[str, Any],
        options: dict[str, Any],
        lookup: _Find | None,
        progress: ProgressFunction | None,
        on_epoch: Callable[[dict[str, Any]], object] | None,
    ) -> tuple[Ranker, dict[str, Any]]: ...
    @staticmethod
    def create(
        spec: str, rows: Table | Csv, seed: int, lookup: _Find | None
    ) -> Ranker: ...
    @staticmethod
    def open(path: bytes) -> Ranker: ...
    @staticmethod
    def check(path: bytes, progress: ProgressFunction | None) -> dict[str, Any]: ...
    def save(self, path: bytes, progress: ProgressFunction | None) -> None: ...
    def predict(
        self, table: Table, threads: int, lookup: _Find | None, scores_out: object
    ) -> None: ...
    def predict_rows(
        self, rows: Table | Csv, threads: int, lookup: _Find | None
    ) -> bytearray: ...
    def encode(
        self, rows: Table | Csv, lookup: _Find | None
    ) -> tuple[bytearray, bytearray, bytearray, bytearray]: ...
    def predict_encoded(
        self, n: int, dense: object, ids: object, bag_start: object, bag_ids: object, scores_out: object
    ) -> None: ...
    def evaluate(
        self,
        rows: Table | Csv,
        group: str | None,
        k: int,
        threads: int,
        lookup: _Find | None,
        progress: ProgressFunction | None,
    ) -> dict[str, Any]: ...
    def quantize(
        self,
        rows: Table | Csv,
        eval: Table | Csv | None,
        options: dict[str, Any],
        lookup: _Find | None,
        progress: ProgressFunction | None,
    ) -> tuple[Ranker, dict[str, Any], list[dict[str, Any]]]: ...
    def layers(self) -> list[dict[str, Any]]: ...
    def info(self) -> dict[str, Any]: ...
    def classes(self) -> list[str]: ...
    def features(self) -> list[dict[str, Any]]: ...
    def embeddings(self) -> list[dict[str, Any]]: ...
    @staticmethod
    def tensors(ranker: Ranker) -> dict[str, npt.NDArray[np.float32]]: ...
    def with_tensors(self, tensors: dict[str, npt.NDArray[np.float32]]) -> Ranker: ...
    def with_layers(self, layers: list[tuple[Any, ...]]) -> Ranker: ...

class Items:
    @staticmethod
    def create(rows: Table | Csv, id: str, progress: ProgressFunction | None) -> Items: ...
    @staticmethod
    def open(path: bytes, id: str, exclusive: bool, wait: float) -> Items: ...
    def save(self, path: bytes, progress: ProgressFunction | None) -> None: ...
    def check(self, progress: ProgressFunction | None) -> dict[str, Any]: ...
    def update(self, table: Table, partial: bool) -> None: ...
    def delete(self, ids: object, n: int) -> None: ...
    def texts(self, ids: object, n: int, column: str) -> list[str]: ...
    @property
    def size(self) -> int: ...
    @property
    def changes(self) -> int: ...

class Recommender:
    def __init__(
        self,
        index: Index,
        ranker: Ranker | None,
        items: Items | None,
        item_part: int,
        threads: int,
        missing_score: float,
        group: str | None,
        verify: bool,
    ) -> None: ...
    def recommend(
        self,
        request: dict[str, Any],
        options: dict[str, int],
        ids_out: object,
        scores_out: object,
        recall_out: object,
        progress: ProgressFunction | None,
    ) -> dict[str, int]: ...
    def score(
        self, request: dict[str, Any], ids: object, count: int, recall: object | None, scores_out: object
    ) -> dict[str, int]: ...
    def swap(self, ranker: Ranker | None, items: Items | None) -> None: ...
    def update(self, table: Table, partial: bool) -> None: ...
    def delete(self, ids: object, n: int) -> None: ...
    @property
    def version(self) -> int: ...
    @property
    def item_bytes(self) -> int: ...
