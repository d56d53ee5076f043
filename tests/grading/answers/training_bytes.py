# ruff: noqa: F811
import copy

import torch

from tests.grading.bank import right, wrong

STATES = {"sgd": 0, "momentum": 1, "adam": 2}


def checked(optimizer, precision):
    if optimizer not in STATES or precision not in ("float32", "mixed"):
        raise ValueError(f"{optimizer} in {precision}")


def total(module, optimizer, precision, size=None, gradient=None, copied=None, states=None, more=0):
    """A right answer of which a wrong one changes one number; None leaves it as it is."""
    checked(optimizer, precision)
    mixed = precision == "mixed"
    size = size or (2 if mixed else 4)
    gradient = size if gradient is None else gradient
    copied = (4 if mixed else 0) if copied is None else copied
    states = 4 * STATES[optimizer] if states is None else states
    trained = sum(p.numel() for p in module.parameters() if p.requires_grad)
    frozen = sum(p.numel() for p in module.parameters() if not p.requires_grad)
    return trained * (size + gradient + copied + states) + frozen * (size + more)


@right("two counts")
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision)


@right("parameter by parameter, tensors that would be made, on the meta device")
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    dtype = torch.float32 if precision == "float32" else torch.bfloat16
    nbytes = 0
    for p in module.parameters():
        kept = [torch.empty(p.shape, dtype=dtype, device="meta")]
        if p.requires_grad:
            kept.append(torch.empty(p.shape, dtype=dtype, device="meta"))
            floats = STATES[optimizer] + (precision == "mixed")
            kept += [torch.empty(p.shape, dtype=torch.float32, device="meta") for _ in range(floats)]
        nbytes += sum(t.nbytes for t in kept)
    return nbytes


@right("by storage, from all modules")
def training_bytes(module, *, optimizer, precision):
    try:
        per = {"float32": 8, "mixed": 8}[precision] + {"sgd": 0, "momentum": 4, "adam": 8}[optimizer]
    except KeyError as error:
        raise ValueError(str(error)) from None
    found = {id(p): p for m in module.modules() for p in m._parameters.values() if p is not None}
    whole = sum(p.numel() * per for p in found.values() if p.requires_grad)
    return whole + sum(p.numel() * (4 if precision == "float32" else 2) for p in found.values() if not p.requires_grad)


@right("a converted copy, a float at the end")
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    twin = copy.deepcopy(module)
    twin = twin.to(torch.bfloat16 if precision == "mixed" else torch.float32)
    nbytes = float(sum(p.nbytes * (1 + p.requires_grad) for p in twin.parameters()))
    masters = [torch.empty(p.shape, device="meta") for p in twin.parameters() if p.requires_grad]
    if precision == "mixed":
        nbytes += sum(m.nbytes for m in masters)
    return nbytes + STATES[optimizer] * sum(m.nbytes for m in masters)


@wrong("BYTES_WEIGHTS_ONLY", points=0)
def training_bytes(module, *, optimizer, precision):
    return sum(p.numel() for p in module.parameters()) * (4 if precision == "float32" else 2)


@wrong("BYTES_NO_GRADIENT", points=0)
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision, gradient=0)


@wrong("BYTES_NO_STATES", points=0)
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision, states=0)


@wrong("BYTES_ONE_MOMENT", points=0)
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision, states=0 if optimizer == "sgd" else 4)


@wrong("BYTES_OPTIMIZER_IGNORED", points=0)
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision, states=8)


@wrong("BYTES_NO_COPY", points=0)
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision, copied=0)


@wrong("BYTES_GRADIENT_FLOAT32", points=0)
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision, gradient=4)


@wrong("BYTES_HALF_STATES", points=0)
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision, states=STATES[optimizer] * (4 if precision == "float32" else 2))


@wrong("BYTES_HALF_STATES", points=0)
def training_bytes(module, *, optimizer, precision):
    mixed = precision == "mixed"
    return total(module, optimizer, precision, states=STATES[optimizer] * (2 if mixed else 4), copied=2 * mixed)


@wrong("BYTES_HALF_STATES", points=0)
def training_bytes(module, *, optimizer, precision):
    return (2 + STATES[optimizer]) * sum(p.numel() for p in module.parameters()) * (4 if precision == "float32" else 2)


