"""The index, and opening a saved one."""

from __future__ import annotations

import errno
import operator
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypedDict

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import (
    INTEGER,
    NO_ID,
    Ids,
    Scores,
    amount,
    choice,
    count,
    dtype_name,
    id_array,
    numa_policy,
    one_or_many,
    results,
    rows,
    rows_and_old,
    share,
    words,
)
from ._errors import Error, checked
from ._filter import AnyFilter, AnyFilters, handle_of, handles_of
from ._paths import StrPath, missing_file
from ._progress import Progress, shown
from ._reports import CheckReport, RecallReport

Metric = Literal["ip", "cosine", "l2"]
Codes = Literal["i8", "i16", "f32", "i4"]
Refine = Literal["none", "f32", "bf16", "i16"]
Clip = Literal["auto", "minmax", "mse", "quantile"]
Place = Literal["map", "dram", "pmem"]
Layout = Literal["arrays", "records"]
Tier = Literal["auto", "none", "dram"]
Builder = Literal["auto", "insert", "leaves"]
_BUILDERS = {"auto": 0, "insert": 1, "leaves": 2}
Replace = Literal["none", "all", "one"]
_REPLACES = {"none": 0, "all": 1, "one": 2}
Clash = Literal["refuse", "later"]
# Fewer vectors are seldom so dense that their codes lose them.
_JUDGED_FROM = 1000
_CLASHES = {"refuse": 0, "later": 1}
_HNSWLIB, _FAISS = 0, 1
_METRIC_OF_FILE = _REFINE_AUTO = -1


class EpochHolder(TypedDict):
    """A call that reads an index at this moment, such as a search.

    epoch: the epoch in which it began; 0 is not known, for lack of memory.
    pid, tid: its process and thread, as the system numbers them (``threading.get_native_id``); tid 0 is not known.
    """

    epoch: int
    pid: int
    tid: int


class IndexStats(TypedDict):
    """Result of ``Index.stats``. Bytes are those of the saved file.

    n leaves out deleted vectors; the bytes count them.
    reusable: places of deleted vectors that the next adds use, not in deleted.
    in_repair: those of deleted that links lead around by now; they become reusable.
    epoch: an epoch begins with each change that searches see.
    oldest_epoch: the oldest that a call reads; epoch if none does; 0 if not known.
    versions_held: replaced versions that calls may still read, or that the next change frees.
    bytes_held: bytes of these, with their arrays.
    holders: the calls, the oldest epoch first.
    """

    n: int
    dim: int
    metric: str
    dtype: str
    codes: str
    refine: str
    clip: str
    clip_share: float
    m: int
    ef_build: int
    seed: int
    place: str
    max_level: int
    bytes_codes: int
    bytes_links: int
    bytes_ids: int
    bytes_upper: int
    bytes_refine: int
    tags: bool
    keys: bool
    multi: bool
    bytes_tags: int
    bytes_keys: int
    bytes_partitions: int
    partitions: int
    groups: int
    bytes_total: int
    bytes_per_vector: float
    quant_error_mean: float
    quant_error_max: float
    isa: str
    tuned: int
    deleted: int
    reusable: int
    in_repair: int
    epoch: int
    oldest_epoch: int
    versions_held: int
    bytes_held: int
    holders: list[EpochHolder]
    room: int
    layout: str


class NumaPages(TypedDict):
    """Result of ``Index.numa``.

    policy: the policy asked for.
    bytes_by_node: bytes of the arrays that searches mostly read, by the memory node their pages lie on.
    bytes_absent: bytes not in memory; for a mapped file, those not read yet.
    upper_copies: nodes that have a copy of the upper layers.
    """

    policy: str
    bytes_by_node: list[int]
    bytes_absent: int
    upper_copies: int


@dataclass(frozen=True)
class Tuned:
    """Settings that ``Index.tune`` found for one recall and stored.

    target: the recall asked for.
    k: results per query.
    least_k: the settings reach the target for every k from this one on, as measured.
    ef, rerank: as in ``Index.search``.
    stop: how early an easy query ends; 0: by ef alone.
    limit: None if the target was reached. Otherwise the settings are those of the best recall found, and limit says
        the reason. "codes": true neighbours are found, but ranked behind others; a finer refine or finer codes help.
        "graph": deeper searches find no more true neighbours; a larger m or ef_build helps. "ef": max_ef was too small.
    recall: recall measured with the settings on the queries.
    standard_error: standard error of the mean recall.
    evaluations: distances computed per query.
    n: vectors in the index at the time.
    queries: number of queries tuned with.
    ef_alone: the ef that reaches the target without stop. A search takes it if it has a filter or is for fewer
        than k, or if more than a 64th is deleted. It equals ef if stop is 0.
    probes: partitions that a batch of 256 or more queries per thread scans for each query instead of walking; 0
        if walks are cheaper.
    probes_one: the same for fewer queries in a call.
    groups: groups of partitions that the probes are chosen from; 0: all partitions.
    scan_only: whether scans reach the target and walks do not. Such settings do not serve a search that cannot scan.
        Searches that cannot scan have a filter, an index with more than half deleted, or a processor without a scan.
    """

    target: float
    k: int
    least_k: int
    ef: int
    rerank: int
    stop: float
    limit: Literal["codes", "graph", "ef"] | None
    recall: float
    standard_error: float
    evaluations: float
    n: int
    queries: int
    ef_alone: int
    probes: int
    probes_one: int
    groups: int
    scan_only: bool

    @property
    def reached(self) -> bool:
        """True if the target was reached."""
        return self.limit is None


@dataclass(frozen=True)
class TuneReport:
    """Result of ``Index.tune``.

    settings: the settings of each target, lowest first.
    queries_needed: number of queries with which other queries meet the same recall within 0.005, give or take two
        standard errors.
    passes: passes over all queries.
    """

    settings: list[Tuned]
    queries_needed: int
    passes: int


@dataclass(frozen=True)
class BuildPlan:
    """Result of ``Index.plan``.

    n: vectors.
    builder: "insert" or "leaves", the one that links them.
    bytes_index: memory after the add.
    bytes_peak: memory at most at once, of vectors whose codes all differ.
    bytes_peak_alike: the same, if some vectors have the same codes.
    bytes_file: bytes of the saved file. Partitions without vectors are left out of it.
    """

    n: int
    builder: str
    bytes_index: int
    bytes_peak: int
    bytes_peak_alike: int
    bytes_file: int


