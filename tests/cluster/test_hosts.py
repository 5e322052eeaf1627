"""Two hosts of its own, in network namespaces joined by a cable: a job over TCP, and a cable that is cut."""

import json
import os
import shutil
import subprocess
import time
import unittest

from jobs import MPI_COMMAND, MPIRUN, JobTest, processes_in
from ranking import CLICKS, RANKS, SPEC, click_rows, table

# The job ends by itself within this time after a host stops to answer.
BOUND = 30
# mpirun notices a host that is gone by the keepalive of its own connections: see docs/CLUSTER.md.
SETTINGS = {"oob_tcp_keepalive_time": 5, "oob_tcp_keepalive_intvl": 2, "oob_tcp_keepalive_probes": 3,
            "plm_rsh_no_tree_spawn": 1, "btl": "self,tcp"}
# As ssh would: runs a command on a host, which has a name of its own.
AGENT = """#!/bin/sh
host=$1
shift
exec ip netns exec {name}-"${{host##*.}}" unshare --uts sh -c 'hostname node"$0"; exec sh -c "$1"' "${{host##*.}}" "$*"
"""


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def can_make_hosts():
    """Whether this process may make namespaces, and mpirun is Open MPI's."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
        return False
    name = f"slprobe{os.getpid()}"
    made = run("ip", "netns", "add", name).returncode == 0
    run("ip", "netns", "del", name)
    return made and "OpenRTE" in run(MPIRUN[0], "--version").stdout


@unittest.skipUnless(RANKS and can_make_hosts(), "no ranker, no right to make network namespaces, or not Open MPI")
class HostsTest(JobTest):
    def setUp(self):
        super().setUp()
        self.name = f"sl{os.getpid()}"
        for host in ("1", "2"):
            self.addCleanup(run, "ip", "netns", "del", f"{self.name}-{host}")
            self.check("ip", "netns", "add", f"{self.name}-{host}")
        self.check("ip", "link", "add", "cable1", "netns", f"{self.name}-1", "type", "veth", "peer", "name", "cable2",
                   "netns", f"{self.name}-2")
        for host in ("1", "2"):
            inside = ["ip", "-n", f"{self.name}-{host}"]
            self.check(*inside, "addr", "add", f"10.77.0.{host}/24", "dev", f"cable{host}")
            self.check(*inside, "link", "set", f"cable{host}", "up")
            self.check(*inside, "link", "set", "lo", "up")
        self.write("agent", AGENT.format(name=self.name).encode())
        os.chmod(self.path("agent"), 0o755)
        self.write("clicks.csv", table(CLICKS, click_rows(3000, 1)))
        self.write("spec.json", json.dumps(SPEC).encode())

    def check(self, *command):
        done = run(*command)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")

    def over_hosts(self, *arguments):
        """A job with one rank on each host, started on the first one."""
        settings = {**SETTINGS, "plm_rsh_agent": self.path("agent"), "oob_tcp_if_include": "10.77.0.0/24",
                    "btl_tcp_if_include": "10.77.0.0/24"}
        options = [word for name, value in settings.items() for word in ("--mca", name, str(value))]
        job = [MPIRUN[0], *options, "-H", "10.77.0.1:1,10.77.0.2:1", "-np", "2", MPI_COMMAND, *arguments]
        return subprocess.Popen([self.path("agent"), "10.77.0.1", " ".join(job)], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_two_hosts_train_as_two_ranks_of_one(self):
        job = self.over_hosts("ranks", "--json")
        out, said = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, said)
        self.assertEqual([rank["host"] for rank in json.loads(out)["ranks"]], ["node1", "node2"])
        train = ["train", f"{self.folder}/spec.json", f"{self.folder}/clicks.csv", "--threads", "1", "-o"]
        job = self.over_hosts(*train, f"{self.folder}/hosts.slr")
        _, said = job.communicate(timeout=120)
        self.assertEqual(job.returncode, 0, said)
        self.job_ok(2, *train, "one.slr")
        self.assertEqual(self.read("hosts.slr"), self.read("one.slr"))

    def test_a_cut_cable_ends_the_job(self):
        spec = {**SPEC, "train": {**SPEC["train"], "epochs": 50000, "patience": 0}}
        self.write("spec.json", json.dumps(spec).encode())
        job = self.over_hosts("train", f"{self.folder}/spec.json", f"{self.folder}/clicks.csv", "--threads", "1", "-o",
                              f"{self.folder}/m.slr", "--checkpoint", f"{self.folder}/state.slr")
        self.addCleanup(job.kill)
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path("state.slr")):
            self.assertIsNone(job.poll(), "it ended by itself")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.check("ip", "-n", f"{self.name}-1", "link", "set", "cable1", "down")
        begin = time.monotonic()
        _, said = job.communicate(timeout=4 * BOUND)
        self.assertLess(time.monotonic() - begin, BOUND)
        self.assertNotEqual(job.returncode, 0)
        self.assertIn("10.77.0.2", said)
        self.assertNotIn("m.slr", os.listdir(self.folder))
        self.run_ok("check", "state.slr")
        while processes_in(self.folder):
            self.assertLess(time.monotonic() - begin, BOUND, "ranks go on")
            time.sleep(0.1)


if __name__ == "__main__":
    unittest.main()
