"""gloss384.py WORDNET.tgz MODEL.jar OUT: sentence embeddings of WordNet's glosses, from the packages that ship both.

Each different gloss (a definition and its examples, as WordNet writes it) is one row. The row is the mean of
all-MiniLM-L6-v2's token vectors, scaled to length 1, as the model's card says. Rows keep WordNet's
order: nouns, verbs, adjectives and adverbs.
"""

import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from vectors import distinct, write_set

# The longest input that the model was made for, in tokens.
LONGEST, BATCH = 256, 32

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


def glosses(text: str) -> Iterator[str]:
    """The glosses of a WordNet data file: what follows the bar of each line but those of the licence."""
    for line in text.splitlines():
        if line and not line.startswith("  "):
            yield line.partition("|")[2].strip()


def read_glosses(package: Path) -> list[str]:
    found: dict[str, None] = {}
    with tarfile.open(package) as tar:
        for part in "noun", "verb", "adj", "adv":
            member = tar.extractfile(f"package/dict/data.{part}")
            if member is None:
                raise ValueError(f"{package} holds no data.{part}")
            found.update(dict.fromkeys(glosses(member.read().decode("utf-8"))))
    found.pop("", None)
    return list(found)


def pooled(tokens: Floats, mask: Integers) -> Floats:
    """The mean of each text's token vectors (texts, tokens, D) without the padding, scaled to length 1."""
    weights = mask[:, :, None].astype(np.float32)
    mean = (tokens * weights).sum(axis=1) / weights.sum(axis=1)
    scaled: Floats = (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def embed(ids: list[list[int]], run: Callable[[Integers, Integers], Floats]) -> Floats:
    """Texts of one batch have like lengths, since all are padded to the longest."""
    order = sorted(range(len(ids)), key=lambda text: len(ids[text]))
    parts = []
    for first in range(0, len(order), BATCH):
        batch = [ids[text] for text in order[first : first + BATCH]]
        padded = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(padded)
        for row, text in enumerate(batch):
            padded[row, : len(text)] = text
            mask[row, : len(text)] = 1
        parts.append(pooled(run(padded, mask), mask))
        if first % (BATCH * 500) == 0:
            print(f"gloss384: {first} of {len(ids)}", flush=True)
    rows = np.empty((len(ids), parts[0].shape[1]), np.float32)
    rows[order] = np.concatenate(parts)
    return rows


def open_model(package: Path) -> tuple[Callable[[list[str]], list[list[int]]], Callable[[Integers, Integers], Floats]]:
    import onnxruntime
    from tokenizers import Tokenizer

    with zipfile.ZipFile(package) as jar:
        tokenizer = Tokenizer.from_str(jar.read("all-minilm-l6-v2-tokenizer.json").decode("utf-8"))
        session = onnxruntime.InferenceSession(
            jar.read("all-minilm-l6-v2.onnx"), providers=["CPUExecutionProvider"]
        )
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)

    def run(ids: Integers, mask: Integers) -> Floats:
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        outputs: Floats = session.run(None, inputs)[0]
        return outputs

    return lambda texts: [text.ids for text in tokenizer.encode_batch(texts)], run


def main(wordnet: Path, model: Path, out: Path) -> None:
    texts = read_glosses(wordnet)
    tokenize, run = open_model(model)
    rows = embed(tokenize(texts), run)
    kept = distinct(rows)
    write_set(out, rows[kept], [texts[row] for row in kept])


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: gloss384.py WORDNET.tgz MODEL.jar OUT")
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
