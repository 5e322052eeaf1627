"""Every vector file format in and out, element conversion, and files that are not what they say."""

import math
import os
import struct
import subprocess
import unittest

from harness import MAKE_HDF5, TYPES, CommandTest, decode, encode, npy, packed

SMALL = [[1, 2, 3], [4, 5, 6], [100, 0, 127], [7, 8, 9]]


class RoundTrips(CommandTest):
    def test_every_format_to_every_other(self):
        """Small whole numbers fit every type, so all pairs of formats must carry them."""
        endings = list(TYPES) + [".npy"]
        for source in endings:
            self.vectors("in" + source, SMALL)
            for target in endings:
                with self.subTest(source=source, target=target):
                    self.run_ok("convert", "in" + source, "out" + target)
                    rows, kind = decode(self.path("out" + target))
                    self.assertEqual(rows, SMALL)
                    self.assertEqual(kind, TYPES.get(target, TYPES.get(source, "f32")))

    def test_bytes_are_the_format(self):
        for ending in list(TYPES) + [".npy"]:
            with self.subTest(ending=ending):
                self.vectors("in.npy", SMALL, TYPES.get(ending, "f32"))
                self.run_ok("convert", "in.npy", "out" + ending)
                self.assertEqual(self.read("out" + ending)[-8:], encode(SMALL, ending)[-8:])
                if ending != ".npy":
                    self.assertEqual(self.read("out" + ending), encode(SMALL, ending))

    def test_npy_types_orders_versions(self):
        for kind in ("f32", "f16", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"):
            for order in "<>":
                for fortran in (False, True):
                    for version in (1, 2, 3):
                        with self.subTest(kind=kind, order=order, fortran=fortran, version=version):
                            self.write("in.npy", npy(SMALL, kind, order, fortran, version))
                            self.run_ok("convert", "in.npy", "out.fbin")
                            self.assertEqual(decode(self.path("out.fbin"))[0], SMALL)

    def test_npy_of_one_dimension_is_a_column(self):
        self.write("in.npy", npy([[5], [6], [7]], "i64", shape="(3,)"))
        self.run_ok("convert", "in.npy", "out.ibin")
        self.assertEqual(decode(self.path("out.ibin"))[0], [[5], [6], [7]])

    def test_ids_of_64_bits_pass_unharmed(self):
        ids = [[2**53 + 1, 2**63 + 11], [0, 2**64 - 2]]
        self.write("in.npy", npy(ids, "u64"))
        self.run_ok("convert", "in.npy", "out.npy")
        self.assertEqual(decode(self.path("out.npy")), (ids, "u64"))

    def test_half_floats(self):
        self.vectors("in.fbin", [[0.1, 65504.0], [-2.0, 1e-7]])
        self.run_ok("convert", "in.fbin", "half.npy", "--type", "f16")
        rows, kind = decode(self.path("half.npy"))
        self.assertEqual(kind, "f16")
        for got, want in zip(rows[0] + rows[1], [0.1, 65504.0, -2.0, 1e-7]):
            self.assertEqual(got, struct.unpack("<e", struct.pack("<e", want))[0])
        self.run_ok("convert", "half.npy", "back.fbin")
        self.assertEqual(decode(self.path("back.fbin"))[0], rows)

    def test_ground_truth_with_scores_behind(self):
        truth = encode([[1, 2], [3, 4]], ".ibin") + packed([[0.5, 0.25], [0.5, 0.25]], "f32")
        self.write("truth.ibin", truth)
        self.run_ok("convert", "truth.ibin", "ids.ivecs")
        self.assertEqual(decode(self.path("ids.ivecs"))[0], [[1, 2], [3, 4]])

    def test_many_rows_cross_blocks(self):
        rows = [[i % 251] * 1024 for i in range(9000)]
        self.vectors("in.bvecs", rows)
        self.run_ok("convert", "in.bvecs", "out.u8bin")
        self.assertEqual(self.read("out.u8bin"), encode(rows, ".u8bin"))
        self.run_ok("convert", "out.u8bin", "back.bvecs")
        self.assertEqual(self.read("back.bvecs"), self.read("in.bvecs"))


class Conversions(CommandTest):
    def test_out_of_range_names_the_row(self):
        cases = [([[1], [256]], "f32", ".u8bin"), ([[1], [-1]], "i32", ".u8bin"), ([[1], [128]], "f32", ".i8bin"),
                 ([[1], [-129]], "i16", ".i8bin"), ([[1], [2**31]], "i64", ".ibin"),
                 ([[1], [math.nan]], "f32", ".i8bin"),
                 ([[1], [math.inf]], "f32", ".ibin"), ([[1], [1e39]], "f64", ".fbin"),
                 ([[1], [2**24 + 1]], "i32", ".fbin"),
                 ([[1], [2**64 - 1]], "u64", ".ibin"), ([[1], [2**64 - 1]], "u64", ".fbin")]
        for rows, kind, ending in cases:
            with self.subTest(rows=rows, kind=kind, ending=ending):
                self.vectors("in.npy", rows, kind)
                self.run_bad(1, "convert", "in.npy", "out" + ending, says=["in.npy, row 1", "does not fit"])

    def test_half_overflow_is_refused(self):
        self.vectors("in.fbin", [[1], [65520.0]])
        self.run_bad(1, "convert", "in.fbin", "out.npy", "--type", "f16", says=["row 1", "f16"])

    def test_fractions_need_round(self):
        self.vectors("in.fbin", [[1.0], [2.5], [-3.7]])
        self.run_bad(1, "convert", "in.fbin", "out.i8bin", says=["row 1", "2.5", "--round"])
        self.run_ok("convert", "in.fbin", "out.i8bin", "--round")
        self.assertEqual(decode(self.path("out.i8bin"))[0], [[1], [2], [-4]])
        self.vectors("in.fbin", [[1.0], [300.5]])
        self.run_bad(1, "convert", "in.fbin", "out.i8bin", "--round", says=["row 1", "300.5"])

    def test_type_against_ending(self):
        self.vectors("in.fbin", SMALL)
        self.run_bad(2, "convert", "in.fbin", "out.fbin", "--type", "u8", says=["--type u8", "out.fbin"])

    def test_json(self):
        self.vectors("in.fbin", SMALL)
        told = self.run_json("convert", "in.fbin", "out.npy", "--type", "i16")
        self.assertEqual(told, {"n": 4, "dim": 3, "input": "f32", "type": "i16", "output": "out.npy"})


class BadFiles(CommandTest):
    def refuse(self, name, data, *says):
        self.write(name, data)
        self.run_bad(1, "convert", name, "out.fbin", says=[name, *says])

    def test_truncated_at_every_byte(self):
        """No cut is taken for a smaller file, but for .?vecs where it falls between two rows."""
        for ending in list(TYPES) + [".npy"]:
            whole = encode(SMALL, ending)
            row = len(whole) // 4
            for cut in range(len(whole)):
                if ending.endswith("vecs") and cut and cut % row == 0:
                    continue
                with self.subTest(ending=ending, cut=cut):
                    self.refuse("in" + ending, whole[:cut])

    def test_row_of_the_cut_is_named(self):
        self.refuse("in.fbin", encode(SMALL, ".fbin")[:-5], "ends in row 3", "fetch or make it again")
        self.refuse("in.fvecs", encode(SMALL, ".fvecs")[:-5], "row 3", "fetch or make it again")

    def test_longer_than_told(self):
        for ending in (".fbin", ".u8bin", ".npy"):
            self.refuse("in" + ending, encode(SMALL, ending) + b"x", "follow")

    def test_counts_that_wrap(self):
        """Row counts times row sizes go beyond 2^64, or merely beyond any disk."""
        self.refuse("in.fbin", struct.pack("<II", 2**32 - 1, 2**32 - 1) + bytes(64), "cut short")
        self.refuse("in.npy", npy(SMALL, "f64", shape=f"({2**62}, 4)"), "cut short")
        self.refuse("in.npy", npy(SMALL, "f64", shape=f"({2**70}, 4)"))
        self.refuse("in.fvecs", struct.pack("<i", 2**31 - 1) + bytes(64), "row 0")
        self.refuse("in.fvecs", struct.pack("<i", -5) + bytes(64), "row 0", "-5")

    def test_empty(self):
        for ending in list(TYPES) + [".npy"]:
            self.refuse("in" + ending, b"", "empty")
        self.refuse("in.fbin", struct.pack("<II", 0, 3), "0 rows")
        self.refuse("in.fbin", struct.pack("<II", 3, 0), "0 elements")
        self.refuse("in.npy", npy([[]], "f32", shape="(0, 3)"), "0 rows")

    def test_rows_of_other_lengths(self):
        data = b"".join(struct.pack("<i3f", d, 1, 2, 3) for d in (3, 3, 4, 3))
        self.refuse("in.fvecs", data, "row 2", "4 elements")

    def test_npy_that_is_none(self):
        good = npy(SMALL, "f32")
        self.refuse("in.npy", b"\x00" + good[1:], "magic")
        self.refuse("in.npy", good[:6] + b"\x09" + good[7:], "version 9")
        self.refuse("in.npy", good.replace(b"'<f4'", b"'<c8'"), "c8")
        self.refuse("in.npy", good.replace(b"'shape'", b"'shave'"), "shape")
        self.refuse("in.npy", good.replace(b"'descr': '<f4'", b"'descr': [('a'"), "records")
        self.refuse("in.npy", npy(SMALL, "f32", shape="(2, 2, 3)"), "3 dimensions")
        self.refuse("in.npy", npy(SMALL, "f32", shape="()"), "0 dimensions")
        self.refuse("in.npy", npy(SMALL, "f32", shape="(4; 3)"), "shape")

    def test_no_such_file_folder_or_ending(self):
        self.run_bad(1, "convert", "missing.fbin", "out.fbin", says=["missing.fbin", "No such file"])
        os.mkdir(self.path("folder.fbin"))
        self.run_bad(1, "convert", "folder.fbin", "out.fbin", says=["folder.fbin", "not a regular file"])
        self.write("in.txt", b"1 2 3")
        self.run_bad(1, "convert", "in.txt", "out.fbin", says=["in.txt", ".fvecs"])
        self.vectors("in.fbin", SMALL)
        self.run_bad(1, "convert", "in.fbin", "out.txt", says=["out.txt", ".fbin"])
        self.run_bad(1, "convert", "in.fbin", "out.hdf5", says=["out.hdf5", "only read"])


@unittest.skipUnless(MAKE_HDF5, "this build reads no .hdf5")
class Hdf5(CommandTest):
    """A file as ann-benchmarks publishes them; make_hdf5.c says what is in it."""

    def setUp(self):
        super().setUp()
        subprocess.run([MAKE_HDF5, self.path("set.hdf5")], check=True, timeout=60)

    def test_datasets(self):
        self.run_ok("convert", "set.hdf5", "train.fbin")
        self.assertEqual(decode(self.path("train.fbin"))[0], [[i + j / 2 for j in range(4)] for i in range(50)])
        for name, rows in (("test", [[i + 0.25 + j / 2 for j in range(4)] for i in range(5)]),
                           ("doubles", [[i * 1.5, i * 2.5] for i in range(3)]),
                           ("group/inner/doubles", [[i * 1.5, i * 2.5] for i in range(3)])):
            self.run_ok("convert", "set.hdf5:" + name, "out.fbin")
            self.assertEqual(decode(self.path("out.fbin"))[0], rows)
        self.run_ok("convert", "set.hdf5:neighbors", "out.ibin")
        self.assertEqual(decode(self.path("out.ibin"))[0], [[i, i + 1] for i in range(5)])
        self.run_ok("convert", "set.hdf5:bytes", "out.u8bin")
        self.assertEqual(decode(self.path("out.u8bin"))[0], [[i, 255 - i] for i in range(3)])

    def test_whole_road(self):
        """Each role finds its dataset in the one file."""
        self.run_ok("build", "set.hdf5", "-o", "x.sl", "--metric", "l2", "--codes", "f32")
        told = self.run_json("eval", "x.sl", "set.hdf5", "set.hdf5", "-k", "2", "--ef", "20")
        self.assertEqual(told["points"][0]["recall"], 1.0)

    def test_bad(self):
        self.run_bad(1, "convert", "set.hdf5:none", "out.fbin", says=["set.hdf5:none", "no dataset none"])
        self.run_bad(1, "convert", "set.hdf5:cube", "out.fbin", says=["cube", "3 dimensions"])
        self.run_bad(1, "convert", "set.hdf5:text", "out.fbin", says=["text", "neither"])
        self.write("cut.hdf5", self.read("set.hdf5")[:300])
        self.run_bad(1, "convert", "cut.hdf5", "out.fbin", says=["cut.hdf5", "HDF5"])
        self.write("empty.h5", b"")
        self.run_bad(1, "convert", "empty.h5", "out.fbin", says=["empty.h5", "HDF5"])

    def make(self, distance, kind):
        subprocess.run([MAKE_HDF5, self.path("said.hdf5"), distance, kind], check=True, timeout=60)

    def test_sparse_sets_are_refused(self):
        """As kosarak: train has the elements of all sets, one behind the other."""
        self.run_ok("build", "set.hdf5", "-o", "x.sl", "--metric", "l2")
        for distance in ("jaccard", "euclidean"):
            self.make(distance, "sparse")
            for command in (("build", "said.hdf5", "-o", "y.sl", "--metric", "l2"), ("add", "x.sl", "said.hdf5"),
                            ("truth", "said.hdf5", "set.hdf5", "-k", 1, "--metric", "l2", "-o", "t.ibin"),
                            ("convert", "said.hdf5", "y.fbin")):
                self.run_bad(1, *command, says=["said.hdf5", "dataset train", "1 dimension", "sparse", distance])
            self.run_bad(1, "build", "said.hdf5:train", "-o", "y.sl", "--metric", "l2", says=["train", "1 dimension"])
            self.run_bad(1, "search", "x.sl", "said.hdf5", "-k", 1, "-o", "r.ibin", says=["test", "1 dimension"])
            self.run_ok("convert", "said.hdf5:train", "numbers.npy")

    def test_distances_that_no_metric_is(self):
        self.run_ok("build", "set.hdf5", "-o", "x.sl", "--metric", "l2")
        for distance in ("jaccard", "hamming", "Levenshtein"):
            self.make(distance, "dense")
            for metric in ("l2", "cosine", "ip"):
                self.run_bad(1, "build", "said.hdf5", "-o", "y.sl", "--metric", metric,
                             says=["said.hdf5", "distance is " + distance, "said.hdf5:train"])
            self.run_bad(1, "add", "x.sl", "said.hdf5", says=[distance])
            self.run_bad(1, "truth", "said.hdf5", "said.hdf5", "-k", 1, "--metric", "l2", "-o", "t.ibin",
                         says=[distance])
            self.run_ok("build", "said.hdf5:train", "-o", "y.sl", "--metric", "l2")

    def test_another_metric_than_the_files(self):
        for distance, own, other in (("angular", "cosine", "l2"), ("euclidean", "l2", "ip"), ("dot", "ip", "cosine")):
            self.make(distance, "dense")
            self.run_ok("build", "said.hdf5", "-o", "y.sl", "--metric", own)
            done = self.start("build", "said.hdf5", "-o", "y.sl", "--metric", other)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done.stderr)
            self.assertIn(f"warning: said.hdf5: says that its distance is {distance}, and the metric here is {other}",
                          done.stderr)


    def test_names_of_distances(self):
        """As published sets and libraries write them."""
        self.run_ok("build", "set.hdf5", "-o", "x.sl", "--metric", "l2")
        for own, names in (("cosine", ["Cosine_Similarity", "cosine-distance", "cos", "ANGULAR"]),
                           ("l2", ["squared_l2", "sqeuclidean", "L2-squared", "squared euclidean", "l2_sqr"]),
                           ("ip", ["dot_product", "dot", "DotProduct", "max_inner_product", "inner-product"])):
            for name in names:
                self.make(name, "dense")
                for metric in ("cosine", "l2", "ip"):
                    done = self.start("build", "said.hdf5", "-o", "y.sl", "--metric", metric)
                    self.assertEqual((done.returncode, "warning" in done.stderr), (0, metric != own), done.stderr)
        self.make("normalized", "dense")
        for metric in ("cosine", "l2", "ip"):
            self.run_ok("build", "said.hdf5", "-o", "y.sl", "--metric", metric)
        for name in ("_", "cosines", "l", "dot_", "l22"):
            self.make(name, "dense")
            if name != "dot_":
                self.run_bad(1, "build", "said.hdf5", "-o", "y.sl", "--metric", "l2", says=["distance is " + name])

    def test_queries_say_their_distance_too(self):
        self.run_ok("build", "set.hdf5", "-o", "x.sl", "--metric", "l2")
        self.write("said.hdf5", b"")
        commands = (("search", "x.sl", "said.hdf5", "-k", 1, "-o", "r.ibin"), ("tune", "x.sl", "said.hdf5", "-k", 1),
                    ("eval", "x.sl", "said.hdf5", "set.hdf5", "-k", 1, "--ef", 20),
                    ("truth", "set.hdf5", "said.hdf5", "-k", 1, "--metric", "l2", "-o", "t.ibin"))
        self.make("jaccard", "dense")
        for command in commands:
            self.run_bad(1, *command, says=["said.hdf5", "distance is jaccard", "said.hdf5:test"])
        self.run_ok("search", "x.sl", "said.hdf5:test", "-k", 1, "-o", "r.ibin")
        self.make("angular", "dense")
        for command in commands:
            done = self.start(*command)
            self.assertIn("warning: said.hdf5: says that its distance is angular", done.stderr)

    def test_attributes_are_shown_in_one_line(self):
        for name, shown in (("jac\ncard\x1b[2J", "jac?card?[2J"), ("\u00e9" * 200, "\u00e9" * 30 + "..."),
                            ("x" * 63, "x" * 63), ("x" * 64, "x" * 60 + "...")):
            self.make(name, "dense")
            self.run_bad(1, "build", "said.hdf5", "-o", "y.sl", "--metric", "l2",
                         says=[f"distance is {shown}, which is none"])
            self.make(name, "sparse")
            self.run_bad(1, "build", "said.hdf5", "-o", "y.sl", "--metric", "l2", says=[f"distance '{shown}'"])


