# ruff: noqa: B905, F811
import contextlib

import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


@right("no_sync for all but the last")
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    for k, (x, y) in enumerate(microbatches):
        quiet = ddp.no_sync() if k < len(microbatches) - 1 else contextlib.nullcontext()
        with quiet:
            (loss_fn(ddp(x), y) * len(x) / total).backward()


@right("one after the block, in reversed order")
def accumulate_without_sync(ddp, microbatches, loss_fn):
    sizes = torch.tensor([float(len(x)) for x, _ in microbatches])
    shares = sizes / sizes.sum()
    *rest, last = list(zip(shares, microbatches))[::-1]
    with ddp.no_sync():
        for share, (x, y) in rest:
            loss = share * loss_fn(ddp(x), y)
            loss.backward()
    share, (x, y) = last
    loss = loss_fn(ddp(x), y) * share
    loss.backward()
    return loss.item()


@right("sums, then one division of the gradients by hand")
def accumulate_without_sync(ddp, microbatches, loss_fn):
    with ddp.no_sync():
        for x, y in microbatches[:-1]:
            (len(x) * loss_fn(ddp(x), y)).backward()
    x, y = microbatches[-1]
    (len(x) * loss_fn(ddp(x), y)).backward()
    total = sum(len(x) for x, _ in microbatches)
    for p in ddp.parameters():
        p.grad /= total


@right("all quiet, then one all-reduce of its own, global count")
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = torch.tensor(float(sum(len(x) for x, _ in microbatches)))
    dist.all_reduce(total)
    with ddp.no_sync():
        for x, y in microbatches:
            (loss_fn(ddp(x), y) * len(x) / total).backward()
    for p in ddp.parameters():
        dist.all_reduce(p.grad)


@right("one graph of all losses, one backward")
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    output = ddp(torch.cat([x for x, _ in microbatches])).split([len(x) for x, _ in microbatches])
    sum(loss_fn(o, y) * len(y) for o, (_, y) in zip(output, microbatches)).div(total).backward()


@right("all but the last through the module itself")
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    *first, (last_x, last_y) = microbatches
    for x, y in first:
        (loss_fn(ddp.module(x), y) * len(x) / total).backward()
    (loss_fn(ddp(last_x), last_y) * len(last_x) / total).backward()


@wrong("SYNCS_EVERY_PAIR", points=6)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    for x, y in microbatches:
        (loss_fn(ddp(x), y) * len(x) / total).backward()


@wrong("SYNCS_EVERY_PAIR", points=6)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    for k, (x, y) in enumerate(microbatches):
        loss = loss_fn(ddp(x), y) * len(x) / total
        with ddp.no_sync() if k < len(microbatches) - 1 else contextlib.nullcontext():
            loss.backward()


@wrong("SYNCS_TWICE", points=6)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    with ddp.no_sync():
        for x, y in microbatches[:-1]:
            (loss_fn(ddp(x), y) * len(x) / total).backward()
    x, y = microbatches[-1]
    (loss_fn(ddp(x), y) * len(x) / total).backward()
    for p in ddp.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


@wrong("NEVER_SYNCS", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    with ddp.no_sync():
        for x, y in microbatches:
            (loss_fn(ddp(x), y) * len(x) / total).backward()


@wrong("BYPASSED", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    for x, y in microbatches:
        (loss_fn(ddp.module(x), y) * len(x) / total).backward()


@wrong("SUM_OF_MEANS", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    with ddp.no_sync():
        for x, y in microbatches[:-1]:
            loss_fn(ddp(x), y).backward()
    x, y = microbatches[-1]
    loss_fn(ddp(x), y).backward()


@wrong("MEAN_OF_MEANS", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    m = len(microbatches)
    with ddp.no_sync():
        for x, y in microbatches[:-1]:
            (loss_fn(ddp(x), y) / m).backward()
    x, y = microbatches[-1]
    (loss_fn(ddp(x), y) / m).backward()


@wrong("SCALED_BY_SIZE_ONLY", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    with ddp.no_sync():
        for x, y in microbatches[:-1]:
            (loss_fn(ddp(x), y) * len(x)).backward()
    x, y = microbatches[-1]
    (loss_fn(ddp(x), y) * len(x)).backward()


@wrong("ONLY_LAST_PAIR", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    with ddp.no_sync():
        for x, y in microbatches[:-1]:
            ddp.zero_grad()
            (loss_fn(ddp(x), y) * len(x) / total).backward()
    ddp.zero_grad()
    x, y = microbatches[-1]
    (loss_fn(ddp(x), y) * len(x) / total).backward()


@wrong("ONLY_LAST_PAIR", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    for x, y in microbatches:
        loss = loss_fn(ddp(x), y)
    loss.backward()


@wrong("OPTIMIZER_CALLED", points=7)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    with ddp.no_sync():
        for x, y in microbatches[:-1]:
            (loss_fn(ddp(x), y) * len(x) / total).backward()
    x, y = microbatches[-1]
    (loss_fn(ddp(x), y) * len(x) / total).backward()
    optimizer.step()


@wrong("GENERATOR", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    for x, y in microbatches:
        loss = loss_fn(ddp(x), y) * len(x) / total
        loss.backward()
        yield loss.item()


@wrong(says="the gradient of `0.weight` on rank 0 is None", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    return sum(loss_fn(ddp(x), y).item() for x, y in microbatches) / len(microbatches)


@wrong(says="your gradient is 0.33 times the reference", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches) * dist.get_world_size()
    with ddp.no_sync():
        for x, y in microbatches[:-1]:
            (loss_fn(ddp(x), y) * len(x) / total).backward()
    x, y = microbatches[-1]
    (loss_fn(ddp(x), y) * len(x) / total).backward()


@wrong(says="where", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    with ddp.no_sync():
        for x, y in microbatches[:-1]:
            (loss_fn(ddp(x), y) * len(x) / total).backward()
    x, y = microbatches[-1]
    loss_fn(ddp(x), y).backward()  # the last one was forgotten


@wrong(says="the gradient of `0.weight` on rank 0 is None", points=0)
def accumulate_without_sync(ddp, microbatches, loss_fn):
    total = sum(len(x) for x, _ in microbatches)
    with torch.no_grad(), ddp.no_sync():
        for x, y in microbatches:
            loss_fn(ddp(x), y) * len(x) / total