@dataclass(frozen=True)
class RebuildReport:
    """Result of ``rebuild``.

    n: vectors, before and after.
    deleted: deleted vectors that were left out.
    bytes_before, bytes_after: bytes of the file, without unused room. bytes_after is 0
        if the new file could not be opened to tell.
    room: vectors that the new file has room for; 0 for a file that never changes.
    layout: "arrays" or "records".
    linked_from: codes by which vectors were compared for their links: "i8", "i16", "f32" or "i4+8".
    """

    n: int
    deleted: int
    bytes_before: int
    bytes_after: int
    room: int
    layout: str
    linked_from: str


def _options(
    ef: int,
    threads: int,
    rerank: int,
    recall: float | None,
    stop: float,
    probes: int,
    groups: int,
    threshold: float | None,
    max_visits: int,
) -> dict[str, Any]:
    """Options of a search as the core takes them, without those of one kind of search."""
    return {
        "ef": count("ef", ef),
        "threads": count("threads", threads),
        "rerank": count("rerank", rerank),
        "recall": 0.0 if recall is None else share("recall", recall),
        "stop": amount("stop", stop),
        "probes": count("probes", probes),
        "groups": count("groups", groups),
        "group_size": 0,
        "threshold": None if threshold is None else float(threshold),
        "max_visits": count("max_visits", max_visits),
    }


def _pages(core: _core.Iterator, page: int) -> Iterator[tuple[Ids, Scores]]:
    """The pages that have results, and those that max_visits ended."""
    while True:
        ids, scores = results(1, page)
        got, cut = core.next(page, ids, scores)
        if got or cut:
            yield ids[0, :got], scores[0, :got]
        if got < page and not cut:
            return


