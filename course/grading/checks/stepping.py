"""Checks of `pipeline_step`: on real ranks, against one process; what is sent, and whether sending holds a stage up."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from typing import Any

from course.grading.bench import Bench, Result, Seat, Trouble
from course.grading.check import Check, Finding
from course.grading.checks import messages as m
from course.grading.checks import stages as st
from course.grading.checks.hello import lazy
from course.grading.checks.missteps import after_loss, behind, said
from course.grading.mistakes.lesson_05 import OPTIMIZER_CALLED
from course.grading.mistakes.lesson_07 import (
    BUFFER_REUSED,
    COLLECTIVES_CALLED,
    GRADIENT_OVERWRITTEN,
    LOSS_EVERYWHERE,
    OWN_ORDER,
    SEND_HOLDS_UP,
)
from course.grading.plain import TensorData, difference, plain, ratio, real_number, same, type_in_words

MAIN = (3, st.Case("1F1B", 5))
RUNS = (MAIN, (3, st.Case("GPipe", 4)), (4, st.Case("1F1B", 2)), (1, st.Case("1F1B", 3)), (2, st.Case("GPipe", 3)))
OTHER_ORDER = (2, st.Case("another order", 4))
BEFORE = (2, st.Case("1F1B", 3, before=True))
NBYTES = 4 * math.prod(st.SHAPE)


def _probe(learner: Any, case: st.Case, seat: Seat) -> Any:
    import torch

    stage = st.watched(seat.rank, seat.world_size, case.gate)
    inputs, targets = st.batch(case.microbatches)
    for parameter in stage.parameters() if case.before else ():
        parameter.grad = torch.full_like(parameter, 0.5)
    held = {name: plain(p) for name, p in stage.layers.named_parameters()}
    given = [plain(t) for t in (*inputs, *targets)]
    actions = list(case.actions(seat.world_size)[seat.rank])
    returned = learner(stage, actions, list(inputs), list(targets), shape=st.SHAPE)
    return {
        "returned": plain(returned),
        "order": stage.notes.order,
        "inputs": stage.notes.inputs,
        "came_back": stage.notes.gradients,
        "held_up": stage.notes.held_up,
        "gradients": {name: plain(p.grad) for name, p in stage.layers.named_parameters()},
        "changed": [name for name, p in stage.layers.named_parameters() if plain(p) != held[name]],
        "spoiled": [plain(t) for t in (*inputs, *targets)] != given,
    }


def _words(n: int, case: st.Case) -> str:
    return f"with {n} rank{'s' if n > 1 else ''}, {case.microbatches} microbatches and {case.schedule}"


def _run(bench: Bench, n: int, case: st.Case) -> Result | Finding:
    """The result of a run, or a finding where it stopped in a way that has a name. Raises Trouble for the others."""
    try:
        return bench.run(_probe, case, n=n)
    except Trouble as trouble:
        mistake = said(trouble)
        return Finding(trouble.got, "", "", mistake) if mistake else m.run(bench, _probe, case, n)


# --- gradients and loss -----------------------------------------------------------------------------------------------


def _gradients(bench: Bench) -> Finding | None:
    return next((finding for n, case in RUNS if (finding := _wrong_gradients(bench, n, case))), None)


def _wrong_gradients(bench: Bench, n: int, case: st.Case) -> Finding | None:
    result = _run(bench, n, case)
    if isinstance(result, Finding):
        return result
    what, want = _words(n, case), st.reference(n, case.microbatches)
    found: list[dict[str, Sequence[float]]] = []
    for rank, value in enumerate(result.values):
        if mistake := lazy(value["returned"]):
            return Finding(f"{what}, it returned {type_in_words(value['returned'])}", "", "", mistake)
        for name, gradient in value["gradients"].items():
            if type(gradient) is not TensorData or len(gradient.numbers) != len(want.gradients[rank][name]):
                got = f"{what}, the gradient of `{name}` on rank {rank} is {type_in_words(gradient)}"
                return Finding(got, "", "Which line runs backward on that rank?", behind(result, case, n))
        found.append({name: gradient.numbers for name, gradient in value["gradients"].items()})
    for rank in reversed(range(n)):  # the first stage that went wrong on the way back
        if not same(found[rank], want.gradients[rank], 1e-4):
            got = f"{what}, {_how(found[rank], want.gradients[rank], rank)}"
            advice = "Take one microbatch. Compare what each rank receives with what the other has sent."
            return Finding(got, "", advice, behind(result, case, n))
    return None


def _how(got: dict[str, Sequence[float]], want: dict[str, tuple[float, ...]], rank: int) -> str:
    factor = ratio(got, want)
    if factor is not None and abs(factor) > 1e-6:
        return f"the gradient on rank {rank} is {factor:.2f} times that of one process"
    worst = difference(got, want)
    if worst is None:
        return f"the gradient on rank {rank} is another one"
    return (
        f"on rank {rank} one number of the gradient of `{worst.worst}` is {worst.got:.4g} instead of {worst.want:.4g}"
    )


def _loss(bench: Bench) -> Finding | None:
    for n, case in RUNS:
        result = _run(bench, n, case)
        if isinstance(result, Finding):
            return result
        losses = st.reference(n, case.microbatches).losses
        want = sum(losses) / len(losses)
        for rank, value in enumerate(result.values):
            got = f"{_words(n, case)}, rank {rank} returned "
            if rank < n - 1:
                if value["returned"] is not None:
                    return Finding(got + type_in_words(value["returned"]), "None", "", LOSS_EVERYWHERE)
                continue
            number = real_number(value["returned"])
            if number is None:
                return Finding(got + type_in_words(value["returned"]), "the mean loss", "Return one number.")
            if not math.isclose(number, want, rel_tol=1e-4):
                got += f"{number:.5g}"
                return Finding(got, f"{want:.5g}", "Which losses go into it?", after_loss(number, losses))
    return None


def _adds(bench: Bench) -> Finding | None:
    n, case = BEFORE
    result = _run(bench, n, case)
    if isinstance(result, Finding):
        return result
    want = st.reference(n, case.microbatches)
    for rank, value in enumerate(result.values):
        if value["changed"]:
            got = f"{_words(n, case)}, rank {rank} changed the parameter `{value['changed'][0]}`"
            return Finding(got, "parameters as they were", "", OPTIMIZER_CALLED)
        if value["spoiled"]:
            return Finding(f"{_words(n, case)}, rank {rank} changed its inputs or targets", "inputs as they were")
        numbers = {k: v.numbers if type(v) is TensorData else () for k, v in value["gradients"].items()}
        more = {name: tuple(0.5 + x for x in wanted) for name, wanted in want.gradients[rank].items()}
        if any(len(numbers[name]) != len(more[name]) for name in more) or not same(numbers, more, 1e-4):
            got = f"with gradients of 0.5 beforehand, those of rank {rank} are not 0.5 more than without"
            alone = all(map(len, numbers.values())) and same(numbers, want.gradients[rank], 1e-4)
            return Finding(got, "", "Where is `.grad` written?", GRADIENT_OVERWRITTEN if alone else None)
    return None


# --- order, messages --------------------------------------------------------------------------------------------------


def _order(bench: Bench) -> Finding | None:
    for n, case in (OTHER_ORDER, *RUNS):
        result = _run(bench, n, case)
        if isinstance(result, Finding):
            return result
        want = st.reference(n, case.microbatches)
        for rank, value in enumerate(result.values):
            asked = list(case.actions(n)[rank])
            done = _done(value, want.inputs[rank])
            if done != asked:
                got = f"{_words(n, case)}, rank {rank} did {_listed(done)}"
                return Finding(got, _listed(asked), "Go through `actions`, one after the other.", OWN_ORDER)
    return None


def _done(value: dict[str, Any], inputs: Sequence[TensorData]) -> list[tuple[str, int | None]]:
    """What a stage did, with microbatches told by what came in; a forward done again (to recompute) is left out."""
    which = [st.place_of(data, inputs) for data, _ in value["inputs"]]
    done: list[tuple[str, int | None]] = []
    for kind, number in value["order"]:
        if (kind, which[number]) not in done or kind == "B":
            done.append((kind, which[number]))
    return done


def _listed(actions: Sequence[tuple[str, int | None]]) -> str:
    return " ".join(f"{kind}{'?' if k is None else k}" for kind, k in actions)


def _messages(bench: Bench) -> Finding | None:
    for n, case in RUNS:
        result = _run(bench, n, case)
        if isinstance(result, Finding):
            return result
        what = f"{_words(n, case)}, correct, but "
        called = sorted({span.name for span in result.trace.of(kind="collective")})
        if called:
            return Finding(f"{what}{called[0]} was called", "sends and receives alone", "", COLLECTIVES_CALLED)
        for src, dst in ((a, b) for a in range(n) for b in range(n)):
            sizes = [message.nbytes for message in result.trace.messages if (message.src, message.dst) == (src, dst)]
            number = case.microbatches if abs(src - dst) == 1 else 0
            if sizes != [NBYTES] * number:
                got = f"{what}rank {src} sent rank {dst} {len(sizes)} messages, {sum(sizes)} bytes in all"
                return Finding(got, f"{number} of {NBYTES} bytes", "Count what crosses that boundary.")
    return None


def _waited(bench: Bench) -> Finding | None:
    results = [result for n, case in RUNS if not isinstance(result := _run(bench, n, case), Finding)]
    for result in results:
        if any("was changed before its wait" in note for note in result.notes):
            got = f"with {result.world_size} ranks, a tensor was written to while it was being sent"
            return Finding(got, "", "", BUFFER_REUSED)
    return m.waited(results)


def _flows(bench: Bench) -> Finding | None:
    """Whether a stage goes on while what it sent has not been received: its neighbour waits until it has."""
    with tempfile.TemporaryDirectory() as folder:
        case = st.Case("GPipe", 4, gate=folder)
        result = _run(bench, 2, case)
    if isinstance(result, Finding):
        return result
    for rank, value in enumerate(result.values):
        for kind in value["held_up"]:
            what = "activation" if kind == "F" else "gradient"
            got = f"{_words(2, case)}, rank {1 - rank} waits until the {what} that it sent has been received"
            return Finding(got, "", "", SEND_HOLDS_UP)
    return None


GRADIENTS = "the gradients of one process"
ORDER = "does the actions in their order"

CHECKS = {
    "pipeline_step": (
        Check(GRADIENTS, 5, _gradients, "on each rank, its part of the gradient of the mean loss"),
        Check("the mean loss on the last rank, None elsewhere", 2, _loss, "the mean loss", needs=GRADIENTS),
        Check("adds to `.grad`, and changes nothing else", 2, _adds, "what was there, and the gradient",
              needs=GRADIENTS),
        Check(ORDER, 2, _order, "the actions as given", needs=GRADIENTS),
        Check("one message a microbatch and boundary, each way", 2, _messages, "no other message", needs=GRADIENTS),
        Check("every handle is waited for", 1, _waited, "nothing under way at the end", needs=GRADIENTS),
        Check("no send holds its stage up", 2, _flows, "sends that go on while the stage computes", needs=ORDER),
    )
}  # fmt: skip
