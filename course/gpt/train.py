"""Training in one process: what every split over ranks is compared with.

No ranks here: `parallel` splits these very steps.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course.errors import UsageError
from course.gpt.model import GPT
from course.spec import LESSON_GPT, ModelSpec


def make_gpt(
    seed: int = 0,
    *,
    spec: ModelSpec = LESSON_GPT,
    optimizer: str = "adamw",
    lr: float | None = None,
    device: torch.device | str | None = None,
) -> tuple[GPT, torch.optim.Optimizer]:
    """A GPT with weights drawn from `seed`, and its optimizer: "adamw" or "sgd".

    Equal seeds give equal weights, to the bit, on every rank and device; torch's own random state is left as it was.
    lr: step size; None means 5e-4 for "adamw" (no weight decay) and 0.03 for "sgd" (no momentum). Bigger steps learn
    faster here, and make training chaotic: rounding in the last bit then grows to 1e-3 of the loss within 50 steps, so
    that two correct runs no longer agree.
    device: where the weights go; None means torch's default device.
    Raises UsageError for another optimizer.
    """
    if optimizer not in ("adamw", "sgd"):
        raise UsageError(f'make_gpt(optimizer={optimizer!r}): the optimizer must be "adamw" or "sgd"')
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        model = GPT(spec)
    model.to(device or torch.get_default_device())
    if optimizer == "sgd":
        return model, torch.optim.SGD(model.parameters(), lr=0.03 if lr is None else lr)
    return model, torch.optim.AdamW(model.parameters(), lr=5e-4 if lr is None else lr, weight_decay=0.0)


def train_step(model: GPT, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> float:
    """One step on a batch x, y (B, T) int64; returns the loss before the step, in nats a token.

    Afterwards the parameters are moved, and `.grad` still holds the gradients that moved them.
    """
    optimizer.zero_grad()
    loss = model.loss(x, y)
    loss.backward()
    optimizer.step()
    return loss.item()
