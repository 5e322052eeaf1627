"""An index that changes, as the runbooks ask for it. All calls take one thread unless told otherwise."""

import dataclasses

import numpy

K = 10


@dataclasses.dataclass
class Shape:
    """The needs of an index. metric: that of the set. m: links a node of HNSW's upper layers, half of those of layer 0.
    room: the most vectors that live at once. sample: rows to train with, for libraries that must."""
    dim: int
    metric: str
    m: int
    room: int
    sample: numpy.ndarray = None

    @property
    def similarity(self):
        """Under cosine all libraries get rows of length one."""
        return "l2" if self.metric == "l2" else "ip"


class Living:
    depth = "ef"  # the setting of a search
    bytes_are = ""  # what bytes() counts
    deletes_are = ""  # what the library does with a deleted vector
    replaces_are = "delete and add"
    least = 1  # of the setting

    def add(self, ids, rows, threads=1):
        raise NotImplementedError

    def delete(self, ids):
        raise NotImplementedError

    def replace(self, ids, rows):
        """New vectors for ids that are there."""
        self.delete(ids)
        self.add(ids, rows)

    def tidy(self):
        """The upkeep that the library's documentation asks for after deletes; it does what is due."""

    def set(self, depth):
        raise NotImplementedError

    def rows(self, queries):
        """The queries in the form that one() takes."""
        return list(queries)

    def one(self):
        """The binding's own call for a single query, with everything but the query bound."""
        raise NotImplementedError

    def ids(self, answer):
        """The ids of an answer of one()."""
        return numpy.asarray(answer[0]).reshape(-1)

    def bytes(self):
        """The library's own count; None: it has none."""
        return None

    def unreachable(self):
        """Live vectors that no path leads to; None: the library cannot tell."""
        return None

    def settings(self):
        """The parameters of the index, for the record."""
        raise NotImplementedError
