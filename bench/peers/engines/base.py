"""Code that the libraries' adapters share."""

import dataclasses
import pathlib

import numpy

from choose import Sweep
from sets import K


class Skip(Exception):
    """Why a variant cannot be built or searched here."""


@dataclasses.dataclass
class Variant:
    name: str
    settings: dict
    sweep: Sweep | None = None
    skip: str = ""


def skipped(name, why):
    return Variant(name, {}, None, why)


@dataclasses.dataclass
class Native:
    """The program of bench/peers/native/ that opens what build saved, without Python. An engine's NATIVE is one of
    these, or the words why there is none."""
    program: str
    file: str  # of the variant's folder; "": the folder
    values: callable  # (folder, params) -> the numbers that it takes for the settings of the sweep
    only: dict = dataclasses.field(default_factory=dict)  # {setting: its values in the variants that it can open}
    kind: str = ""  # the setting that it has to be told


def native_of(library, settings):
    """The engine's Native for a variant of these settings, or why there is none."""
    native = library.NATIVE
    if isinstance(native, str) or all(settings.get(name) in values for name, values in native.only.items()):
        return native
    opened = ", ".join(f"{name} {' or '.join(values)}" for name, values in native.only.items())
    return f"{native.program} opens only {opened}"


def param(name):
    """Gives the argument that most programs take: one setting of the sweep."""
    return lambda _, params: [params[name]]


class Index:
    """A loaded index. The defaults suit bindings whose call takes a matrix or a row and gives (ids, scores)."""

    native = False  # takes the queries as they are in the file, rather than float32 and of length one

    def set(self, params):
        raise NotImplementedError

    def batch(self, queries):
        """All queries by the binding's own call for a matrix."""
        raise NotImplementedError

    def one(self):
        """The binding's own call for a single query, with everything but the query bound."""
        raise NotImplementedError

    def rows(self, queries):
        """The queries in the form that one() takes, made before the clock starts."""
        return list(queries)

    def ids(self, answer):
        """The ids of an answer of batch, (n, K)."""
        return answer[0]

    def id_row(self, answer):
        """The ids of an answer of one()."""
        return numpy.asarray(answer[0]).reshape(-1)


class OneByOne(Index):
    """A binding without a call for a matrix: batch is a loop over its call for one."""

    def batch(self, queries):
        call = self.one()
        return [call(row) for row in self.rows(queries)]

    def ids(self, answer):
        padded = numpy.full((len(answer), K), -1, numpy.int64)
        for at, row in enumerate(answer):
            found = self.id_row(row)[:K]
            padded[at, :len(found)] = found
        return padded


def saved_bytes(folder):
    """Gives the bytes on disk: the index, and the vectors if its search needs them."""
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())
