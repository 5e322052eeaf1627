"""The top n items of each user of a table, by one process. examples/spark_recommend.py and examples/ray_recommend.py
run the same functions on many machines.

    python examples/recommend_table.py people.parquet top.parquet --index films.sl --model films.slr --items films.sli

The table of users is Parquet, a file or a folder of files. It has a row a user: an id, the model's columns of the
user's side, and the user's vector (--vector). A column of item ids may stand for the vector (--vector-of). The user's
vector is then the mean of these items' vectors in the index.

The table written has the columns of the user's id, rank (1 is the best), item and score: n rows a user. It has fewer
for a user for whom fewer were found, and none for a user without a vector. The same user has the same rows in all three
programs.

A process opens the three files itself, once. The index is mapped read-only, so processes of a machine share its memory.
Each process has its own model and its own part computed ahead for each item. --item-part makes that part smaller.
"""

import argparse
import dataclasses
import functools
import os
import re
import socket
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

import shortlist

LARGEST_ID = 2**63 - 1  # Spark has no unsigned numbers.
WRITTEN = ("rank", "item", "score")  # Columns beside the user's id.


class JobError(Exception):
    """Stops a job. The message is one line for the person who started it."""


@dataclasses.dataclass(frozen=True)
class Job:
    """The work, as each process gets it: paths and numbers. A process opens the files itself.

    index, model, items: paths that every machine sees.
    user: column of users' ids.
    vector: column of users' vectors, lists of floats; or None.
    vector_of: column of lists of item ids, whose mean vector is the user's; or None.
    exclude: column of lists of item ids that the user must not get; or None.
    n, candidates, item_part, threads: as of shortlist.recommend.
    batch: users of one call.
    parts: parts that an engine cuts the table into; 0 leaves it to the engine.
    log: folder in which each process writes a line when it has opened the files; or None.
    """

    index: str
    model: str
    items: str
    user: str = "user_id"
    vector: "str | None" = "vector"
    vector_of: "str | None" = None
    exclude: "str | None" = None
    n: int = 10
    candidates: int = 500
    item_part: str = "layer"
    threads: int = 1
    batch: int = 1000
    parts: int = 0
    log: "str | None" = None

    def check_files(self):
        """Raises JobError if a file is missing here, on the machine that starts the job."""
        for what in ("index", "model", "items"):
            path = getattr(self, what)
            if not os.path.isfile(path):
                raise JobError(f"there is no file {path}; --{what} takes a path that every machine sees")

    def columns(self, there):
        """The columns to read of a table of users that has the columns `there`: those that the job names, and those
        that the model asks about. Raises JobError if one is missing."""
        if self.user in WRITTEN:
            raise JobError(f"the column of users' ids is named {self.user!r}, as a column of the result; rename it")
        named = [name for name in (self.user, self.vector, self.vector_of, self.exclude) if name is not None]
        try:
            asked = user_columns(shortlist.Ranker.open(self.model))
        except (OSError, shortlist.Error) as error:
            raise as_job_error(error) from error
        for name in (*named, *asked):
            if name not in there:
                why = "" if name in named else ", which the model asks about"
                raise JobError(f"the table of users has no column {name!r}{why}; it has {', '.join(there)}")
        return list(dict.fromkeys((*named, *asked)))


# ----------------------------------------------------------------------------------------------------------------------
# What a process does
# ----------------------------------------------------------------------------------------------------------------------

def unreadable(path, error):
    """The JobError for a table of users that cannot be read."""
    said = "there is no such file" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())
    return JobError(f"cannot read the table {path}: {said}")


