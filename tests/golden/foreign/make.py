"""Makes the files of this folder with hnswlib 0.8.0 and faiss-cpu 1.15.1: python make.py

240 vectors of 6 dimensions by a formula, M 4, ids 5, 15, 25, … The first 20 are deleted in hnswlib's file. decoded.f32
has what Faiss decodes its two files of codes to. tests/hnsw/foreign/test_import.c imports all files.
"""

import pathlib

import faiss
import hnswlib
import numpy as np

HERE = pathlib.Path(__file__).parent
N, DIM, M, EF, GONE, CODED = 240, 6, 4, 40, 20, 50


def vectors():
    numbers = np.arange(N * DIM, dtype=np.uint64) * np.uint64(2654435761) >> np.uint64(7)
    return ((numbers % np.uint64(1000)).astype(np.float32) / 500 - 1).reshape(N, DIM)


def write_hnswlib(x, ids):
    index = hnswlib.Index("l2", DIM)
    index.init_index(N + 10, M=M, ef_construction=EF, random_seed=7)
    index.set_num_threads(1)
    index.add_items(x, ids)
    for one in ids[:GONE]:
        index.mark_deleted(one)
    index.save_index(str(HERE / "hnswlib-0.8.0.bin"))


def write_faiss(x, ids):
    faiss.omp_set_num_threads(1)
    flat = faiss.IndexHNSWFlat(DIM, M)
    flat.hnsw.efConstruction = EF
    mapped = faiss.IndexIDMap(flat)
    mapped.add_with_ids(x, ids)
    faiss.write_index(mapped, str(HERE / "faiss-1.15.1-hnsw-flat.faiss"))
    coded = faiss.IndexHNSWSQ(DIM, faiss.ScalarQuantizer.QT_8bit, M)
    coded.train(x)
    coded.add(x)
    faiss.write_index(coded, str(HERE / "faiss-1.15.1-hnsw-sq8.faiss"))
    six = faiss.IndexScalarQuantizer(DIM, faiss.ScalarQuantizer.QT_6bit)
    six.train(x)
    six.add(x[:CODED])
    faiss.write_index(six, str(HERE / "faiss-1.15.1-sq6.faiss"))
    decoded = [coded.reconstruct_n(0, N).ravel(), six.reconstruct_n(0, CODED).ravel()]
    np.concatenate(decoded).astype("<f4").tofile(HERE / "decoded.f32")


if __name__ == "__main__":
    rows = vectors()
    numbers = np.arange(N) * 10 + 5
    write_hnswlib(rows, numbers)
    write_faiss(rows, numbers)
