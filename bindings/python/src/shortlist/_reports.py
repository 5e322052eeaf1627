"""Reports of checks and samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class CheckReport:
    """Result of ``Index.check``.

    n: vectors, deleted ones left out.
    bad_links: links out of range, to the node itself, or twice in a list.
    bad_upper: broken records of the upper layers.
    unreachable: nodes that no path leads to.
    no_in_link: nodes that no node links to.
    bad_vectors: records whose scale or norm is not finite.
    duplicate_ids: ids that stand twice.
    min_degree, max_degree, mean_degree: links a node on layer 0.
    sampled_recall: recall@k of searches for a sample of the vectors against exact search over the same codes; NaN where
        skipped.
    sampled_lost: vectors of the sample of whose own k nearest less than half are found. Many mean badly linked
        regions, though paths lead there.
    resolution_sampled, unresolved: vectors of a second sample, and those of them whose nearest neighbours the codes do
        not tell apart, under l2. Searches miss such neighbours: use codes "f32", or take the mean of all vectors from
        vectors and queries.
    sections_checked: sections of the file whose checksum was verified; 0 for an index made in memory.
    deleted: deleted vectors.
    records_checked: records that ``scrub`` held to their checksums; 0 without ``scrub`` and for a file without records.
    bad_records: damaged records among those checked.
    bad_ids: ids in the file of the first 10,000 damaged records.
    pages_checked: pages of 4096 bytes, of a file saved with room, that were verified against a checksum each. The pages
        cover all of the file but holes. 0 for other files.
    bad_pages: damaged pages among those checked.
    unverified: whether a file with room has no checksums of pages in force. An older version made the file, or it was
        written directly in persistent memory. Only ``scrub`` can then verify the file, by its records.
    """

    n: int
    bad_links: int
    bad_upper: int
    unreachable: int
    no_in_link: int
    bad_vectors: int
    duplicate_ids: int
    min_degree: int
    max_degree: int
    mean_degree: float
    sampled_recall: float
    sampled_lost: int
    resolution_sampled: int
    unresolved: int
    sections_checked: int
    deleted: int
    records_checked: int
    bad_records: int
    bad_ids: list[int]
    pages_checked: int
    bad_pages: int
    unverified: bool


@dataclass(frozen=True)
class RecallReport:
    """Result of ``Index.recall``.

    sampled: vectors drawn.
    recall: share of their k nearest that searches found, by the codes; the vector itself does not count.
    standard_error: of recall.
    lost: vectors of whose k nearest a search found less than half.
    """

    sampled: int
    recall: float
    standard_error: float
    lost: int


@dataclass(frozen=True)
class ItemsCheckReport:
    """Result of ``Items.check`` on the file that the table was opened from; all 0 for a table in memory.

    rows, columns: of the file.
    sections_checked: sections that agree with their checksums.
    bytes_checked: bytes of the file that were verified; all of them in a sound file.
    bad_ids: rows whose id is not that of their id column.
    """

    rows: int
    columns: int
    sections_checked: int
    bytes_checked: int
    bad_ids: int


@dataclass(frozen=True)
class RankerCheckReport:
    """Result of ``Ranker.check`` on a file.

    features: features of the spec.
    parameters: all weights.
    sections_checked: sections that agree with their checksums.
    bytes_checked: bytes of the file that were verified; all of them in a sound file.
    checkpoint: whether the file also holds the state of a training.
    """

    features: int
    parameters: int
    sections_checked: int
    bytes_checked: int
    checkpoint: bool


Report = Union[CheckReport, ItemsCheckReport, RankerCheckReport, None]
