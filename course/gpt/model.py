"""A GPT that can be read in one sitting: attention, MLP, block, model.

Shapes: B batch, T time, C channels (spec.width), H heads, F feed-forward (spec.hidden), V vocabulary.
Sizes come from `spec.ModelSpec`; text and training live in `data` and `train`.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course.errors import UsageError
from course.spec import ModelSpec


class Attention(nn.Module):
    """Causal self-attention (Vaswani et al. 2017, eq. 1): each token takes a weighted mean over those before it.

    (B, T, C) -> (B, T, C). Queries, keys and values come from one matrix, in this order; heads are contiguous in each.
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.heads, self.kind, self.dropout = spec.heads, spec.attention, spec.dropout
        self.qkv = nn.Linear(spec.width, 3 * spec.width)
        self.out = nn.Linear(spec.width, spec.width)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)  # each (B, H, T, C/H)
        dropout = self.dropout if self.training else 0.0
        if self.kind == "sdpa":
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        else:
            y = explicit_attention(q, k, v, dropout)
        return self.out(y.transpose(1, 2).reshape(B, T, C))  # heads side by side again


def explicit_attention(q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v where no token sees a later one; (B, H, T, D) each -> (B, H, T, D).

    What `scaled_dot_product_attention` computes, with its (B, H, T, T) weights in memory.
    """
    T, D = q.shape[-2:]
    scores = q @ k.transpose(-2, -1) / math.sqrt(D)  # (B, H, T, D) @ (B, H, D, T) -> (B, H, T, T)
    later = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
    weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
    return F.dropout(weights, dropout) @ v


class MLP(nn.Module):
    """Two linear layers with a GELU between them, on each token alone; (B, T, C) -> (B, T, F) -> (B, T, C)."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.up = nn.Linear(spec.width, spec.hidden)
        self.down = nn.Linear(spec.hidden, spec.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    """One layer: attention, then MLP, each normed before and added to what came in; (B, T, C) -> (B, T, C)."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.norm_1, self.attention = nn.LayerNorm(spec.width), Attention(spec)
        self.norm_2, self.mlp = nn.LayerNorm(spec.width), MLP(spec)
        self.dropout = nn.Dropout(spec.dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.norm_1(x)))
        return x + self.dropout(self.mlp(self.norm_2(x)))


class GPT(nn.Module):
    """A decoder that guesses the next token at every place of its input.

    Weights are drawn from torch's default generator as in GPT-2: normal with deviation 0.02, the two layers that add
    to the residual stream divided by sqrt(2 * layers); biases 0. `train.make_gpt` draws them from a seed.
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        self.tokens = nn.Embedding(spec.vocab, spec.width)
        self.positions = nn.Embedding(spec.context, spec.width)
        self.dropout = nn.Dropout(spec.dropout)
        self.blocks = nn.ModuleList(Block(spec) for _ in range(spec.layers))
        self.norm = nn.LayerNorm(spec.width)
        self.head = nn.Linear(spec.width, spec.vocab, bias=False)
        self._draw_weights()
        if spec.tied:
            self.head.weight = self.tokens.weight  # one parameter with two uses: its gradient is the sum of both

    def _draw_weights(self) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif name.endswith(("out.weight", "down.weight")):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * self.spec.layers))
            elif "norm" not in name:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) for tokens x (B, T) int64, T at most spec.context; with targets y (B, T), the mean loss."""
        if x.dim() != 2 or x.shape[1] > self.spec.context:
            found = f"tokens of shape {tuple(x.shape)}"
            raise UsageError(f"this GPT reads (batch, time) with time at most {self.spec.context}, but got {found}")
        h = self.tokens(x) + self.positions.weight[: x.shape[1]]  # (B, T, C) + (T, C)
        h = self.dropout(h)
        for block in self.blocks:
            h = block(h)
        logits = self.head(self.norm(h))  # (B, T, C) @ (C, V) -> (B, T, V)
        return logits if y is None else F.cross_entropy(logits.flatten(0, 1), y.flatten())

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean cross-entropy over all B * T tokens, in nats (a scalar); x and y are (B, T) int64."""
        return self(x, y)
