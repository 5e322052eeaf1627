"""Prints the prefix that holds the package onednn-devel-cpu-gomp in this Python, or nothing."""

from importlib.metadata import PackageNotFoundError, files

CONFIG = "lib/cmake/dnnl/dnnl-config.cmake"

try:
    for file in files("onednn-devel-cpu-gomp") or []:
        if file.name == "dnnl-config.cmake":
            print(str(file.locate().resolve()).removesuffix(CONFIG))
except PackageNotFoundError:
    pass
