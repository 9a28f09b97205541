"""Builds the source sentence model (all-MiniLM-L6-v2) as an ONNX graph and runs it.

The model is published as a table of weights. The graph that uses them is a plain BERT
encoder and is defined here, so that neither torch nor an exported file is needed.
"""

import json
from pathlib import Path

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer


class Graph:
    """An ONNX graph builder: every call adds a node and returns its output."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def constant(self, name, value):
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(numpy.ascontiguousarray(value), name)
        return name

    def node(self, kind, *inputs, name=None, **attributes):
        name = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name


def encoder(folder: Path) -> onnx.ModelProto:
    """Builds the encoder: maps token ids and mask to the last hidden state of every token."""
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    heads, width = config["num_attention_heads"], config["hidden_size"]
    graph = Graph()

    def weight(name):
        return graph.constant(name, weights[name].astype(numpy.float32))

    def linear(x, name):
        matrix = graph.constant(f"{name}.matrix", weights[f"{name}.weight"].T.astype(numpy.float32))
        return graph.node("Add", graph.node("MatMul", x, matrix), weight(f"{name}.bias"))

    def normed(x, name, out=None):
        return graph.node(
            "LayerNormalization", x, weight(f"{name}.weight"), weight(f"{name}.bias"),
            name=out, axis=-1, epsilon=config["layer_norm_eps"],
        )

    def integers(name, *values):
        return graph.constant(name, numpy.array(values, numpy.int64))

    def number(name, value):
        return graph.constant(name, numpy.array(value, numpy.float32))

    length = graph.node("Gather", graph.node("Shape", "input_ids"), integers("one", 1), axis=0)
    places = graph.node(
        "Slice", weight("embeddings.position_embeddings.weight"),
        integers("zero", 0), length, integers("axis", 0),
    )
    tokens = graph.node("Gather", weight("embeddings.word_embeddings.weight"), "input_ids")
    kinds = graph.node("Gather", weight("embeddings.token_type_embeddings.weight"), "token_type_ids")
    summed = graph.node("Add", graph.node("Add", tokens, kinds), places)
    state = normed(summed, "embeddings.LayerNorm")

    # Masked tokens get a score so low that nothing attends to them.
    mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    mask = graph.node("Mul", graph.node("Sub", number("unit", 1), mask), number("never", -10_000))
    mask = graph.node("Unsqueeze", mask, integers("axes", 1, 2))

    split, join = integers("split", 0, 0, heads, width // heads), integers("join", 0, 0, width)
    scale = number("scale", (width // heads) ** -0.5)
    layers = config["num_hidden_layers"]
    for layer in range(layers):
        at = f"encoder.layer.{layer}"

        def by_head(name, order, state=state, at=at):
            return graph.node(
                "Transpose", graph.node("Reshape", linear(state, f"{at}.attention.self.{name}"), split),
                perm=order,
            )

        query, key, value = by_head("query", [0, 2, 1, 3]), by_head("key", [0, 2, 3, 1]), by_head("value", [0, 2, 1, 3])
        scores = graph.node("Add", graph.node("Mul", graph.node("MatMul", query, key), scale), mask)
        mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
        mixed = graph.node("Reshape", graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), join)
        attended = linear(mixed, f"{at}.attention.output.dense")
        state = normed(graph.node("Add", attended, state), f"{at}.attention.output.LayerNorm")

        wide = linear(state, f"{at}.intermediate.dense")
        bent = graph.node("Erf", graph.node("Mul", wide, number("root", 2**-0.5)))
        bent = graph.node("Mul", graph.node("Mul", wide, graph.node("Add", bent, "unit")), number("half", 0.5))
        narrow = linear(bent, f"{at}.output.dense")
        last = "last_hidden_state" if layer == layers - 1 else None
        state = normed(graph.node("Add", narrow, state), f"{at}.output.LayerNorm", last)

    shape = ["batch", "length"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, shape)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, width])
    whole = helper.make_graph(graph.nodes, "encoder", inputs, [output], list(graph.constants.values()))
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def tokenizer(folder: Path) -> Tokenizer:
    """Loads the tokenizer without its default padding and truncation to 128 tokens."""
    read = Tokenizer.from_file(str(folder / "tokenizer.json"))
    read.no_padding()
    read.no_truncation()
    return read


class Runner:
    """Runs the encoder."""

    def __init__(self, folder: Path):
        self.session = onnxruntime.InferenceSession(encoder(folder).SerializeToString())

    def __call__(self, ids, mask=None):
        ids = ids.astype(numpy.int64)
        mask = numpy.ones_like(ids) if mask is None else mask.astype(numpy.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        return self.session.run(None, feed)[0]
