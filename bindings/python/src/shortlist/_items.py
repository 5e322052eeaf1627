"""The items' features, by id."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NoReturn

import numpy.typing as npt

from . import _core
from ._arrays import amount, id_array, one_or_many
from ._columns import Data, rows_of_update, source
from ._errors import checked
from ._paths import StrPath, missing_file
from ._progress import Progress, shown
from ._reports import ItemsCheckReport


class Items:
    """A table of items' features, by id.

    data: as in Ranker, with a column of ids (whole numbers, or texts of digits). A CSV file's columns are texts.
    id: name of the column of ids.
    delimiter: delimiter of a CSV file.

    Readers never wait: ``update`` and ``delete`` change a row as a whole. A reader meanwhile sees the old row or the
    new one.
    ValueError where an id is there twice or is none. KeyError where there is no such column.
    """

    __slots__ = ("__weakref__", "_core", "_id")

    def __init__(self, data: Data, id: str = "id", *, delimiter: str = ",", progress: Progress = False) -> None:
        rows = source(data, None, delimiter)
        with shown(progress, "reading", "rows") as tell:
            self._core = _core.Items.create(rows, id, tell)
        self._id = id

    @classmethod
    def open(cls, path: StrPath, id: str = "id", *, exclusive: bool = False, wait: float = 0.0) -> Items:
        """Maps a saved table: only the ids are read.

        id: name of the column of ids in the data given to ``update``.
        exclusive, wait: as in shortlist.open, for a table that is updated and saved over its file.

        FileNotFoundError or another OSError where the file cannot be read. shortlist.Error where the file is no sound
        table. shortlist.Error with status SL_EBUSY where another has claimed the file when the wait is over.
        """
        with missing_file(path):
            core = _core.Items.open(os.fsencode(path), id, bool(exclusive), amount("wait", wait))
        items = cls.__new__(cls)
        items._core, items._id = core, id
        return items

    def save(self, path: StrPath, progress: Progress = False) -> None:
        """Writes the table to path. Afterwards path holds the whole table; on an exception it holds its old content.

        shortlist.Error with status SL_ECORRUPT: the file that the table was opened from is damaged. SL_EBUSY: path is
        that file, and another has replaced it since. Open the file again, with exclusive=True, and update it anew.
        """
        with shown(progress, "saving", "B") as tell:
            self._core.save(os.fsencode(path), tell)

    def check(self, progress: Progress = False) -> ItemsCheckReport:
        """Verifies every byte of the file that the table was opened from.

        That is the header, sections against their checksums, and zeros between sections. Each row's id must be what its
        id column says. Opening verifies no values or texts; ``save`` does, and a Recommender with ``verify``.

        Raises shortlist.Error where the file is damaged. The error's ``report`` says what was found.
        """
        with shown(progress, "checking", "B") as tell:
            found = self._core.check(tell)
        report: ItemsCheckReport = checked(found, ItemsCheckReport)
        return report

    def update(self, data: Data, partial: bool = False) -> None:
        """Replaces the rows of the ids in data, in memory, and adds those that are new; all or nothing.

        partial: set only the columns that data has, and leave the others of these rows. Every id must be there.
            Otherwise columns that data lacks are missing values in the new rows.

        KeyError where the table lacks a column, or, with partial, an id. Call Recommender.update instead for a table
        that a recommender uses.
        """
        self._core.update(rows_of_update(data), bool(partial))

    def delete(self, ids: npt.ArrayLike) -> None:
        """Deletes these ids: one, or (n,) of them. Their rows are gone, and an update may add the ids again.

        No later answer of a Recommender has them, also after ``save`` and ``open``, although the index has their
        vectors. Delete the vectors from the index too: a table remembers as many deleted ids as it ever had items at
        one time, and at least 16,384. Call Recommender.delete instead for a table that a recommender uses.

        All or nothing. KeyError where an id is not in the table, was deleted before, or comes twice.
        """
        labels = one_or_many(ids)
        self._core.delete(labels, labels.size)

    def get(self, ids: npt.ArrayLike, columns: str | Sequence[str]) -> dict[str, list[str]]:
        """Values of n ids by column, as n texts such as "12", "0.5" or "a|b", a missing one as "". KeyError where there
        is no such id or column."""
        labels = id_array(ids).reshape(-1)
        names = [columns] if isinstance(columns, str) else columns
        return {name: self._core.texts(labels, labels.size, name) for name in names}

    def __len__(self) -> int:
        """Number of items."""
        return self._core.size

    def __repr__(self) -> str:
        return f"<shortlist.Items: {len(self)} rows>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a shortlist.Items cannot be copied or pickled; save it to a file and open that")
