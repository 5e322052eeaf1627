"""The exception of each status of the library."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from ._index import CheckReport, StrPath
    from ._items import ItemsCheckReport
    from ._ranker import RankerCheckReport

    Report = Union[CheckReport, ItemsCheckReport, RankerCheckReport, None]


class Error(Exception):
    """A refusal or failure of the library for which Python has no exception of its own.

    ``status`` is the name of the library's status, such as ``"SL_ECORRUPT"``. ``report`` is what ``Index.check``,
    ``Items.check`` or ``Ranker.check`` found, where it raised this.
    """

    def __init__(self, status: str, message: str, report: Report = None) -> None:
        super().__init__(message)
        self.status = status
        self.report = report

    def __reduce__(self) -> tuple[type[Error], tuple[str, str, Report]]:
        return type(self), (self.status, str(self), self.report)


_BUILTIN: dict[str, type[Exception]] = {
    "SL_EINVAL": ValueError,
    "SL_EDIM": ValueError,
    "SL_ETYPE": ValueError,
    "SL_EVALUE": ValueError,
    "SL_ELIMIT": ValueError,
    "SL_EEXIST": ValueError,
    "SL_ENOMEM": MemoryError,
    "SL_EIO": OSError,
    "SL_ENOSPC": OSError,
    "SL_ENOTFOUND": KeyError,
}


def from_status(status: str, message: str) -> Exception:
    """The exception that stands for a failure; not raised."""
    builtin = _BUILTIN.get(status)
    return builtin(message) if builtin else Error(status, message)


def checked(found: dict[str, Any], report: type[Any]) -> Any:
    """The report of a check whose fields, status and message these are; raised with the message where it found
    damage."""
    status, message = found.pop("status"), found.pop("message")
    told = report(**found)
    if status != "SL_OK":
        raise Error(status, message, told)
    return told


@contextmanager
def missing_file(path: StrPath) -> Iterator[None]:
    """Makes a failure to read a file that is not there a FileNotFoundError."""
    try:
        yield
    except (OSError, KeyError) as error:
        if not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, str(error.args[0]), os.fsdecode(path)) from None
        raise
