"""The machine as the library sees it."""

from __future__ import annotations

from typing import TypedDict

from . import _core


class SystemInfo(TypedDict):
    """Result of ``cpu``.

    isa: the ISA tier of the kernels in use: the best available one that is not above the environment variable
        SHORTLIST_MAX_ISA.
    openmp, numa, pmem, onednn: whether this build was made with them.
    max_threads: threads of a call with threads=0.
    most_threads: most threads of a call, however many it asks for.
    """

    isa: str
    isa_available: list[str]
    cpus: int
    numa_nodes: int
    page_size: int
    huge_page_size: int
    huge_page_mode: str
    openmp: bool
    numa: bool
    pmem: bool
    onednn: bool
    max_threads: int
    most_threads: int


def cpu() -> SystemInfo:
    """The instruction sets, cores, NUMA nodes and pages of this machine, and what this build was made with."""
    return _core.system()
