"""Tensor parallel: one layer over several ranks. Which elements a rank holds, and what is sent to hide it.

`exchange` has the pairs of collectives, `linear` and `attention` the split layers, `vocabulary` the embedding and the
loss, `split` the whole GPT, `context` attention over a split sequence. Unless the sequence is split, every rank of the
group holds the same input and ends with the same output.
"""

from course.parallel.tensor.attention import ParallelAttention
from course.parallel.tensor.context import ring_attention
from course.parallel.tensor.exchange import (
    copy_to_ranks,
    gather_from_ranks,
    gather_sequence,
    reduce_from_ranks,
    scatter_sequence,
    scatter_to_ranks,
)
from course.parallel.tensor.linear import ColumnParallelLinear, ParallelMLP, RowParallelLinear, SequenceParallelNorm
from course.parallel.tensor.split import TensorParallelGPT, tensor_parallel_layers
from course.parallel.tensor.vocabulary import (
    VocabParallelEmbedding,
    VocabParallelHead,
    vocab_parallel_cross_entropy,
    vocabulary_share,
)

__all__ = [
    "ColumnParallelLinear",
    "ParallelAttention",
    "ParallelMLP",
    "RowParallelLinear",
    "SequenceParallelNorm",
    "TensorParallelGPT",
    "VocabParallelEmbedding",
    "VocabParallelHead",
    "copy_to_ranks",
    "gather_from_ranks",
    "gather_sequence",
    "reduce_from_ranks",
    "ring_attention",
    "scatter_sequence",
    "scatter_to_ranks",
    "tensor_parallel_layers",
    "vocab_parallel_cross_entropy",
    "vocabulary_share",
]
