"""The parts of an exported model besides its graph, by which it can become a ranker again."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import asdict

import numpy as np

from .._errors import Error
from .._ranker import Ranker

SPEC = "shortlist.spec"
FEATURES = "shortlist.features"
MODEL = "shortlist.model"


def describe(ranker: Ranker) -> dict[str, str]:
    """The spec's text, the features' places as JSON, and the saved model without its weights, compressed."""
    empty = ranker.with_tensors({name: np.zeros_like(array) for name, array in ranker.tensors().items()})
    return {
        SPEC: ranker.spec_text,
        FEATURES: json.dumps([asdict(feature) for feature in ranker.features]),
        MODEL: base64.b64encode(zlib.compress(empty.to_bytes(), 9)).decode("ascii"),
    }


def restore(text: str) -> Ranker:
    """The ranker of a saved model without its weights."""
    try:
        return Ranker.from_bytes(zlib.decompress(base64.b64decode(text, validate=True)))
    except (ValueError, KeyError, OSError, Error, zlib.error) as error:
        raise ValueError(f"the model's metadata {MODEL!r} cannot be read ({error}); give a spec and data") from None