class Index:
    """A graph of vectors (HNSW) for finding the nearest of a query.

    dim: dimension of the vectors, 1 to 65,536.
    metric: "cosine", "ip" (inner product) or "l2" (squared Euclidean distance). Scores are the metric's own value. The
        larger score is nearer for "cosine" and "ip", the smaller for "l2".
    codes: codes that the graph is walked over: "i8", "i16", "f32" or "i4". None takes "i8", or "i16" for dtype "i16".
        "i4" walks over 4 bits an element. For floating-point vectors, "i4" keeps 8 more bits an element for ranking,
        about 12 in all, and takes no refine "bf16". For integers, "i4" keeps 4-bit rows of a projection beside the
        usual codes. The same holds for floating-point vectors whose 4-bit elements fill more than a cache line.
    refine: a finer copy that re-ranks the best found: "f32", "bf16" or "i16"; None or "none" for none.
    m: links a node; layer 0 has twice that.
    ef_build: pool size while adding.
    seed: seed of the nodes' levels.
    numa: memory nodes that the index lies on: "interleave" (in turns on all nodes), "bind:N" (on node N) or "local" (on
        the node of the thread that adds). None leaves the choice to the system. With a policy, each node also has a
        copy of the upper layers, and threads of a search stay on a node. Raises shortlist.Error with status
        SL_EUNSUPPORTED if the module was built without libnuma, or the system forbids the policy.
    dtype: with "f32", "f16" or "bf16", vectors may be any array of real numbers. Floating-point types of these three
        are taken as they are; all others are converted to float32. With "i8", "u8" or "i16", vectors are kept exactly,
        scores are exact, and only arrays of that type are taken. numpy's names and types serve too.
    clip: the range that the codes of a vector cover. "minmax": up to its largest magnitude. "mse": that of the least
        squared error among ten. "quantile": the share clip_share of its elements, 0 to 0.5, lies beyond. "auto":
        "minmax" for codes "i8" and "i16", "mse" for the 4 bits of "i4". Vectors that are not quantised take only
        "auto". Vectors added later have the same.
    tags: whether each vector has a tag word of 64 bits. A Filter may ask for bits of it.
    keys: whether each vector has a key, a whole number from 0 to 2**64 - 1. A Filter may ask for a range of keys.
    multi: whether an id may have several vectors, such as the pictures of a product. An id that is added again then gets
        one more vector. A search gives k different ids, each with the score of the best of its vectors that it
        found: a larger ef, or a recall, misses the best less often. ``len`` and ``stats()["n"]`` count vectors.
    max_memory: bytes of main memory that the index takes at most; 0: no bound. Other blocks lie in files without
        names in the folder of work_path. An add gives the same index. Beyond the bound, MemoryError says what the call
        takes.
    work_path: a file that notes what linking at once has done. After an interruption, another Index with this work_path
        goes on there when it adds the same vectors. A save removes the file.

    Threads: an index may be used from several threads, with the GIL released. Searches never wait, and find what was
    added before they began. Calls that change the index, ``save``, ``check``, ``tune`` and ``sync`` go one at a time.
    ``close`` waits for all calls.

    A child process made by os.fork() or by multiprocessing's "fork" may search every index that its parent had. The
    child works with one thread if its parent used several. The child may change an index in memory; the change stays
    the child's own. The child may not change an index that another thread of its parent was changing at the fork, or a
    file that its parent opened to be changed, in place or with exclusive=True. Such a change raises shortlist.Error
    with status SL_EBUSY, and the message names the fork. Each child that writes to a file opens the file itself.
    """

    __slots__ = ("__weakref__", "_codes", "_core", "_dim", "_dtype", "_judged", "_metric", "_read_only", "_refine")

    def __init__(
        self,
        dim: int,
        metric: Metric = "cosine",
        codes: Codes | None = None,
        refine: Refine | None = None,
        m: int = 16,
        ef_build: int = 200,
        seed: int = 1,
        dtype: npt.DTypeLike = "f32",
        numa: str | None = None,
        clip: Clip = "auto",
        clip_share: float = 0.01,
        tags: bool = False,
        keys: bool = False,
        multi: bool = False,
        max_memory: int = 0,
        work_path: str | os.PathLike[str] | None = None,
    ) -> None:
        element = dtype_name(dtype)
        policy, node = numa_policy(numa)
        core = _core.Index.create(
            dim=count("dim", dim),
            metric=choice("metric", metric, _core.METRICS),
            dtype=_core.DTYPES[element],
            codes=choice("codes", codes or ("i16" if element == "i16" else "i8"), _core.CODES),
            refine=choice("refine", refine or "none", _core.REFINES),
            clip=choice("clip", clip, _core.CLIPS),
            clip_share=float(clip_share),
            m=count("m", m),
            ef_construction=count("ef_build", ef_build),
            seed=count("seed", seed, 2**64),
            numa=policy,
            numa_node=node,
            tags=bool(tags),
            keys=bool(keys),
            multi=bool(multi),
            max_memory=count("max_memory", max_memory),
            work_path=None if work_path is None else os.fsencode(work_path),
        )
        self._adopt(core, read_only=False)

    def _adopt(self, core: _core.Index, read_only: bool) -> None:
        self._core = core
        self._read_only = read_only
        stats = core.stats()
        self._dim: int = stats["dim"]
        self._metric: str = stats["metric"]
        self._dtype: str = stats["dtype"]
        self._codes: str = stats["codes"]
        self._judged = 0
        self._refine: str = stats["refine"]

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return self._dim

    @property
    def metric(self) -> str:
        """ "ip", "cosine" or "l2"."""
        return self._metric

    @property
    def dtype(self) -> str:
        """Element type of the vectors: "i8", "u8" or "i16", or "f32". "f32" stands for all floating-point types."""
        return self._dtype

    @property
    def codes(self) -> str:
        """Codes the graph is walked over: "i8", "i16", "f32" or "i4"."""
        return self._codes

    @property
    def refine(self) -> str:
        """Finer copy that re-ranks: "none", "f32", "bf16" or "i16"."""
        return self._refine

    @property
    def read_only(self) -> bool:
        """True if ``add`` and ``delete`` are refused."""
        return self._read_only

    @property
    def closed(self) -> bool:
        """True if ``close`` was called."""
        return self._core.closed

    def add(
        self,
        x: npt.ArrayLike,
        ids: npt.ArrayLike | None = None,
        threads: int = 0,
        progress: Progress = False,
        tags: npt.ArrayLike | None = None,
        keys: npt.ArrayLike | None = None,
        builder: Builder = "auto",
        replace: bool | Replace = False,
        old: npt.ArrayLike | None = None,
    ) -> None:
        """Adds the rows of x, an (n, dim) array.

        ids: n whole numbers from 0 to 2**64 - 2, none of them in the index, unless the index was made with multi=True,
            or replace is true. None goes on from the largest id that there has been.
        threads: 0 for all cores.
        progress: True shows a bar (tqdm if installed). A function gets (done, total), and cancels by returning True.
        tags, keys: n whole numbers from 0 to 2**64 - 1 each, for an index that has them. None gives zeros.
        builder: how vectors get their links. "insert": each searches the graph for its neighbours. "leaves":
            overlapping sets of near vectors compare all their pairs. It serves for 4,096 vectors or more, which are
            then joined with those that are there. "auto": "leaves" if it serves, for no fewer vectors than there
            are, with m of 16 to 24 and ef_construction of 200 or more.
        replace: True or "all" if an id that is in the index gets the new vectors, tags and keys in place of all its
            own. "one" if each new vector takes the place of one vector of its id, and the id's others stay. A search
            finds the old ones or the new ones, never none. Raises shortlist.Error with status SL_EUNSUPPORTED in
            persistent memory written directly.
        old: with replace="one", an (n, dim) array that says which vectors go: for each row the nearest one of the id,
            by l2. None takes x. Rows of one id replace different vectors; rows beyond the last are added.

        All or nothing: on an exception, a cancel or Ctrl-C the index is as it was. Raises ValueError if a vector has
        NaN or infinity, or is zero under cosine, or if an id is taken or comes twice.

        Warns once the index has 1,000 vectors or more, and again when it has doubled, if its codes do not tell near
        vectors apart under l2: vectors that lie far from the origin and close to one another.
        """
        self._refuse_where_read_only("add")
        replaces = choice("replace", "all" if replace is True else replace or "none", _REPLACES)
        array, old_rows, dtype = rows_and_old(x, old, self._dim, self._dtype)
        labels = None if ids is None else id_array(ids)
        if labels is not None and labels.shape != (len(array),):
            raise ValueError(f"ids have shape {labels.shape}, but x has {len(array)} rows")
        tag_words = None if tags is None else words("tags", tags, len(array), "rows in x")
        key_words = None if keys is None else words("keys", keys, len(array), "rows in x")
        with shown(progress, "adding", "vectors") as tell:
            self._core.add(
                array,
                _core.DTYPES[dtype],
                labels,
                tag_words,
                key_words,
                replaces,
                old_rows,
                choice("builder", builder, _BUILDERS),
                count("threads", threads),
                tell,
            )
        if self._metric == "l2" and len(self) >= max(2 * self._judged, _JUDGED_FROM):
            self._judged = len(self)
            self._warn_of_codes(count("threads", threads))

    def _warn_of_codes(self, threads: int) -> None:
        sampled, unresolved = self._core.resolution(threads)
        if unresolved and unresolved >= sampled / 10:
            warnings.warn(
                f"codes {self._codes} do not tell the nearest of {100 * unresolved / sampled:.0f} % of the vectors "
                'apart, and searches miss them; use codes="f32". Around one place it also helps to take the mean of all '
                "vectors from vectors and queries, which changes no distance",
                stacklevel=3,
            )

    def delete(self, ids: npt.ArrayLike) -> None:
        """Deletes all vectors of these ids: one, or (n,) of them. No later search returns them, and the ids may be
        added again.

        A deleted vector is marked. In memory, later adds and deletes take it out of the graph, and adds use its memory
        again; in a file that is written in place, after the next two syncs. ``stats()["deleted"]`` counts deleted vectors
        in the graph. Searches take longer the more vectors are deleted. Searches find k vectors as long as k
        are left.

        All or nothing. Raises KeyError if an id is not in the index, was deleted before, or comes twice. The error
        names the id.
        """
        self._refuse_where_read_only("delete")
        labels = one_or_many(ids)
        self._core.delete(labels, labels.size)

    def undelete(self, ids: npt.ArrayLike) -> None:
        """Brings back the vectors that the last ``delete`` of each of these ids took: one id, or (n,) of them. Their
        tags and keys come back as well.

        It serves for deletes by this Index, but not for those before the file was opened. Vectors that ``add`` replaced
        stay away.

        All or nothing. Raises KeyError if an id was not deleted, or its memory is used again. Raises ValueError if an id
        is in the index, or comes twice.
        """
        self._refuse_where_read_only("undelete")
        labels = one_or_many(ids)
        self._core.undelete(labels, labels.size)

    def compact(self, progress: Progress = False) -> None:
        """Gives the memory of deleted vectors back. Searches and other calls go on meanwhile.

        progress: True shows a bar. A function is called with (done, total) deleted vectors and cancels by returning
            True. The index then stays sound, and a later call goes on.

        Filters need a refresh afterwards, and iterators end. Waits for searches that began before it. A file that is
        written in place is synced. Its places are left to later adds, and empty blocks to the file system. Raises
        shortlist.Error for persistent memory that is written directly: ``rebuild`` makes it anew.
        """
        self._refuse_where_read_only("compact")
        with shown(progress, "compacting", "vectors") as tell:
            self._core.compact(tell)

    def set_tags(self, ids: npt.ArrayLike, tags: npt.ArrayLike) -> None:
        """Replaces the tag words of all vectors of these ids: one, or (n,) of them.

        tags: as many whole numbers from 0 to 2**64 - 1. If an id comes twice, its last one counts.

        All or nothing. Raises KeyError if an id is not in the index. Raises ValueError if the index was made without
        tags. In a file that is written in place, ``sync`` makes the tags durable. A Filter has the tags of when it was
        made or refreshed.
        """
        self._set_words("tags", ids, tags)

    def set_keys(self, ids: npt.ArrayLike, keys: npt.ArrayLike) -> None:
        """Replaces the keys of these ids, as ``set_tags`` does the tags."""
        self._set_words("keys", ids, keys)

    def get_tags(self, ids: npt.ArrayLike) -> npt.NDArray[np.uint64]:
        """The tag words of ids: (n,) of uint64 for n of them, () for one. An id with several vectors gives any one's.

        Raises KeyError if an id is not in the index. Raises ValueError if the index was made without tags.
        """
        return self._get_words("tags", ids)

    def get_keys(self, ids: npt.ArrayLike) -> npt.NDArray[np.uint64]:
        """The keys of ids, as ``get_tags`` gives the tags."""
        return self._get_words("keys", ids)

    def _set_words(self, what: str, ids: npt.ArrayLike, given: npt.ArrayLike) -> None:
        self._refuse_where_read_only(f"set {what}")
        labels = one_or_many(ids)
        array = words(what, given, labels.size, "ids")
        self._core.set_words(what == "keys", labels, labels.size, array)

    def _get_words(self, what: str, ids: npt.ArrayLike) -> npt.NDArray[np.uint64]:
        labels = one_or_many(ids)
        out = np.empty(labels.shape, np.uint64)
        self._core.get_words(what == "keys", labels, labels.size, out)
        return out

    def _refuse_where_read_only(self, call: str) -> None:
        if self._read_only:
            raise Error(
                "SL_EREADONLY",
                f"the index is read-only; open it with place='dram', read_only=False to {call}, or, if it was saved with "
                "room, with place='map', read_only=False",
            )

    def search(
        self,
        q: npt.ArrayLike,
        k: int = 10,
        ef: int = 64,
        threads: int = 1,
        rerank: int = 0,
        filter: AnyFilters = None,
        recall: float | None = None,
        stop: float = 0.0,
        probes: int = 0,
        groups: int = 0,
        group_size: int = 0,
        threshold: float | None = None,
        max_visits: int = 0,
    ) -> tuple[Ids, Scores]:
        """The k nearest of each query, best first: ids (uint64) and scores (float32).

        q: (nq, dim), giving (nq, k) arrays; or one query (dim,), giving (k,) arrays.
        ef: candidates kept while searching. A larger ef finds better and takes longer. ef is at least k.
        threads: threads over the queries; 0 for all cores.
        rerank: number of the ef candidates that the finer copy re-ranks; 0: the library chooses.
        filter: a Filter of this index, a boolean array over ids, the ids that may be found (of any whole type), or a
            function of an id. Ids beyond a boolean array's end may not be found. All but a Filter are looked up in each
            call, and a function is asked about each id: make a Filter of what serves several calls. A list of Filters
            has one per query, or None if a query has no filter.
        recall: the share of the true k nearest to find. Settings that ``tune`` stored for this recall replace ef,
            rerank, stop, probes and groups. Raises KeyError if ``tune`` stored none.
        stop: above 0, a search also ends when the next candidate is more than 1 + stop times as far as the k-th best so
            far. If k is above 16, the 16th best counts. Under "ip", the candidate's score must be
            lower than that best score by more than stop times the best score's magnitude. Easy queries then take less
            time at the same ef. Useful values are some 0.05 to 0.5. 0: the search ends by ef alone.
        probes: above 0, each query scans this many of the index's partitions, the nearest ones, instead of walking.
            Under "ip", the longest vectors of further partitions are scanned too. Scans are faster from some hundred
            queries in a call on, and for one query if walks go far. Fewer than k are found if fewer are scanned.
            Not with a filter.
        groups: above 0, the partitions are chosen from this many groups, the nearest ones, of some 16 partitions each.
            0: partitions are chosen from all. Groups are faster from a million vectors on.
        group_size: above 0, at most this many results have one key, in an index with keys. 1 gives the best vector of
            each of k keys. The search goes on until k results are found or all were compared. stop, probes and groups
            do not count. Raises ValueError if the index has no keys.
        threshold: a score. Results of a worse score are left out.
        max_visits: above 0, a query ends after so many evaluations, some hundred more at most, with what it has found by
            then. probes does not count then.

        A row with fewer than k results is filled with the id NO_ID and the score NaN.
        """
        if filter is None and threshold is None and not group_size and not max_visits:
            found = self._core.search_as_is(q, k, ef, threads, rerank, recall, stop, probes, groups)
            if found is not None:
                return found
        array, dtype, one = rows("q", q, self._dim, self._dtype, allow_one=True)
        wanted = count("k", k)
        if wanted > _core.MAX_EF:
            raise ValueError(f"k is {wanted}; it must be at most {_core.MAX_EF}")
        ids, scores = results(len(array), wanted)
        options = _options(ef, threads, rerank, recall, stop, probes, groups, threshold, max_visits)
        options.update(filter=handles_of(self._core, filter), group_size=count("group_size", group_size))
        self._core.search(array, _core.DTYPES[dtype], wanted, options, ids, scores)
        return (ids[0], scores[0]) if one else (ids, scores)

    def iterate(
        self,
        q: npt.ArrayLike,
        page: int = 10,
        ef: int = 64,
        rerank: int = 0,
        filter: AnyFilter = None,
        max_visits: int = 0,
    ) -> Iterator[tuple[Ids, Scores]]:
        """The results of one query, page by page, the nearest first: pairs of ids (uint64) and scores (float32).

        q: one query (dim,).
        page: results a page. The last page may have fewer.
        ef, rerank, filter: as in ``search``. A page is as good as a search for all results so far.
        max_visits: above 0, a page ends after so many evaluations, some hundred more at most, with what it has found by
            then, which may be nothing. The next page goes on.

        Each vector that may be found comes once, and in the end all have come. A page costs what is left of a search
        for all results so far. Within a page the best comes first. A vector that an earlier page has missed comes in a
        later one, and may be nearer than that page's last.

        With multi=True each id comes once, by its best vector.

        Vectors that are added, replaced or deleted meanwhile do not come. An add, a save or a tuning by this index may
        renumber the vectors: from some thousand vectors on, or after many deletes. The next page then raises
        ValueError: iterate anew.

            for ids, scores in ix.iterate(q):
                chosen += [i for i in ids if is_wanted(i)]
                if len(chosen) >= 20:
                    break
        """
        array, dtype, one = rows("q", q, self._dim, self._dtype, allow_one=True)
        if not one:
            raise ValueError(f"q has shape {np.shape(q)}; it must be one query ({self._dim},)")
        wanted = count("page", page)
        if not 0 < wanted <= _core.MAX_EF:
            raise ValueError(f"page is {wanted}; it must be 1 to {_core.MAX_EF}")
        core = _core.Iterator(
            self._core,
            array,
            _core.DTYPES[dtype],
            count("ef", ef),
            count("rerank", rerank),
            handle_of(self._core, filter),
            count("max_visits", max_visits),
        )
        return _pages(core, wanted)

    def similar(
        self,
        ids: npt.ArrayLike,
        k: int = 10,
        ef: int = 64,
        threads: int = 1,
        rerank: int = 0,
        filter: AnyFilters = None,
        recall: float | None = None,
        stop: float = 0.0,
        probes: int = 0,
        groups: int = 0,
        threshold: float | None = None,
        max_visits: int = 0,
    ) -> tuple[Ids, Scores]:
        """The k nearest of each of these stored vectors, without the vector itself: ids (uint64) and scores (float32).

        ids: n ids, giving (n, k) arrays; or one id, giving (k,) arrays.
        filter: as in ``search``. A list of Filters has one per id. A filter may refuse the vector itself or not.

        k is below 65,536. The other arguments are those of ``search``. Raises KeyError if an id is not in the index.
        Raises shortlist.Error with status SL_EUNSUPPORTED if the index was made with multi=True.
        """
        labels = one_or_many(ids)
        wanted = count("k", k)
        if wanted >= _core.MAX_EF:
            raise ValueError(f"k is {wanted}; it must be at most {_core.MAX_EF - 1}")
        found, scores = results(labels.size, wanted)
        options = _options(ef, threads, rerank, recall, stop, probes, groups, threshold, max_visits)
        options.update(filter=handles_of(self._core, filter))
        self._core.search_ids(labels, labels.size, wanted, options, found, scores)
        return (found, scores) if labels.ndim else (found[0], scores[0])

    def range_search(
        self,
        q: npt.ArrayLike,
        radius: float,
        exact: bool = False,
        filter: AnyFilter = None,
        threads: int = 1,
        ef: int = 128,
        slack: float = 0.015,
    ) -> tuple[npt.NDArray[np.int64], Ids, Scores]:
        """All vectors within a score of each query: lims, ids and scores.

        The results of query i are ids[lims[i]:lims[i + 1]], best first, and scores in the same places. lims has nq + 1
        numbers. With multi=True an id comes once for each of its vectors within the radius.

        q: (nq, dim), or one query (dim,).
        radius: the least score under "cosine" and "ip", the largest distance under "l2". Scores are those of
            ``search``.
        exact: True compares with all vectors. False walks, and may miss a few.
        filter: a Filter of this index, a boolean array over the ids, the ids that may be found, or a function of an id.
        threads: threads over the queries; 0 for all cores.
        ef: candidates kept on the way to the query's neighbourhood.
        slack: the walk goes on from vectors up to 1 + slack times as far as the radius. More slack misses less and
            takes longer. Under "ip": from a score less by up to slack times the radius's magnitude.
        """
        array, dtype, _ = rows("q", q, self._dim, self._dtype, allow_one=True)
        counts, ids, scores = self._core.range(
            array,
            _core.DTYPES[dtype],
            float(radius),
            bool(exact),
            count("ef", ef),
            amount("slack", slack),
            count("threads", threads),
            handle_of(self._core, filter),
        )
        lims = np.zeros(len(array) + 1, np.int64)
        np.cumsum(np.frombuffer(counts, np.uint64), out=lims[1:], dtype=np.int64)
        return lims, np.frombuffer(ids, np.uint64).copy(), np.frombuffer(scores, np.float32).copy()

    def tune(
        self,
        q: npt.ArrayLike,
        k: int = 10,
        truth: npt.ArrayLike | None = None,
        targets: npt.ArrayLike | None = None,
        max_ef: int = 0,
        threads: int = 0,
        progress: Progress = False,
    ) -> TuneReport:
        """Finds and stores the cheapest settings that reach each of the recalls `targets` on the queries q.

        ``search(recall=...)`` uses the stored settings. They replace the settings stored before for this k, and are
        saved with the index.

        q: (nq, dim), like the queries to come and some thousand of them. With few queries, others meet another recall;
            ``queries_needed`` says how many suffice.
        truth: (nq, k) or wider, the ids of the true nearest of each query, best first. None compares every query with
            every vector as the index holds it. Without a finer copy, the index holds vectors as their codes kept them.
        targets: recalls; None for ten from 0.8 to 0.995.
        max_ef: the deepest search to try; 0 for 16384.

        A target out of reach is no error; its setting's ``limit`` says the reason. An index opened with place="map" can
        be tuned, and saved over its own file. Raises KeyError if truth names an id that is not in the index. Raises
        ValueError if searches find no more of the truth than by chance; row numbers that are ids too can cause that.
        """
        array, dtype, _ = rows("q", q, self._dim, self._dtype)
        wanted = count("k", k)
        ids = None
        if truth is not None:
            labels = id_array(truth)
            if labels.ndim != 2 or labels.shape[0] != len(array) or labels.shape[1] < wanted:
                raise ValueError(f"truth has shape {labels.shape}; it must have {len(array)} rows of k ({wanted}) ids")
            ids = np.ascontiguousarray(labels[:, :wanted])
        goals = None
        if targets is not None:
            goals = np.array(targets, np.float64, order="C")
            if goals.ndim != 1:
                raise ValueError(f"targets have shape {goals.shape}; they must be a list of recalls")
        with shown(progress, "tuning", "steps") as tell:
            report = self._core.tune(
                array,
                _core.DTYPES[dtype],
                wanted,
                ids,
                goals,
                0 if goals is None else len(goals),
                count("max_ef", max_ef),
                count("threads", threads),
                tell,
            )
        first = report["first"]
        return TuneReport(
            self.tuned()[first : first + report["targets"]], report["queries_needed"], report["passes"]
        )

    def tuned(self) -> list[Tuned]:
        """The settings that the index stores, by rising k, those of one k by rising target."""
        return [Tuned(**one) for one in self._core.tuned()]

    def get(self, ids: npt.ArrayLike) -> npt.NDArray[Any]:
        """The vectors of ids: (n, dim) for n of them, (dim,) for one.

        The array has the index's own type if that is an integer, else float32. Vectors are exact for integer types,
        codes "f32" and refine "f32"; otherwise they are the best reconstruction held. Raises KeyError if an id is not
        in the index. Raises shortlist.Error with status SL_EUNSUPPORTED if an id has several vectors: ``get_all`` gives
        them.
        """
        labels = one_or_many(ids)
        out = np.empty((labels.size, self._dim), INTEGER.get(self._dtype, np.float32))
        dtype = self._dtype if self._dtype in INTEGER else "f32"
        self._core.get(labels, labels.size, _core.DTYPES[dtype], out)
        return out.reshape((*labels.shape, self._dim))

    def get_all(self, id: int) -> npt.NDArray[Any]:
        """All vectors of one id: (n, dim), in no order, as ``get`` gives them. Raises KeyError if the id is not in the
        index.
        """
        label = one_or_many(id)
        if label.ndim:
            raise ValueError(f"id has shape {label.shape}; it must be one id")
        dtype = self._dtype if self._dtype in INTEGER else "f32"
        found = np.frombuffer(self._core.get_all(int(label), _core.DTYPES[dtype]), INTEGER.get(self._dtype, np.float32))
        return found.reshape((-1, self._dim)).copy()

    def ids(self) -> Ids:
        """The ids of all vectors, deleted ones left out, each id once: (n,) of uint64.

        The ids are in the order in which the vectors lie. ``add``, ``save`` and ``tune`` may change that order.
        """
        # Another process may add to the file meanwhile.
        room = len(self)
        while True:
            out = np.empty(room, np.uint64)
            found = self._core.list(out, room)
            if found <= room:
                return out[:found]
            room = found

    def __contains__(self, id: object) -> bool:
        """Returns True if a vector has the id and is not deleted. Raises TypeError if id is no whole number."""
        number = operator.index(id)  # type: ignore[arg-type]
        return 0 <= number < NO_ID and self._core.contains(number)

    def save(self, path: StrPath, progress: Progress = False, room: int = 0, layout: Layout = "arrays") -> None:
        """Writes the index to path. Afterwards path holds the whole index; on an exception it holds its old content.

        room: above 0, the file has room for this many vectors in all, and can be changed in place. Open it with
            place="map", read_only=False; other processes may have it open meanwhile. Unused room takes no space where
            the file system knows holes.
        layout: place of codes, links and ids in the file. "arrays": each in an array of its own; this is the smallest,
            and serves best in memory. "records": those of a vector side by side in a record of a multiple of 256 bytes.
            Records suit persistent memory and other media that are slower and read in blocks.

        shortlist.Error with status SL_EBUSY: path is the file that the index was opened from, and another has replaced
        or changed it since. Open the file again and make the change anew, or open it with exclusive=True from the
        start. SL_EBUSY too: another writes path in place, or has claimed path by exclusive=True. SL_ECORRUPT: the file
        that the index is mapped from is damaged.
        """
        way = choice("layout", layout, _core.LAYOUTS)
        with shown(progress, "saving", "B") as tell:
            self._core.save(os.fsencode(path), count("room", room), way, tell)

    def plan(
        self, n: int, threads: int = 0, builder: Builder = "auto", room: int = 0, layout: Layout = "arrays"
    ) -> BuildPlan:
        """Tells what one ``add`` of n vectors to a new index of these parameters, and one ``save``, will take.

        Nothing is built. The call takes time in proportion to n. The plan leaves out max_memory, ids of your own, and
        the array of vectors.
        threads, builder: as they will be given to ``add``; room, layout: as they will be given to ``save``.

        Raises ValueError for an index that was opened or merged.
        """
        told = self._core.plan(
            count("n", n),
            choice("builder", builder, _BUILDERS),
            count("threads", threads),
            count("room", room),
            choice("layout", layout, _core.LAYOUTS),
        )
        return BuildPlan(**{**told, "builder": list(_BUILDERS)[told["builder"]]})

    def sync(self) -> None:
        """Makes changes durable in an index opened with place="map" or "pmem", read_only=False.

        All earlier changes are durable once this returns. Other processes that have the file open find the changes from
        their next search on. Changes not synced when the index is closed, or the process ends, are lost.

        shortlist.Error with status SL_EBUSY: the file was renamed, removed or replaced since it was opened. SL_EBUSY
        too: this is a child process whose parent opened the index. After any failure but want of space, open the file
        anew.
        """
        self._core.sync()

    def check(
        self,
        sample: int = 200,
        k: int = 10,
        ef: int = 200,
        threads: int = 0,
        progress: Progress = False,
        scrub: bool = False,
    ) -> CheckReport:
        """Verifies the whole index: its file's checksums, the graph's invariants, and that every vector can be reached.

        sample: number of vectors to search for, measuring recall@k at ef; 0 skips that.
        scrub: for a mapped file that is written in place, also hold each vector's record to a checksum of its own.

        Raises shortlist.Error if the index is damaged. The error's ``report`` says what was found.
        """
        with shown(progress, "checking", "vectors") as tell:
            found = self._core.check(
                count("sample", sample),
                count("k", k),
                count("ef", ef),
                count("threads", threads),
                bool(scrub),
                tell,
            )
        report: CheckReport = checked(found, CheckReport)
        return report

    def recall(
        self,
        sample: int = 200,
        k: int = 10,
        ef: int = 64,
        seconds: float = 0,
        seed: int = 0,
        progress: Progress = False,
    ) -> RecallReport:
        """Measures what searches for stored vectors find, while other threads search and change the index.

        sample: number of vectors drawn. Each is compared with all vectors, which takes one pass over the index.
        seconds: draws no more after this time; 0 sets no limit.
        seed: equal seeds draw equal vectors of an index that did not change.
        """
        with shown(progress, "measuring recall", "vectors") as tell:
            found = self._core.recall(
                count("sample", sample), count("k", k), count("ef", ef), float(seconds), count("seed", seed, 2**64), tell
            )
        return RecallReport(**found)

    def stats(self) -> IndexStats:
        """Sizes, settings and the error of the codes. Counts deleted, reusable and in_repair vectors, and lists running
        calls (holders)."""
        return self._core.stats()

    def numa(self) -> NumaPages:
        """Memory nodes of the machine that the index lies on, as the system reports."""
        return self._core.numa()

    def close(self) -> None:
        """Frees the index, once calls at work in other threads are done; later calls raise ValueError.

        Changes of a file that were not synced are lost. The file stays open, and locked, while a Filter, an iterator or
        a recommender of this index lives.
        """
        self._core.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Number of vectors, deleted ones left out. After ``close``: the number then."""
        return self._core.size

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self)} vectors"
        refine = "" if self._refine == "none" else f", refine={self._refine!r}"
        return (
            f"<shortlist.Index dim={self._dim}, metric={self._metric!r}, dtype={self._dtype!r}, "
            f"codes={self._codes!r}{refine}: {state}>"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a shortlist.Index cannot be copied or pickled; save it to a file and open that")


def open(
    path: StrPath,
    place: Place = "map",
    read_only: bool | None = None,
    numa: str | None = None,
    tier: Tier = "auto",
    threads: int = 0,
    exclusive: bool = False,
    wait: float = 0.0,
) -> Index:
    """Opens a saved index.

    place: "map" maps the file: opening takes milliseconds whatever the size, and processes share the memory. "pmem"
        does the same for a file that may lie in persistent memory. "dram" verifies the file and copies it into memory;
        the copy may be added to.
    read_only: None is True for "map" and "pmem" and False for "dram". False with "map" or "pmem" changes the file in
        place; it must be saved with room. ``sync`` makes the changes durable. One process at a time may change a file.
    numa: memory nodes that the index lies on: "interleave", "bind:N" for node N, or "local"; as in Index. A mapped file
        is then read ahead and its pages are moved, except pages that other processes have mapped too.
    tier: whether parts of a mapped file are also copied into memory, in the background, while searches read the file.
        The parts are those that every step of a search reads: the upper layers and the 4-bit rows of codes "i4". "auto"
        copies if the file lies in persistent memory, "none" never, "dram" always. Raises shortlist.Error with status
        SL_EUNSUPPORTED for "dram" and a file saved with room.
    threads: threads that copy a file into memory (place "dram"); 0 for all cores.
    exclusive: True claims the file for a change that is saved over it: open, add or tune, save, close. The claim lasts
        until the index is closed and no recommender uses it. Nobody else changes or replaces the file meanwhile; others
        may open it to read. A save over the file keeps the claim. Raises ValueError together with place "map" or "pmem"
        and read_only=False: a file changed in place is claimed anyway.
    wait: seconds to wait if another process writes or has claimed the file; 0 fails at once. Ctrl-C ends the wait.

    Raises FileNotFoundError or another OSError if the file cannot be read. Raises shortlist.Error if the file is not a
    sound index. Raises shortlist.Error with status SL_EBUSY if another process still writes or claims the file after
    the wait.
    """
    where = choice("place", place, _core.PLACES)
    writable = place != "dram" and read_only is False
    policy, node = numa_policy(numa)
    copied, many = choice("tier", tier, _core.TIERS), count("threads", threads)
    patience = amount("wait", wait)
    try:
        core = _core.Index.open(
            os.fsencode(path), where, writable, policy, node, copied, many, bool(exclusive), patience
        )
    except (OSError, KeyError) as error:
        if not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, str(error.args[0]), os.fsdecode(path)) from None
        raise
    index = Index.__new__(Index)
    index._adopt(core, read_only=place != "dram" if read_only is None else read_only)
    return index


def merge(
    indexes: Iterable[Index],
    clash: Clash = "refuse",
    m: int = 0,
    ef_build: int = 0,
    builder: Builder = "auto",
    threads: int = 0,
    progress: Progress = False,
) -> Index:
    """Makes a new index in memory of all vectors of one or more indexes, which stay as they are.

    The indexes have one metric, dimension, type of vectors, codes and refinement, and tags, keys and multi all or none.
    Codes, refinements, ids, tags and keys are copied exactly. Deleted vectors are left out. Settings that ``tune``
    stored are not taken over. From one index, this makes a compact one with new links::

        fresh = shortlist.merge([index])

    clash: what an id in several indexes does. "refuse" raises ValueError. "later" takes the vectors of the last
        index that has it. With multi=True an id keeps the vectors of all indexes, unless "later" is given.
    m, ef_build: of the new index; 0 takes those of the first.
    builder, threads, progress: as of ``Index.add``.

    Raises ValueError if the indexes differ, none is given or an id clashes. On an exception, a cancel or Ctrl-C no
    index is made.
    """
    cores = []
    for index in indexes:
        if not isinstance(index, Index):
            raise TypeError(f"indexes hold {type(index).__name__}; give objects of shortlist.Index")
        cores.append(index._core)
    with shown(progress, "merging", "vectors") as tell:
        core = _core.Index.merge(
            cores,
            count("m", m),
            count("ef_build", ef_build),
            choice("clash", clash, _CLASHES),
            choice("builder", builder, _BUILDERS),
            count("threads", threads),
            tell,
        )
    merged = Index.__new__(Index)
    merged._adopt(core, read_only=False)
    return merged


def import_hnswlib(
    path: StrPath,
    metric: Metric,
    dim: int = 0,
    codes: Codes = "i8",
    refine: Refine | None = None,
    clip: Clip = "auto",
    clip_share: float = 0.01,
    threads: int = 0,
    progress: Progress = False,
) -> Index:
    """Makes an index in memory of a file that hnswlib's ``save_index`` wrote.

    The graph is taken over as it is, with levels, links, labels and deleted marks; labels become ids. The vectors get
    codes of our own, so the index finds what hnswlib finds at the same ef. Nothing is linked anew, but vectors that no
    link reaches.

    metric: the space that the file was made with, which the file does not tell.
    dim: the dimension that the file must have; 0: any. It also tells a file of bytes (``L2SpaceI``) from one of floats.
    codes, clip, clip_share: as of ``Index``.
    refine: as of ``Index``, but None takes "bf16" for floats in codes "i8".
    threads, progress: as of ``Index.add``.

    Raises shortlist.Error for a file that is damaged, or is none of hnswlib's; the message says what was found. Raises
    FileNotFoundError if there is no such file.
    """
    return _imported(_HNSWLIB, path, metric, dim, codes, refine, clip, clip_share, threads, progress)


def import_faiss(
    path: StrPath,
    metric: Metric | None = None,
    dim: int = 0,
    codes: Codes = "i8",
    refine: Refine | None = None,
    clip: Clip = "auto",
    clip_share: float = 0.01,
    threads: int = 0,
    progress: Progress = False,
) -> Index:
    """Makes an index in memory of a file that Faiss's ``write_index`` wrote.

    The file holds an IndexHNSWFlat, IndexHNSWSQ, IndexFlat or IndexScalarQuantizer, also inside an IndexIDMap. A graph
    is taken over as ``import_hnswlib`` does. Vectors without a graph are linked as ``Index.add`` does. Without an id map
    vectors are numbered from 0.

    metric: None takes the file's. "cosine" also reads inner products, of vectors of length 1.
    dim, codes, refine, clip, clip_share, threads, progress: as of ``import_hnswlib``.

    Raises shortlist.Error for a file that is damaged, or holds another index; the message says what was found. Raises
    FileNotFoundError if there is no such file.
    """
    return _imported(_FAISS, path, metric, dim, codes, refine, clip, clip_share, threads, progress)


def _imported(
    kind: int,
    path: StrPath,
    metric: Metric | None,
    dim: int,
    codes: Codes,
    refine: Refine | None,
    clip: Clip,
    clip_share: float,
    threads: int,
    progress: Progress,
) -> Index:
    with shown(progress, "importing", "vectors") as tell, missing_file(path):
        core = _core.Index.import_file(
            os.fsencode(path),
            kind,
            _METRIC_OF_FILE if metric is None else choice("metric", metric, _core.METRICS),
            count("dim", dim),
            choice("codes", codes, _core.CODES),
            _REFINE_AUTO if refine is None else choice("refine", refine, _core.REFINES),
            choice("clip", clip, _core.CLIPS),
            float(clip_share),
            count("threads", threads),
            tell,
        )
    index = Index.__new__(Index)
    index._adopt(core, read_only=False)
    return index


def rebuild(
    path: StrPath,
    output: StrPath | None = None,
    m: int = 0,
    ef_build: int = 0,
    room: int = 0,
    builder: Builder = "auto",
    threads: int = 0,
    wait: float = 0.0,
    progress: Progress = False,
) -> RebuildReport:
    """Makes the index file at path anew: compact, with new links, without deleted vectors.

    The new file takes the place of the old one whole or not at all. Indexes that have the old file open go on with it;
    ``open`` the file again to see the new one. Vectors, ids, tags and keys are those of ``merge`` of the one index.
    Layout and room stay, and so does the next id. Settings that ``tune`` stored are not taken over.

    output: a file to write, if path is to stay as it is.
    m, ef_build: of the new index; 0 takes those of the old one.
    room: vectors that the file has room for, at least the old file's room; 0 takes that room.
    builder, threads, progress: as of ``Index.add``.
    wait: seconds to wait for another that changes the file. Close an index of this process that writes the file, or that
        was opened with exclusive=True.

    Raises shortlist.Error with status SL_EBUSY if another still changes the file after the wait. Raises
    FileNotFoundError if there is no such file. On an exception, a cancel or Ctrl-C the file is as it was.
    """
    with shown(progress, "rebuilding", "steps") as tell:
        try:
            made = _core.rebuild(
                os.fsencode(path),
                None if output is None else os.fsencode(output),
                count("m", m),
                count("ef_build", ef_build),
                count("room", room),
                choice("builder", builder, _BUILDERS),
                count("threads", threads),
                amount("wait", wait),
                tell,
            )
        except OSError as error:
            if not os.path.exists(path):
                raise FileNotFoundError(errno.ENOENT, str(error.args[0]), os.fsdecode(path)) from None
            raise
    return RebuildReport(**made)


def snapshot(path: StrPath, copy: StrPath, progress: Progress = False) -> None:
    """Copies the index file at path to copy. Afterwards copy holds the whole file; on an exception it holds its old
    content.

    This process or another may write the file in place meanwhile. The copy has all that was synced before the call, and
    stands on its own. Raises FileNotFoundError if there is no such file.
    """
    with shown(progress, "copying", "B") as tell:
        try:
            _core.snapshot(os.fsencode(path), os.fsencode(copy), tell)
        except OSError as error:
            if not os.path.exists(path):
                raise FileNotFoundError(errno.ENOENT, str(error.args[0]), os.fsdecode(path)) from None
            raise
