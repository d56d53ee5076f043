"""The sizes of published decoders, any of them: what counts parameters, FLOPs and bytes needs, and nothing else.

The model that the lessons train is `spec.model.ModelSpec`; how a shape is split over chips is `spec.plan`. Standard
library only.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from course.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelShape:
    """Sizes of a pre-norm decoder: grouped-query attention, a two- or three-matrix MLP, tied or not, dense or MoE.

    kv_heads: heads of keys and values (heads without grouping). ffn_matrices: 2 (GELU) or 3 (SwiGLU, which saves no
    biases and no dropout here). positions: rows of a learned position table, 0 for rotary or ALiBi. experts and
    active_experts: MLPs a layer, and those that one token goes through. Raises UsageError for sizes that cannot be.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    vocab: int
    ffn: int
    kv_heads: int
    ffn_matrices: int = 2
    tied: bool = True
    positions: int = 0
    experts: int = 1
    active_experts: int = 1

    def __post_init__(self) -> None:
        for field in ("layers", "hidden", "heads", "vocab", "ffn", "kv_heads", "experts", "active_experts"):
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UsageError(f"{self.name}: {field}={value!r} must be a whole number of at least 1")
        if self.ffn_matrices not in (2, 3):
            raise UsageError(f"{self.name}: ffn_matrices={self.ffn_matrices!r} must be 2 (GELU) or 3 (SwiGLU)")
        if not isinstance(self.positions, int) or self.positions < 0:
            raise UsageError(f"{self.name}: positions={self.positions!r} must be a whole number of at least 0")
        self._check_heads()
        if self.active_experts > self.experts:
            raise UsageError(f"{self.name}: {self.active_experts} active experts of {self.experts}: try fewer")

    def _check_heads(self) -> None:
        if self.hidden % self.heads:
            near = min((n for n in range(1, self.hidden + 1) if self.hidden % n == 0), key=self._away)
            raise UsageError(f"{self.name}: {self.heads} heads do not divide hidden={self.hidden}: try {near}")
        if self.heads % self.kv_heads:
            raise UsageError(f"{self.name}: kv_heads={self.kv_heads} does not divide {self.heads} heads")

    def _away(self, heads: int) -> int:
        return abs(heads - self.heads)

    @property
    def kv_hidden(self) -> int:
        """Channels of the keys (and of the values) of one token: kv_heads heads of hidden / heads channels."""
        return self.kv_heads * (self.hidden // self.heads)

    @property
    def learned_norm(self) -> int:
        """Parameters of the two norms of a layer, and of the biases where the MLP has two matrices."""
        if self.ffn_matrices == 3:
            return 2 * self.hidden
        return 4 * self.hidden + (self.hidden + 2 * self.kv_hidden) + self.hidden + self.ffn + self.hidden


def gpt(name: str, layers: int, hidden: int, heads: int, vocab: int = 51200, positions: int = 2048) -> ModelShape:
    """A GPT-2 like decoder: an MLP of 4 h channels and two matrices, learned positions, tied embeddings."""
    return ModelShape(
        name=name, layers=layers, hidden=hidden, heads=heads, kv_heads=heads, vocab=vocab, ffn=4 * hidden,
        positions=positions,
    )  # fmt: skip


def llama(name: str, layers: int, hidden: int, heads: int, ffn: int, kv_heads: int = 8) -> ModelShape:
    """A Llama 3 like decoder: grouped-query attention, SwiGLU, rotary positions, an output layer of its own."""
    return ModelShape(
        name=name, layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, vocab=128256, ffn=ffn,
        ffn_matrices=3, tied=False,
    )  # fmt: skip


SHAPES = {
    shape.name: shape
    for shape in (
        gpt("gpt-2", 12, 768, 12, vocab=50257, positions=1024),  # Radford et al. 2019, the smallest
        gpt("gpt-3-175b", 96, 12288, 96, vocab=50257),  # Brown et al. 2020, table 2.1
        gpt("mt-nlg-530b", 105, 20480, 128),  # Smith et al. 2022, section 2.3
        llama("llama-3.1-8b", 32, 4096, 32, 14336),  # Grattafiori et al. 2024, table 3
        llama("llama-3.1-70b", 80, 8192, 64, 28672),
        llama("llama-3.1-405b", 126, 16384, 128, 53248),
        gpt("bloom-176b", 70, 14336, 112, vocab=250880, positions=0),  # Le Scao et al. 2022, table 3: ALiBi
    )
}
"""Models by name, each with the paper its sizes are from."""


def shape_of(name: str) -> ModelShape:
    """The preset of this name. Raises UsageError with the nearest names where there is none."""
    if name not in SHAPES:
        near = difflib.get_close_matches(name.lower(), SHAPES, n=3, cutoff=0.0)
        raise UsageError(f"no model is called {name!r}: try {', '.join(near)}")
    return SHAPES[name]
