"""Which exception a status of the library becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._index import CheckReport


class Error(Exception):
    """What the library refuses or fails at, where no exception of Python's own says it.

    ``status`` is the name of the library's status, such as ``"SL_ECORRUPT"``. ``report`` is what ``Index.check`` found,
    where it raised this.
    """

    def __init__(self, status: str, message: str, report: CheckReport | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.report = report

    def __reduce__(self) -> tuple[type[Error], tuple[str, str, CheckReport | None]]:
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
