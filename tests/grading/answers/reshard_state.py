# ruff: noqa: F811
import copy

import torch

from tests.grading.bank import right, wrong


def check(shards, dims, n):
    if not shards or n < 1 or any(shard.keys() != dims.keys() for shard in shards):
        raise ValueError("names, shards or n do not fit")
    for name, dim in dims.items():
        parts = [shard[name] for shard in shards]
        if dim is not None and not 0 <= dim < parts[0].dim():
            raise ValueError(f"{name} has no dim {dim}")
        kinds = {(t.dtype, t.dim(), tuple(k for d, k in enumerate(t.shape) if d != dim)) for t in parts}
        if len(kinds) > 1:
            raise ValueError(f"{name}: the parts do not fit together")


def own(tensor):
    return tensor.clone(memory_format=torch.contiguous_format)


def wholes(shards, dims):
    return {
        name: shards[0][name] if dim is None else torch.cat([shard[name] for shard in shards], dim)
        for name, dim in dims.items()
    }


def apart(whole, dims, n, cut=torch.tensor_split, own=own):
    made = [{} for _ in range(n)]
    for name, tensor in whole.items():
        parts = [tensor] * n if dims[name] is None else cut(tensor, n, dims[name])
        for shard, part in zip(made, parts, strict=False):
            shard[name] = own(part)
    return made


@right("joined, cut, cloned")
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    return apart(wholes(shards, dims), dims, n)


@right("never the whole: each new part is written from the old parts that it overlaps")
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    made = []
    for rank in range(n):
        mine = {}
        for name, dim in dims.items():
            first = shards[0][name]
            if dim is None:
                mine[name] = torch.empty_like(first).copy_(first)
                continue
            size = sum(shard[name].shape[dim] for shard in shards)
            each, more = divmod(size, n)
            start, stop = rank * each + min(rank, more), (rank + 1) * each + min(rank + 1, more)
            shape = list(first.shape)
            shape[dim] = stop - start
            mine[name], at = first.new_empty(shape), 0
            for shard in shards:
                length = shard[name].shape[dim]
                a, b = max(start, at), min(stop, at + length)
                if a < b:
                    mine[name].narrow(dim, a - start, b - a).copy_(shard[name].narrow(dim, a - at, b - a))
                at += length
        made.append(mine)
    return made


@right("torch's own errors turned into ValueError, a tuple of dicts, deep copies")
def reshard_state(shards, dims, n):
    if not shards or n < 1 or any(set(shard) != set(dims) for shard in shards):
        raise ValueError("names")
    if any(len({shard[name].dtype for shard in shards}) > 1 for name in dims):
        raise ValueError("dtypes")
    result = [{} for _ in range(n)]
    for name, dim in dims.items():
        old = [shard[name] for shard in shards]
        if dim is None:
            if any(t.shape != old[0].shape for t in old):
                raise ValueError("shapes")
            new = [copy.deepcopy(old[0]) for _ in range(n)]
        else:
            try:
                new = [t.contiguous().clone() for t in torch.cat(old, dim=dim).tensor_split(n, dim=dim)]
            except (RuntimeError, IndexError) as error:
                raise ValueError(str(error)) from None
        for shard, tensor in zip(result, new, strict=True):
            shard[name] = tensor
    return tuple(result)


@right("by index_select, which copies; names in another order")
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    made = [{} for _ in range(n)]
    for name in sorted(dims):
        dim = dims[name]
        old = [shard[name] for shard in shards]
        if dim is None:
            for shard in made:
                shard[name] = old[-1].clone()
        else:
            whole = torch.cat(old, dim)
            for shard, rows in zip(made, torch.arange(whole.shape[dim]).tensor_split(n), strict=True):
                shard[name] = whole.index_select(dim, rows)
    return made


@wrong("RESHARD_DIM_IGNORED", points=1)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    whole = {k: shards[0][k] if d is None else torch.cat([s[k] for s in shards]) for k, d in dims.items()}
    return apart(whole, {k: None if d is None else 0 for k, d in dims.items()}, n)


@wrong("RESHARD_DIM_IGNORED")
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    return apart(wholes(shards, dims), {k: None if d is None else 0 for k, d in dims.items()}, n)


@wrong("RESHARD_CHUNK")
def reshard_state(shards, dims, n):
    check(shards, dims, n)

    def cut(tensor, n, dim):
        parts = tensor.chunk(n, dim)
        return [*parts, *[parts[0].narrow(dim, 0, 0)] * (n - len(parts))]

    return apart(wholes(shards, dims), dims, n, cut)


@wrong("RESHARD_BIGGER_LAST")
def reshard_state(shards, dims, n):
    check(shards, dims, n)

    def cut(tensor, n, dim):
        each = tensor.shape[dim] // n
        return tensor.split([each] * (n - 1) + [tensor.shape[dim] - each * (n - 1)], dim)

    return apart(wholes(shards, dims), dims, n, cut)