def as_job_error(error):
    """An error of this process in one line, with the machine's name."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else error.args[0] if error.args else error
    return JobError(f"on {socket.gethostname()}: {' '.join(str(said).split())}")


def user_columns(ranker):
    """The columns that a model asks about users."""
    return [feature.get("column", feature["name"]) for feature in ranker.spec["features"]
            if feature.get("side", "user") == "user" and feature["type"] not in ("cross", "score")
            and feature.get("source") != "index"]


@functools.lru_cache(maxsize=1)
def opened(job):
    """The index and the recommender of this process, made at the first call and kept for all later ones."""
    try:
        index = shortlist.open(job.index, read_only=True)
        ranker, items = shortlist.Ranker.open(job.model), shortlist.Items.open(job.items)
        recommender = shortlist.Recommender(index, ranker, items, item_part=job.item_part, threads=job.threads)
    except (OSError, KeyError, ValueError, shortlist.Error) as error:
        raise as_job_error(error) from error
    if job.log:
        os.makedirs(job.log, exist_ok=True)
        with open(os.path.join(job.log, f"{socket.gethostname()}-{os.getpid()}"), "a", encoding="utf-8") as file:
            file.write(f"{time.time():.3f} opened {job.index} {job.model} {job.items}\n")
    return index, recommender


def lists(column):
    """The lists of a column as arrays, None and NaN as empty ones."""
    return [np.asarray(value) if np.ndim(value) else np.zeros(0, np.int64) for value in column]


def mean_vector(index, ids):
    """The mean of the vectors that the index has of these items; None if it has none."""
    there = [item for item in ids.tolist() if item in index]
    return index.get(there).mean(axis=0, dtype=np.float32) if there else None


def with_vectors(job, index, users):
    """The users that have a vector, and these vectors: (users, dim), float32."""
    if job.vector_of is not None:
        found = [mean_vector(index, ids) for ids in lists(users[job.vector_of])]
    else:
        found = [vector if np.ndim(vector) else None for vector in users[job.vector]]
    there = np.array([vector is not None for vector in found], bool)
    vectors = [vector for vector in found if vector is not None]
    wrong = next((row for row, vector in enumerate(vectors) if len(vector) != index.dim), None)
    if wrong is not None:
        user = users[job.user][there].iloc[wrong]
        raise JobError(f"user {user} has a vector of {len(vectors[wrong])} numbers; the index has {index.dim}")
    return users[there], np.array(vectors, np.float32).reshape(len(vectors), index.dim)


def as_frame(job, users, ids, scores):
    """Rows of the table written. users: m ids; ids, scores: (m, n), where NO_ID ends a row that has fewer."""
    found = ids != shortlist.NO_ID
    items = ids[found]
    if items.size and items.max() > LARGEST_ID:
        raise JobError(f"item id {items.max()} is larger than {LARGEST_ID}, the largest of a Parquet int64")
    row, place = np.nonzero(found)
    written = ((place + 1).astype(np.int32), items.astype(np.int64), scores[found].astype(np.float32))
    return pd.DataFrame({job.user: users.iloc[row].reset_index(drop=True), **dict(zip(WRITTEN, written))})


def recommend_frame(job, users):
    """A frame of users to a frame of their top n."""
    index, recommender = opened(job)
    users, vectors = with_vectors(job, index, users)
    if not len(users):
        return as_frame(job, users[job.user], np.zeros((0, job.n), np.uint64), np.zeros((0, job.n), np.float32))
    exclude = None if job.exclude is None else lists(users[job.exclude])
    features = {name: users[name] for name in user_columns(recommender.ranker) if name in users}
    try:
        found = recommender.recommend(vectors, features or None, n=job.n, candidates=job.candidates, exclude=exclude,
                                      threads=job.threads)
    except (KeyError, ValueError, shortlist.Error) as error:
        raise as_job_error(error) from error
    return as_frame(job, users[job.user], found.ids, found.scores)


def recommend_frames(job, frames):
    """The same for frame after frame, as they come."""
    for users in frames:
        yield recommend_frame(job, users)


# ----------------------------------------------------------------------------------------------------------------------
# The command line, the same for the three programs
# ----------------------------------------------------------------------------------------------------------------------

def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def arguments(description):
    """The parser: what the fields of Job are, and the two tables."""
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    add = parser.add_argument
    add("users", help="Parquet table of users, a file or a folder")
    add("out", help="Parquet table to write; it replaces the one that is there")
    for what, kind in (("index", "index"), ("model", "ranker model"), ("items", "item table")):
        add(f"--{what}", required=True, type=os.path.abspath, metavar="FILE", help=f"{kind}, which every machine sees")
    add("--user", default="user_id", metavar="COLUMN", help="users' ids (user_id)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--vector", default="vector", metavar="COLUMN", help="users' vectors, lists of floats (vector)")
    which.add_argument("--vector-of", metavar="COLUMN", help="lists of item ids; their mean vector is the user's")
    add("--exclude", metavar="COLUMN", help="lists of item ids that a user must not get")
    add("-n", type=positive, default=10, help="items a user (10)")
    add("--candidates", type=positive, default=500, help="items recalled and scored a user (500)")
    add("--item-part", default="layer", help="layer (default), layer-bf16, layer-i8 or codes: memory for each item")
    add("--threads", type=positive, default=1, help="threads of each process (1)")
    add("--batch", type=positive, default=1000, help="users of one call (1000)")
    add("--parts", type=positive, default=0, help="parts of the table that engines share out; default: as they read it")
    add("--log", type=os.path.abspath, metavar="FOLDER", help="each process notes there that it opened the files")
    return parser


def job_of(given):
    """The Job of a parsed command line."""
    values = {field.name: getattr(given, field.name) for field in dataclasses.fields(Job)}
    return Job(**values | ({"vector": None} if given.vector_of else {}))


def reason(error):
    """The line of the JobError in what an engine reports of its workers; None if no JobError is in it."""
    found = re.findall(r"JobError: (.*)", f"{type(error).__name__}: {error}")
    return found[-1].strip() if found else None


def main(description, run, parser=None):
    """Runs a program: run(job, given) does the work. A job that cannot be done ends with one line and status 1."""
    given = (parser or arguments(description)).parse_args()
    job = job_of(given)
    try:
        job.check_files()
        run(job, given)
    except Exception as error:  # An engine wraps the error of a worker in a class of its own.
        said = reason(error)
        if said is None:
            raise
        sys.exit(f"{os.path.basename(sys.argv[0])}: {said}")


# ----------------------------------------------------------------------------------------------------------------------
# One process
# ----------------------------------------------------------------------------------------------------------------------

def run_here(job, given):
    """Reads, recommends and writes batch by batch. The table appears under its name when it is whole."""
    try:
        table = pyarrow.dataset.dataset(given.users, format="parquet")
    except (OSError, pa.ArrowInvalid) as error:
        raise unreadable(given.users, error) from error
    columns = job.columns(table.schema.names)
    user = table.schema.field(job.user).type
    schema = pa.schema(list(zip((job.user, *WRITTEN), (user, pa.int32(), pa.int64(), pa.float32()))))
    begin, users, part = time.perf_counter(), 0, f"{given.out}.part"
    with pyarrow.parquet.ParquetWriter(part, schema) as writer:
        for batch in table.to_batches(columns, batch_size=job.batch):
            found = recommend_frame(job, batch.to_pandas())
            writer.write_table(pa.Table.from_pandas(found, schema, preserve_index=False))
            users += batch.num_rows
    os.replace(part, given.out)
    seconds = time.perf_counter() - begin
    print(f"{users} users in {seconds:.2f} s, {users / seconds:.0f} a second")


if __name__ == "__main__":
    main(__doc__, run_here)
