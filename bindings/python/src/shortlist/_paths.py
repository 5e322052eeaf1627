"""Paths as Python has them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Union

StrPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


@contextmanager
def missing_file(path: StrPath) -> Iterator[None]:
    """Makes a failure to read a file that is not there a FileNotFoundError."""
    try:
        yield
    except (OSError, KeyError) as error:
        if not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, str(error.args[0]), os.fsdecode(path)) from None
        raise
