"""One file a library, NAME_engine.py with _ for -. Each has PACKAGE, NATIVE, variants(data), build(data, settings, threads, folder), class Index.

variants gives Variants: a name, settings for build and Index, the Sweep of search settings, or why it is skipped.
Index(data, settings, folder) loads what build saved; see base.py for what it can do.
"""

import importlib
import sys

NAMES = ("shortlist", "hnswlib", "faiss", "usearch", "svs", "pyglass-portable", "vsag", "ngt", "scann-core", "rabitq")
APART = ("scann-core",)  # in environments of their own; only their builds and searches import the library


def engine(name):
    return importlib.import_module(f"engines.{name.replace('-', '_')}_engine")


def prefix(name, folder):
    """The environment of a library, in the folder of environments."""
    return str(folder.resolve() / f"{name}-venv") if name in APART else sys.prefix


def python(name, folder):
    """The Python that builds and searches a library."""
    return f"{prefix(name, folder)}/bin/python" if name in APART else sys.executable
