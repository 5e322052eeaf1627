"""Base vectors, queries, an index and its truth, for the tests of the command."""

from harness import CommandTest, clustered

N, DIM, QUERIES = 600, 12, 40
BASE = clustered(N, DIM, 1)
ASKED = clustered(QUERIES, DIM, 2)


class Indexed(CommandTest):
    def setUp(self):
        super().setUp()
        self.vectors("base.fbin", BASE)
        self.vectors("queries.fbin", ASKED)

    def build(self, *options, base="base.fbin", metric="cosine"):
        return self.run_json("build", base, "-o", "x.sl", "--metric", metric, *options)

    def truth(self, k=20, metric="cosine"):
        self.run_ok("truth", "base.fbin", "queries.fbin", "-k", k, "--metric", metric, "-o", "truth.ibin")
