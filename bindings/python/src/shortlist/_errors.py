"""The exception of each status of the library."""

from __future__ import annotations

from typing import Any

from ._reports import Report


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
