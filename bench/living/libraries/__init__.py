"""One file a library, NAME_living.py. Each has PACKAGE and class Living, which base.py describes."""

import importlib

NAMES = ("shortlist", "hnswlib", "usearch", "faiss", "diskann")
APART = ("diskann",)  # in an environment of its own; only its worker imports the library


def library(name):
    return importlib.import_module(f"libraries.{name}_living")
