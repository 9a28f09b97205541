"""Makes the contextual model: contextual.py MODEL_FOLDER OUT_FOLDER

The sentence model itself with its weights as bytes, a quarter of the size, and the
vocabulary beside it. `Contextual::load` reads the folder.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from source import encoder


def main(model, out):
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.onnx"
        onnx.save(encoder(model), whole)
        quantize_dynamic(whole, out / "model.onnx", weight_type=QuantType.QInt8, per_channel=True)
    shutil.copy(model / "vocab.txt", out / "vocab.txt")


main(*map(Path, sys.argv[1:3]))
