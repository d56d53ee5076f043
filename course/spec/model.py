"""The sizes of a GPT, checked once: ModelSpec, and the one that every lesson trains.

Only numbers: the model itself is built from them in `gpt`. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass

from course.errors import UsageError

ATTENTION_KINDS = ("sdpa", "explicit")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """Sizes of a pre-norm GPT decoder with learned positions (GPT-2, Radford et al. 2019).

    Frozen and hashable; change one number with `dataclasses.replace(spec, layers=30)`.
    Raises UsageError when the sizes cannot make a model.
    """

    vocab: int = 256  # V: different tokens; 256 for bytes
    context: int = 64  # T: tokens the model sees at once
    layers: int = 4
    heads: int = 4  # H: attention heads a layer; divides width
    width: int = 128  # C: channels a token
    feedforward: int | None = None  # F: hidden channels of the MLP; None means 4 * width
    dropout: float = 0.0  # probability to zero an activation while training; at least 0, below 1
    tied: bool = True  # the output layer shares its weight with the token embedding
    attention: str = "sdpa"  # "sdpa": torch's fused operator; "explicit": the (T, T) weights written out

    def __post_init__(self) -> None:
        for name in ("vocab", "context", "layers", "heads", "width", "feedforward"):
            value = getattr(self, name)
            if name == "feedforward" and value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UsageError(f"ModelSpec({name}={value!r}): {name} must be a whole number of at least 1")
        if self.width % self.heads:
            legal = ", ".join(str(h) for h in range(1, self.width + 1) if self.width % h == 0)
            raise UsageError(f"ModelSpec(width={self.width}, heads={self.heads}): heads must divide width: try {legal}")
        if isinstance(self.dropout, bool) or not isinstance(self.dropout, (int, float)) or not 0 <= self.dropout < 1:
            raise UsageError(f"ModelSpec(dropout={self.dropout!r}): dropout is a probability, at least 0 and below 1")
        if self.attention not in ATTENTION_KINDS:
            kinds = " or ".join(repr(kind) for kind in ATTENTION_KINDS)
            raise UsageError(f"ModelSpec(attention={self.attention!r}): attention must be {kinds}")

    @property
    def hidden(self) -> int:
        """F, the MLP's hidden channels: `feedforward`, or four times the width."""
        return 4 * self.width if self.feedforward is None else self.feedforward

    @property
    def head_width(self) -> int:
        """C / H, the channels of one attention head."""
        return self.width // self.heads


LESSON_GPT = ModelSpec()
"""The model of the lessons: bytes, 64 tokens, 4 layers, 834,304 parameters."""
