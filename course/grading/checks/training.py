"""Training under a wrapper: the models, what a rank does in a few steps, and the oracle in one process.

All cases start from the same numbers on every rank, so that a forgotten copy at the start costs its own check alone.
The oracle is the average of the gradients that each rank's samples give. What is judged stands in `wrapper`.
"""

from __future__ import annotations

from typing import Any

from course.grading.bench import Result, Seat
from course.grading.check import Finding
from course.grading.checks import replicas
from course.grading.plain import Numbers, TensorData, difference, plain, ratio, same, type_in_words

WIDTH = 12
DEPTH = 8
STEPS = 3
RATE = 0.05
BUCKET = 1500  # two layers of 12 x 12 and their biases
SMALL = 400  # less than one weight
Case = tuple[str, int]  # which model, bucket_bytes


def model(kind: str) -> Any:
    """The module of a case, the same on every rank. Its forward takes (x, rank, step)."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
            if kind == "shared":
                self.layers[-1].weight = self.layers[0].weight
                self.layers[3].requires_grad_(False)

        def forward(self, given: tuple[Any, int, int]) -> Any:
            x, rank, step = given
            if kind == "order":  # two halves side by side, computed in another order on odd ranks
                halves = [self.layers[:4], self.layers[4:]]
                results = [run(half, x) for half in (halves if rank % 2 == 0 else halves[::-1])]
                return results[0] * 0.7 + results[1] * 0.7
            left_out = {2, 5} if (rank + step) % 2 else {3}
            chosen = [layer for k, layer in enumerate(self.layers) if kind != "some" or k not in left_out]
            return run(chosen, x)

    def run(layers: Any, x: Any) -> Any:
        for layer in layers:
            x = torch.tanh(layer(x))
        return x

    torch.manual_seed(5)
    return Model()


def batch(rank: int, step: int) -> tuple[Any, int, int]:
    """What rank `rank`'s module is called with in a step; the last batch of a run is smaller on odd ranks."""
    import torch

    generator = torch.Generator().manual_seed(100 * rank + step)
    return torch.randn(4, WIDTH, generator=generator) + 0.5 * rank, rank, step


def _loss(output: Any) -> Any:
    return (output - 0.3).pow(2).sum(dim=1).mean()


def gradients_of(held: Any) -> dict[str, Any]:
    return {name: plain(p.grad) for name, p in held.named_parameters()}


def probe(learner: Any, case: Case, seat: Seat) -> Any:
    """Train for STEPS steps under SGD; gradients after each finish(), and how many calls had been made when."""
    import torch

    from course.ranks import calls_made

    kind, bucket_bytes = case
    held = model(kind)
    frozen = {name: plain(p) for name, p in held.named_parameters() if not p.requires_grad}
    at_last: list[int] = []
    for parameter in list(held.layers[0].parameters()):  # their gradients come last in backward
        parameter.register_hook(lambda _: at_last.append(calls_made()))
    wrapped = learner(held, bucket_bytes=bucket_bytes)
    optimizer = torch.optim.SGD([p for p in held.parameters() if p.requires_grad], lr=RATE)
    steps = []
    for step in range(STEPS):
        before = calls_made()
        loss = _loss(wrapped(batch(seat.rank, step)))
        loss.backward()
        after = calls_made()
        wrapped.finish()
        steps.append(
            {"gradients": gradients_of(held), "marks": (before, at_last[-1] if at_last else None, after, calls_made())}
        )
        optimizer.step()
        optimizer.zero_grad()
    return {
        "steps": steps,
        "end": replicas.state(held),
        "frozen": [n for n in frozen if plain(held.get_parameter(n)) != frozen[n]],
    }


# --- oracle ----------------------------------------------------------------------------------------------------------


def reference(kind: str, n: int, scale: float = 1.0, only: int | None = None) -> list[Numbers]:
    """One process: the average gradients of each step, times `scale`; of one rank's samples with `only`."""
    import torch

    held = model(kind)
    steps: list[Numbers] = []
    for step in range(STEPS):
        held.zero_grad()
        for rank in range(n) if only is None else (only,):
            _loss(held(batch(rank, step))).mul(scale / (n if only is None else 1)).backward()
        steps.append({k: p.grad.reshape(-1).tolist() for k, p in held.named_parameters() if p.grad is not None})
        with torch.no_grad():
            for parameter in held.parameters():
                if parameter.grad is not None:
                    parameter -= RATE * parameter.grad
    return steps


def numbers_of_step(value: Any, step: int, want: Numbers) -> Numbers | str:
    """One rank's gradients of one step, or what is wrong with them in words."""
    gradients = value["steps"][step]["gradients"]
    for name, numbers in want.items():
        if type(gradients[name]) is not TensorData or len(gradients[name].numbers) != len(numbers):
            return f"the gradient of `{name}` is {type_in_words(gradients[name])}"
    return {name: gradients[name].numbers for name in want}


def step_finding(result: Result, step: int, want: Numbers, what: str) -> Finding | None:
    for rank, value in enumerate(result.values):
        found = numbers_of_step(value, step, want)
        if isinstance(found, str):
            return Finding(f"{what}, in step {step + 1} {found} on rank {rank}", "", "Which step writes `.grad`?")
        worst = difference(found, want, 2e-5)
        if worst is None:
            continue
        factor = ratio(found, want)
        if factor is not None and abs(factor) > 1e-6:
            how = f"your gradient is {factor:.2f} times the reference on every parameter (rank {rank})"
        else:
            right = sum(same({k: found[k]}, {k: v}, 2e-5) for k, v in want.items())
            how = (
                f"on rank {rank} {right} of {len(want)} gradients are right; one number of `{worst.worst}` is "
                f"{worst.got:.4g} where {worst.want:.4g} was expected"
            )
        return Finding(f"{what}, in step {step + 1} {how}", "", "Compare one gradient by hand on all ranks.")
    return None
