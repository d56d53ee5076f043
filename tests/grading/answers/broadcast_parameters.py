# ruff: noqa: B905, F811
import torch
import torch.distributed as dist
from torch import nn

from tests.grading.bank import right, wrong


@right("plain loop over data")
def broadcast_parameters(module, src=0):
    for p in module.parameters():
        dist.broadcast(p.data, src)
    for b in module.buffers():
        dist.broadcast(b, src)


@right("through state_dict")
def broadcast_parameters(module, src=0):
    with torch.no_grad():
        for tensor in module.state_dict().values():
            dist.broadcast(tensor, src=src)


@right("one flat message for the floats, then the rest")
def broadcast_parameters(module, src=0):
    tensors = [*module.parameters(), *module.buffers()]
    floats = [t for t in tensors if t.dtype == torch.float32]
    flat = torch.cat([t.detach().reshape(-1) for t in floats])
    dist.broadcast(flat, src)
    with torch.no_grad():
        for t, numbers in zip(floats, flat.split([t.numel() for t in floats])):
            t.copy_(numbers.view_as(t))
    for t in tensors:
        if t.dtype != torch.float32:
            dist.broadcast(t.detach(), src)


@right("as one object, then load_state_dict")
def broadcast_parameters(module, src=0):
    state = [module.state_dict() if dist.get_rank() == src else None]
    dist.broadcast_object_list(state, src=src)
    if dist.get_rank() != src:
        module.load_state_dict(state[0])


@right("by hand with send and recv")
def broadcast_parameters(module, src=0):
    rank, n = dist.get_rank(), dist.get_world_size()
    for t in [*module.parameters(), *module.buffers()]:
        if rank == src:
            for other in range(n):
                if other != src:
                    dist.send(t.detach(), other)
        else:
            dist.recv(t.detach(), src)


@right("the parameters as they are")
def broadcast_parameters(module, src=0):
    if dist.get_world_size() == 1:
        return
    with torch.no_grad():
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t, src=src)


@right("torch's own, of DistributedDataParallel")
def broadcast_parameters(module, src=0):
    from torch.distributed.utils import _sync_module_states

    _sync_module_states(module, dist.group.WORLD, 1 << 20, src, [])


@right("asynchronous, written back afterwards")
def broadcast_parameters(module, src=0):
    sent = []
    for t in [*module.parameters(), *module.buffers()]:
        value = t.detach().clone()
        sent.append((t, value, dist.broadcast(value, src, async_op=True)))
    for t, value, handle in sent:
        handle.wait()
        t.data = value


@wrong("BUFFERS_FORGOTTEN", points=5)
def broadcast_parameters(module, src=0):
    for p in module.parameters():
        dist.broadcast(p.data, src)


@wrong("FROZEN_SKIPPED", points=0)
def broadcast_parameters(module, src=0):
    for p in module.parameters():
        if p.requires_grad:
            dist.broadcast(p.data, src)
    for b in module.buffers():
        dist.broadcast(b, src)


@wrong("SRC_IGNORED", points=6)
def broadcast_parameters(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        dist.broadcast(t.detach(), 0)


@wrong("COPY_RECEIVED", points=0)
def broadcast_parameters(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        copy = t.detach().clone()
        dist.broadcast(copy, src)


@wrong("COPY_RECEIVED", points=0)
def broadcast_parameters(module, src=0):
    for p in module.parameters():
        value = p.data + 0
        dist.broadcast(value, src)
        p = value
    for b in module.buffers():
        value = b + 0
        dist.broadcast(value, src)
        b = value


@wrong("AVERAGED_START", points=0)
def broadcast_parameters(module, src=0):
    for p in module.parameters():
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()
    for b in module.buffers():
        dist.broadcast(b, src)


@wrong("SUMMED_START", points=0)
def broadcast_parameters(module, src=0):
    for p in module.parameters():
        dist.all_reduce(p.data)
    for b in module.buffers():
        dist.all_reduce(b)


@wrong("NEW_PARAMETERS", points=6)
def broadcast_parameters(module, src=0):
    for child in module.values():
        for name, p in list(child.named_parameters(recurse=False)):
            value = p.detach().clone()
            dist.broadcast(value, src)
            new = nn.Parameter(value, requires_grad=p.requires_grad)
            new.grad = p.grad
            setattr(child, name, new)
    for b in module.buffers():
        dist.broadcast(b, src)


@wrong("NOT_ALL_CALL", points=0)
def broadcast_parameters(module, src=0):
    if dist.get_rank() == src:
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.detach(), src)


@wrong("NOT_ALL_CALL", points=0)
def broadcast_parameters(module, src=0):
    if dist.get_rank() == src:
        return
    for t in [*module.parameters(), *module.buffers()]:
        dist.broadcast(t.detach(), src)


@wrong("ORDER_DIFFERS", points=0)
def broadcast_parameters(module, src=0):
    tensors = [*module.parameters(), *module.buffers()]
    for t in sorted(tensors, key=lambda t: t.float().sum().item()):
        dist.broadcast(t.detach(), src)


@wrong("NOTHING_SENT", points=0)
def broadcast_parameters(module, src=0):
    torch.manual_seed(src)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape))


@wrong("GENERATOR", points=0)
def broadcast_parameters(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        yield dist.broadcast(t.detach(), src)


@wrong(says="correct, but 2.00 times the bytes travel", points=6)
def broadcast_parameters(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        if dist.get_rank() != src:
            t.detach().zero_()
        dist.all_reduce(t.detach())


@wrong(says="the gradient of `first.weight` was changed", points=5)
def broadcast_parameters(module, src=0):
    for p in module.parameters():
        dist.broadcast(p.data, src)
        if p.grad is not None:
            dist.broadcast(p.grad, src)
    for b in module.buffers():
        dist.broadcast(b, src)


@wrong(says="has another `requires_grad` than before", points=6)
def broadcast_parameters(module, src=0):
    for p in module.parameters():
        p.requires_grad_(False)
        dist.broadcast(p, src)
        p.requires_grad_(True)
    for b in module.buffers():
        dist.broadcast(b, src)


@wrong(says="`first.bias` on rank 1 is unchanged", points=0)
def broadcast_parameters(module, src=0):
    for name, p in module.named_parameters():
        if name.endswith("weight"):
            dist.broadcast(p.data, src)


@wrong(says="is not rank 0's", points=0)
def broadcast_parameters(module, src=0):
    n = dist.get_world_size()
    for t in [*module.parameters(), *module.buffers()]:
        dist.broadcast(t.detach(), n - 1 - src)


@wrong(says="`first.weight` on rank 0 is now a float64", points=0)
def broadcast_parameters(module, src=0):
    for t in [*module.parameters(), *module.buffers()]:
        value = t.detach().double()
        dist.broadcast(value, src)
        t.data = value