@wrong("RESHARD_BIGGER_LAST")
def reshard_state(shards, dims, n):
    check(shards, dims, n)

    def cut(tensor, n, dim):
        bounds = [k * tensor.shape[dim] // n for k in range(n + 1)]
        return [tensor.narrow(dim, a, b - a) for a, b in zip(bounds, bounds[1:], strict=False)]

    return apart(wholes(shards, dims), dims, n, cut)


@wrong("RESHARD_STRIDED")
def reshard_state(shards, dims, n):
    check(shards, dims, n)

    def cut(tensor, n, dim):
        return [tensor.index_select(dim, torch.arange(k, max(k, tensor.shape[dim]), n)) for k in range(n)]

    return apart(wholes(shards, dims), dims, n, cut)


@wrong("RESHARD_EACH_APART")
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    made = [{} for _ in range(n)]
    for name, dim in dims.items():
        for k in range(n):
            if dim is None:
                made[k][name] = own(shards[0][name])
            else:
                made[k][name] = torch.cat([shard[name].tensor_split(n, dim)[k] for shard in shards], dim)
    return made


@wrong("RESHARD_NO_REST")
def reshard_state(shards, dims, n):
    check(shards, dims, n)

    def cut(tensor, n, dim):
        each = tensor.shape[dim] // n
        return [tensor.narrow(dim, k * each, each) for k in range(n)]

    return apart(wholes(shards, dims), dims, n, cut)


@wrong("RESHARD_WHOLE_SUMMED", points=10)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    whole = wholes(shards, dims)
    for name, dim in dims.items():
        if dim is None and shards[0][name].is_floating_point():
            whole[name] = sum(shard[name] for shard in shards)
    return apart(whole, dims, n)


@wrong("RESHARD_WHOLE_JOINED")
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    whole = wholes(shards, dims)
    for name, dim in dims.items():
        if dim is None:
            whole[name] = torch.stack([shard[name] for shard in shards])
    return apart(whole, dims, n)


@wrong("RESHARD_WHOLE_JOINED")
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    whole = {
        k: torch.cat([s[k] for s in shards], d or 0) if shards[0][k].dim() else shards[0][k] for k, d in dims.items()
    }
    return apart(whole, dims, n)


@wrong("RESHARD_WHOLE_CUT")
def reshard_state(shards, dims, n):
    check(shards, dims, n)

    def cut(tensor, n, dim):
        return torch.tensor_split(tensor, n, dim) if tensor.dim() else [tensor] * n

    return apart(wholes(shards, dims), {k: d or 0 for k, d in dims.items()}, n, cut)


@wrong("RESHARD_VIEW", points=9)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    made = apart(wholes(shards, dims), dims, n, own=lambda tensor: tensor.contiguous())
    return [{k: t.clone() if dims[k] is None else t for k, t in shard.items()} for shard in made]


@wrong("RESHARD_VIEW", points=9)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    return apart(wholes(shards, dims), dims, n, own=lambda tensor: tensor)


@wrong("RESHARD_STRIDES", points=9)
def reshard_state(shards, dims, n):
    check(shards, dims, n)

    def own(tensor):
        return tensor.t().contiguous().t() if tensor.dim() == 2 else tensor.clone(memory_format=torch.contiguous_format)

    return apart(wholes(shards, dims), dims, n, own=own)


@wrong("RESHARD_SHARED", points=9)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    made = apart(wholes(shards, dims), dims, n)
    for name, dim in dims.items():
        if dim is None:
            for shard in made:
                shard[name] = made[0][name]
    return made


@wrong("RESHARD_SHARED", points=9)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    if n == len(shards) == 2:
        return [dict(shard) for shard in shards]
    return apart(wholes(shards, dims), dims, n)


@wrong("RESHARD_DTYPE", points=10)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    return apart(wholes(shards, dims), dims, n, own=lambda t: torch.tensor(t.tolist()).reshape(t.shape))


@wrong("RESHARD_INPUT_CHANGED", points=10)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    whole = {}
    for name, dim in dims.items():
        parts = [shard.pop(name) for shard in shards]
        whole[name] = parts[0] if dim is None else torch.cat(parts, dim)
    return apart(whole, dims, n)


@wrong("RESHARD_EMPTY_DROPPED", points=9)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    made = apart(wholes(shards, dims), dims, n)
    return [{name: t for name, t in shard.items() if t.numel()} for shard in made]


@wrong(says="`none` on new rank 0 is a float32 tensor of shape (0,)", points=9)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    made = apart(wholes(shards, dims), dims, n)
    return [{name: t if t.numel() else torch.zeros(0) for name, t in shard.items()} for shard in made]


@wrong("NOT_REFUSED", points=10)
def reshard_state(shards, dims, n):
    if not shards or n < 1:
        raise ValueError("nothing to do")
    return apart(wholes(shards, dims), dims, n)


@wrong("OTHER_ERROR", points=10)
def reshard_state(shards, dims, n):
    assert shards and n >= 1
    for shard in shards:
        assert shard.keys() == dims.keys()
    check(shards, dims, n)
    return apart(wholes(shards, dims), dims, n)


@wrong(says="a list of 3", points=1)
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    return dict(enumerate(apart(wholes(shards, dims), dims, n)))


@wrong("GENERATOR")
def reshard_state(shards, dims, n):
    check(shards, dims, n)
    yield from apart(wholes(shards, dims), dims, n)
