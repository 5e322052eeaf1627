"""The top n items of each user of a table, by Ray Data: examples/recommend_table.py on many machines.

    python examples/ray_recommend.py people.parquet top --workers 2 --index films.sl --model films.slr --items films.sli

Every worker is an actor in a process of its own. It opens the three files by their paths when it starts, and keeps
them. The driver ships paths and numbers alone. All machines need the files under these paths, and the package shortlist.

The program joins the cluster that RAY_ADDRESS names, as under `ray job submit`. Without that variable it starts Ray on
this machine, with a CPU for each worker's thread and one to read and write. Ray then listens to this machine alone.

Ray's own settings control the rest:

    --workers N                        actors; each takes as many CPUs as --threads says
    DataContext.enable_progress_bars   progress, True by default
    max_restarts, max_task_retries     of map_batches. A worker that dies is started again, and its batches are
                                       repeated. Ray Data's default is -1: without bound
    DataContext.max_consecutive_actor_init_deaths
                                       workers in a row that may die while they open the files

A writer that is repeated writes the same file again. If the job fails, the folder may hold a part of the table.
"""

import os

# Without a cluster, Ray listens to this machine alone, whatever the variable's name says. Both are read at the import.
if "RAY_ADDRESS" not in os.environ:
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
import recommend_table


class Recommend:
    """A worker. Ray makes it once in a process, and gives it batch after batch."""

    def __init__(self, job):
        self.job = job
        recommend_table.opened(job)

    def __call__(self, users):
        return recommend_table.recommend_frame(self.job, users)


def start(job, workers):
    """Joins the cluster of RAY_ADDRESS, or starts Ray here. Workers import the functions from this program's folder."""
    environment = {"py_modules": [recommend_table]}
    if "RAY_ADDRESS" in os.environ:
        ray.init(runtime_env=environment)
    else:
        ray.init(address="local", num_cpus=workers * job.threads + 1, include_dashboard=False, runtime_env=environment)


def run(job, given):
    start(job, given.workers)
    try:
        try:
            users = ray.data.read_parquet(given.users)
        except OSError as error:
            raise recommend_table.unreadable(given.users, error) from error
        users = users.select_columns(job.columns(users.schema().names))
        if job.parts:
            users = users.repartition(job.parts)
        rows = users.map_batches(
            Recommend, fn_constructor_args=(job,), compute=ray.data.ActorPoolStrategy(size=given.workers),
            batch_size=job.batch, batch_format="pandas", num_cpus=job.threads,
        )
        rows.write_parquet(given.out, mode="overwrite")
    finally:
        ray.shutdown()


if __name__ == "__main__":
    parser = recommend_table.arguments(__doc__)
    parser.add_argument("--workers", type=recommend_table.positive, default=1, help="processes that recommend (1)")
    recommend_table.main(__doc__, run, parser)