class OneDimension(CommandTest):
    """Vectors are rows of two dimensions, ids of one or two."""

    def test_arrays_of_one_dimension(self):
        self.vectors("b.fbin", [[float(i), 1.0] for i in range(40)])
        self.write("flat.npy", npy([[float(i)] for i in range(40)], "f32", shape="(40,)"))
        self.write("ids.npy", npy([[7 * i] for i in range(40)], "i64", shape="(40,)"))
        self.run_ok("build", "b.fbin", "-o", "x.sl", "--metric", "l2", "--ids", "ids.npy")
        for command in (("build", "flat.npy", "-o", "y.sl", "--metric", "l2"), ("add", "x.sl", "flat.npy"),
                        ("truth", "flat.npy", "b.fbin", "-k", 1, "--metric", "l2", "-o", "t.ibin"),
                        ("truth", "b.fbin", "flat.npy", "-k", 1, "--metric", "l2", "-o", "t.ibin"),
                        ("search", "x.sl", "flat.npy", "-k", 1, "-o", "r.ibin")):
            self.run_bad(1, *command, says=["flat.npy", "one dimension, (40,)", "reshape"])
        self.run_ok("convert", "ids.npy", "ids.ibin")
        self.write("one.npy", npy([[float(i)] for i in range(40)], "f32"))
        self.run_ok("build", "one.npy", "-o", "y.sl", "--metric", "l2")


if __name__ == "__main__":
    unittest.main()
