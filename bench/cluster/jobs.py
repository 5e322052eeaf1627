"""Starts programs on several ranks of this machine."""

import json
import os
import subprocess
import sys

# As tests/cluster sets them: ranks share the cores, and a container lacks the right for single-copy transfers.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1"}


def run(command, environment=None):
    """The lines of JSON that a program prints. A failure ends the run."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"bench cluster: this failed: {' '.join(map(str, command))}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def on_ranks(ranks, command, threads=1):
    """The lines of JSON of a program on several ranks, with this many threads each."""
    return run(["mpirun", "-np", ranks, *command], {**ENVIRONMENT, "OMP_NUM_THREADS": str(threads)})