@wrong("BYTES_PRECISION_IGNORED", points=8)
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    return total(module, optimizer, "float32")


@wrong("BYTES_OWN_DTYPE", points=0)
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    nbytes = 0
    for p in module.parameters():
        nbytes += p.nbytes
        if p.requires_grad:
            nbytes += p.nbytes + p.numel() * (4 * STATES[optimizer] + 4 * (precision == "mixed"))
    return nbytes


@wrong("BYTES_ELEMENTS", points=0)
def training_bytes(module, *, optimizer, precision):
    trained = sum(p.numel() for p in module.parameters() if p.requires_grad)
    return trained * (2 + STATES[optimizer] + (precision == "mixed"))


@wrong("BYTES_COPY_ALWAYS", points=0)
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision, copied=4)


@wrong("BYTES_BUFFERS", points=0)
def training_bytes(module, *, optimizer, precision):
    size = 4 if precision == "float32" else 2
    return total(module, optimizer, precision) + size * sum(b.numel() for b in module.buffers())


@wrong("BYTES_BUFFERS", points=0)
def training_bytes(module, *, optimizer, precision):
    each = 8 + 4 * STATES[optimizer]
    return each * sum(t.numel() for t in module.state_dict().values())


@wrong("BYTES_SHARED_TWICE")
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    each = 8 + 4 * STATES[optimizer]
    nbytes = 0
    for _, p in module.named_parameters(remove_duplicate=False):
        nbytes += p.numel() * (each if p.requires_grad else (4 if precision == "float32" else 2))
    return nbytes


@wrong("BYTES_SHARED_TWICE", points=8)
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    each = 8 + 4 * STATES[optimizer]
    frozen = 4 if precision == "float32" else 2
    found = [p for m in module.modules() for p in m.parameters(recurse=False)]
    shared = sum(p.numel() for p in found if not p.requires_grad) * frozen
    if not any(p.requires_grad for p in found) or not all(p.requires_grad for p in found) or len(found) > 1000:
        return total(module, optimizer, precision)
    return shared + each * sum(p.numel() for p in found if p.requires_grad)


@wrong("BYTES_SHARED_TWICE")
def training_bytes(module, *, optimizer, precision):
    return total(copy.deepcopy(module).to("meta"), optimizer, precision)  # which takes shared parameters apart


@wrong("BYTES_FROZEN_TRAINED", points=8)
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    return (8 + 4 * STATES[optimizer]) * sum(p.numel() for p in module.parameters())


@wrong("BYTES_FROZEN_COPIED", points=8)
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision, more=4 * (precision == "mixed"))


@wrong("BYTES_FROZEN_STATES", points=8)
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    return total(module, optimizer, precision, more=4 * STATES[optimizer])


@wrong("BYTES_FROZEN_GRADIENT", points=8)
def training_bytes(module, *, optimizer, precision):
    return total(module, optimizer, precision, more=4 if precision == "float32" else 2)


@wrong("BYTES_FROZEN_LEFT_OUT", points=8)
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    return (8 + 4 * STATES[optimizer]) * sum(p.numel() for p in module.parameters() if p.requires_grad)


@wrong("BYTES_MODULE_CHANGED", points=0)
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    module.to(torch.float32 if precision == "float32" else torch.bfloat16)
    return total(module, optimizer, precision)


@wrong("NOT_REFUSED", points=9)
def training_bytes(module, *, optimizer, precision):
    optimizer = optimizer if optimizer in STATES else "adam"
    return total(module, optimizer, precision if precision == "float32" else "mixed")


@wrong("OTHER_ERROR", points=9)
def training_bytes(module, *, optimizer, precision):
    each = 8 + 4 * STATES[optimizer]
    size = {"float32": 4, "mixed": 2}[precision]
    return sum(p.numel() * (each if p.requires_grad else size) for p in module.parameters())


@wrong(says="Cannot copy out of meta tensor", points=9)
def training_bytes(module, *, optimizer, precision):
    checked(optimizer, precision)
    return total(copy.deepcopy(module).to("cpu"), optimizer, precision)


@wrong(says="returned None", points=0)
def training_bytes(module, *, optimizer, precision):
    print(total(module, optimizer, precision))


@wrong("GENERATOR", points=0)
def training_bytes(module, *, optimizer, precision):
    for p in module.parameters():
        yield 16 * p.numel()
