"""The top n items of each user of a table, by Spark: examples/recommend_table.py on many machines.

    spark-submit --master 'local[2,4]' examples/spark_recommend.py people.parquet top \
        --index films.sl --model films.slr --items films.sli

Every Python worker opens the three files by their paths, once, and keeps them. The driver ships paths and numbers
alone. All machines need the files under these paths, the packages shortlist, pandas and pyarrow, and one version of
Python.

Spark's own settings control the rest. Give them as --conf KEY=VALUE before the script:

    spark.executor.instances, spark.executor.cores    workers: a Python process a core
    spark.task.maxFailures                            tries of a task, 4 by default. In local mode the master says it:
                                                      local[2,4] has 2 workers and 4 tries, local[2] has one try
    spark.python.worker.reuse                         true by default. false opens the files anew for each task
    spark.executor.pyspark.memory                     memory of a worker, mapped index included
    spark.task.cpus                                   cores of a task: set it to what --threads says
    spark.ui.showConsoleProgress, spark.ui.enabled    progress, in the console and in the browser
    spark.driver.bindAddress=127.0.0.1                in local mode: listen to this machine alone

A worker that dies fails its task, and Spark repeats the task in a new worker. The committer of Spark's writer keeps the
rows of one try only. The program sets spark.sql.execution.arrow.maxRecordsPerBatch to --batch, the users of one call.
"""

import functools

import recommend_table
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import FloatType, IntegerType, LongType, StructField, StructType


def run(job, given):
    spark = SparkSession.builder.appName("recommend").getOrCreate()
    try:
        # Workers import the functions from this file.
        spark.sparkContext.addPyFile(recommend_table.__file__)
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", job.batch)
        try:
            users = spark.read.parquet(given.users)
        except AnalysisException as error:
            raise recommend_table.unreadable(given.users, error) from error
        users = users.select([f"`{name}`" for name in job.columns(users.columns)])
        if job.parts:
            users = users.repartition(job.parts)
        types = (users.schema[job.user].dataType, IntegerType(), LongType(), FloatType())
        rows = StructType(list(map(StructField, (job.user, *recommend_table.WRITTEN), types)))
        work = functools.partial(recommend_table.recommend_frames, job)
        users.mapInPandas(work, rows).write.mode("overwrite").parquet(given.out)
    finally:
        spark.stop()


if __name__ == "__main__":
    recommend_table.main(__doc__, run)
