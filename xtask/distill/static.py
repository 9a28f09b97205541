"""Trains the static embedding model: static.py MODEL_FOLDER WORDNET_FOLDER OUT

Computes a vector for every token of the vocabulary, such that the sum of a text's vectors
approximates the sentence model's embedding of the text. Two steps:

1. The sentence model embeds every token alone. That gives a fair vector for a word, but no
   weight relative to other words.
2. The sentence model embeds the definitions and examples of WordNet, and the vectors are
   fitted to the results by least squares, regularized towards those of the first step.
   The length of a vector then is the weight of its word.

The vectors are reduced to 256 dimensions and to bytes. The format is described in
crates/recall/src/model/table.rs.
"""

import re
import struct
import sys
from pathlib import Path

import numpy
import scipy.sparse
from source import Runner, tokenizer

DIMENSIONS = 256
# Regularization strength towards the initial vectors.
FIRMNESS = 1.0
STEPS = 40
# Ids below this are not words: [unused], [CLS] and the like.
FIRST_WORD = 999
BEGIN, END = 101, 102
LONGEST = 62


def sentences(wordnet: Path):
    """Returns the definitions, each after its words, and the examples."""
    found = []
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (wordnet / f"data.{kind}").read_text("utf-8", "replace").splitlines():
            if line.startswith("  "):
                continue
            head, _, gloss = line.partition(" | ")
            fields = head.split()
            names = [fields[4 + 2 * index] for index in range(int(fields[3], 16))]
            names = [name.split("(")[0].replace("_", " ") for name in names]
            definition, *examples = re.split(r';\s*(?=")', gloss.strip())
            found.append(f"{', '.join(names[:3])}: {definition.strip('; ')}")
            found += [text for text in (one.strip('; "') for one in examples) if len(text) > 12]
    return found


def alone(run, count):
    """Returns the sentence model's embedding of every single token, centred."""
    vectors = []
    for start in range(0, count, 512):
        ids = numpy.arange(start, min(start + 512, count))
        batch = numpy.stack([numpy.full_like(ids, BEGIN), ids, numpy.full_like(ids, END)], 1)
        vectors.append(run(batch).mean(1))
    vectors = numpy.concatenate(vectors)
    return vectors - vectors[FIRST_WORD:].mean(0)


def embedded(run, texts):
    """Returns the sentence model's embeddings of whole texts, centred."""
    out = numpy.zeros((len(texts), 384), numpy.float32)
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    start = 0
    while start < len(order):
        size = max(16, 2048 // (len(texts[order[start]]) + 2))
        batch, start = order[start : start + size], start + size
        longest = max(len(texts[index]) for index in batch) + 2
        ids, mask = (numpy.zeros((len(batch), longest), numpy.int64) for _ in range(2))
        for row, index in enumerate(batch):
            whole = [BEGIN, *texts[index], END]
            ids[row, : len(whole)], mask[row, : len(whole)] = whole, 1
        states, weight = run(ids, mask), mask[:, :, None]
        means = (states * weight).sum(1) / weight.sum(1)
        out[batch] = means / numpy.linalg.norm(means, axis=1, keepdims=True)
        if start // size % 200 == 0:
            print(f"{start} of {len(order)} texts", file=sys.stderr, flush=True)
    return out - out.mean(0)


def fitted(vectors, texts, wanted):
    """Fits the vectors whose sums are nearest to the targets, by conjugate gradients."""
    rows = numpy.repeat(numpy.arange(len(texts)), [len(text) for text in texts])
    columns = numpy.concatenate([numpy.array(text, int) for text in texts if text])
    shares = numpy.array([max(len(text), 1) for text in texts], numpy.float32) ** -0.5
    shape = (len(texts), len(vectors))
    sums = scipy.sparse.csr_matrix((shares[rows], (rows, columns)), shape=shape)
    back = sums.T.tocsr()

    made = sums @ vectors
    vectors = vectors * numpy.float32((made * wanted).sum() / (made * made).sum())
    rest = back @ (wanted - sums @ vectors)
    step, size = rest.copy(), (rest * rest).sum(0)
    for _ in range(STEPS):
        change = back @ (sums @ step) + FIRMNESS * step
        far = size / ((step * change).sum(0) + 1e-20)
        vectors, rest = vectors + far * step, rest - far * change
        new = (rest * rest).sum(0)
        step, size = rest + new / (size + 1e-20) * step, new
    explained = 1 - ((wanted - sums @ vectors) ** 2).sum() / (wanted**2).sum()
    print(f"the vectors explain {explained:.3f} of the sentence model's variance", file=sys.stderr)
    return vectors


def reduced(vectors):
    """Reduces the vectors to their principal components."""
    _, _, axes = numpy.linalg.svd(vectors[FIRST_WORD:], full_matrices=False)
    axes = axes[:DIMENSIONS]
    # The sign of an axis is arbitrary; choose the one whose largest component is positive.
    largest = numpy.take_along_axis(axes, numpy.abs(axes).argmax(1)[:, None], 1)
    return vectors @ (axes * numpy.sign(largest)).T


def write(path, vectors, names):
    lengths = numpy.linalg.norm(vectors, axis=1)
    unit = vectors / numpy.maximum(lengths, 1e-9)[:, None]
    most = numpy.maximum(numpy.abs(unit).max(1), 1e-9)[:, None]
    rows = numpy.round(unit / most * 127).astype(numpy.int8)
    scales = 1 / numpy.maximum(numpy.linalg.norm(rows.astype(numpy.float32), axis=1), 1e-9)
    with open(path, "wb") as file:
        file.write(b"TLSTATIC" + struct.pack("<II", *vectors.shape))
        file.write(scales.astype("<f4").tobytes())
        file.write(lengths.astype("<f4").tobytes())
        file.write(rows.tobytes())
        file.write("".join(f"{name}\n" for name in names).encode())


def main(model, wordnet, out):
    pieces, run = tokenizer(model), Runner(model)
    count = pieces.get_vocab_size()
    found = sentences(wordnet)
    texts = [one.ids[:LONGEST] for one in pieces.encode_batch(found, add_special_tokens=False)]
    start = alone(run, count).astype(numpy.float32)
    vectors = fitted(start, texts, embedded(run, texts))
    write(out, reduced(vectors), [pieces.id_to_token(index) for index in range(count)])


main(*map(Path, sys.argv[1:4]))
