"""One file a library. Each has PACKAGE, NATIVE, variants(data), build(data, settings, threads, folder), class Index.

variants gives Variants: a name, settings for build and Index, the Sweep of search settings, or why it is skipped.
Index(data, settings, folder) loads what build saved; see base.py for what it can do.
"""

import importlib

NAMES = ("shortlist", "hnswlib", "faiss", "usearch", "svs", "glass", "vsag", "ngt", "scann", "rabitq")


def engine(name):
    return importlib.import_module(f"engines.{name}_engine")
