"""The one model: a small GPT, its text, and one-process training. Knows nothing of ranks: it is the oracle.

`model` is the decoder, `data` the text and its batches, `train` the training step.
"""

from course.gpt.data import batches, count_windows, decode, encode, epoch_order, load_text, windows
from course.gpt.model import GPT
from course.gpt.train import make_gpt, train_step

__all__ = [
    "GPT",
    "batches",
    "count_windows",
    "decode",
    "encode",
    "epoch_order",
    "load_text",
    "make_gpt",
    "train_step",
    "windows",
]
