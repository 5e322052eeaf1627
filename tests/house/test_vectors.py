"""Scripts that make the sets of real vectors, at a size without a network or model: python -m unittest test_vectors"""

import io
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import gloss384
import sift128
import vectors

# Two synsets of one gloss, one with an example, one without any, and a line of the licence.
NOUNS = """  1 This software and database is being provided
00001740 03 n 01 entity 0 000 | that which is perceived
00001930 03 n 01 thing 0 000 | a separate whole; "a | in it"
00002137 03 n 01 again 0 000 | that which is perceived
00002452 03 n 01 none 0 000 |
"""


def read_rows(path: Path, dtype: str) -> np.ndarray:
    data = path.read_bytes()
    shape = np.frombuffer(data, "<u4", 2)
    return np.frombuffer(data, dtype, offset=8).reshape(shape)


class Queries(unittest.TestCase):
    def test_are_drawn_by_the_generator_of_the_library(self) -> None:
        published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
        self.assertEqual([vectors.random_at(counter, 1234567) for counter in range(3)], published)

    def test_are_different_rows_in_order(self) -> None:
        chosen = vectors.choose(50, 40)
        self.assertEqual(len(set(chosen)), 40)
        self.assertEqual(list(chosen), sorted(chosen))
        self.assertEqual(list(chosen), list(vectors.choose(50, 40)))

    def test_leave_a_base(self) -> None:
        for count in 0, 50, 51:
            with self.assertRaises(ValueError):
                vectors.choose(50, count)


class Sets(unittest.TestCase):
    def test_of_each_type_hold_every_row_once(self) -> None:
        for dtype, suffix in ("float32", "fbin"), ("uint8", "u8bin"):
            rows = np.arange(30 * 7).reshape(30, 7).astype(dtype)
            with tempfile.TemporaryDirectory() as name:
                out = Path(name)
                vectors.write_set(out, rows, [f"text {i}" for i in range(30)], queries=4)
                base = read_rows(out / f"base.{suffix}", dtype)
                queries = read_rows(out / f"queries.{suffix}", dtype)
                texts = (out / "texts.txt").read_text().splitlines()
                query_texts = (out / "query_texts.txt").read_text().splitlines()
            held = vectors.choose(30, 4)
            np.testing.assert_array_equal(queries, rows[held])
            np.testing.assert_array_equal(base, np.delete(rows, held, axis=0))
            self.assertEqual(query_texts, [f"text {i}" for i in held])
            self.assertEqual(texts, [f"text {i}" for i in range(30) if i not in held])

    def test_keep_the_first_of_equal_rows(self) -> None:
        rows = np.array([[3, 1], [0, 9], [3, 1], [1, 3], [0, 9]], np.uint8)
        self.assertEqual(list(vectors.distinct(rows)), [0, 1, 3])


class Glosses(unittest.TestCase):
    def test_are_read_in_order_and_once(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            package = Path(name) / "wordnet.tgz"
            with tarfile.open(package, "w:gz") as tar:
                for part in "noun", "verb", "adj", "adv":
                    data = (NOUNS if part == "noun" else f"00001 29 v 01 be 0 000 | {part} of it\n").encode()
                    info = tarfile.TarInfo(f"package/dict/data.{part}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
            found = gloss384.read_glosses(package)
        self.assertEqual(
            found,
            ["that which is perceived", 'a separate whole; "a | in it"', "verb of it", "adj of it", "adv of it"],
        )

    def test_are_the_mean_of_their_tokens_alone(self) -> None:
        tokens = np.array([[[3, 0], [0, 4], [99, 99]], [[2, 2], [2, 2], [2, 2]]], np.float32)
        mask = np.array([[1, 1, 0], [1, 1, 1]])
        half = np.sqrt(0.5)
        np.testing.assert_allclose(gloss384.pooled(tokens, mask), [[0.6, 0.8], [half, half]], rtol=1e-6)

    def test_keep_their_order_over_batches_of_like_lengths(self) -> None:
        ids = [[number] * (1 + number * 7 % 11) for number in range(1, 3 * gloss384.BATCH)]
        widths = []

        def run(padded: np.ndarray, mask: np.ndarray) -> np.ndarray:
            widths.append(padded.shape[1])
            self.assertFalse(padded[mask == 0].any())
            return np.stack([padded, 1 + 0 * padded], axis=2).astype(np.float32)

        rows = gloss384.embed(ids, run)
        self.assertEqual(widths, sorted(widths))
        np.testing.assert_allclose(rows[:, 0] / rows[:, 1], np.arange(1, 3 * gloss384.BATCH), rtol=1e-5)


class Descriptors(unittest.TestCase):
    def test_are_bytes(self) -> None:
        rows = np.array([[0, 17, 255]], np.float32)
        self.assertEqual(sift128.as_bytes(rows).tolist(), [[0, 17, 255]])

    def test_that_do_not_fit_a_byte_are_refused(self) -> None:
        for wrong in 0.5, 256.0, -1.0:
            with self.assertRaises(ValueError):
                sift128.as_bytes(np.array([[wrong]], np.float32))

    def test_are_of_the_photographs_of_each_package(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            flat = root / "usr/share/backgrounds/mate/nature/Aqua.jpg"
            flat.parent.mkdir(parents=True)
            flat.touch()
            found = list(sift128.photographs(root))
        self.assertIn(flat, found)
        self.assertIn(root / "usr/share/wallpapers/Path/contents/images/2560x1600.jpg", found)
        self.assertEqual(len(found), len(set(found)))


if __name__ == "__main__":
    unittest.main()
