"""Whether a message asks the memory at all, or is small talk or a question that anybody could be asked.

The cosines of the best conversation do not tell: they are as high for "Guten Morgen" as for a question that has an
answer. What tells is how the message asks: whether it lies nearer to examples of questions to a memory than to
examples of small talk and of questions about the world. Together with the best cosine that decides.
"""

import math
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jarvis_memory.embeddings import Vector

# Made by benchmarks/gate.py.
EXAMPLES = Path(__file__).with_name("recall_gate.npz")
NEAREST = 5

# Calibrated on one half of the German set, see benchmarks/README.md: small talk and general questions are to recall
# nothing in 9 of 10 cases, for at most one point of hit@3.
LIKENESS_WEIGHT = 2.0
# The best of more conversations is nearer by chance: so much for each natural logarithm of their number.
CHANCE = 0.034
THRESHOLD = 0.19


def asks_the_memory(embedding: Vector, *, embedding_model: str, best_meaning: float, conversations: int) -> bool:
    """True when something is to be recalled for the message with this vector.

    `best_meaning` is the best conversation's score by meaning alone, of this number of conversations. Of a model
    that the examples were not made with nothing is known: it recalls always.
    """
    examples = _examples()
    if embedding_model != examples[0]:
        return True
    vector = np.asarray(embedding, dtype=np.float32)
    to_the_memory, to_anybody = (np.sort(vectors @ vector)[-NEAREST:].mean() for vectors in examples[1:])
    evidence = best_meaning + LIKENESS_WEIGHT * float(to_the_memory - to_anybody)
    return evidence - CHANCE * math.log(max(1, conversations)) >= THRESHOLD


@cache
def _examples() -> tuple[str, NDArray[np.float32], NDArray[np.float32]]:
    with np.load(EXAMPLES) as stored:
        return (
            str(stored["model"]),
            stored["to_the_memory"].astype(np.float32),
            stored["to_anybody"].astype(np.float32),
        )
