# ruff: noqa: B905, F811
from functools import partial

import torch
import torch.distributed as dist
from torch import nn

from tests.grading.bank import right, wrong


class Base(nn.Module):
    """A plain right answer, cut into methods so that a wrong one changes a few lines."""

    def __init__(self, module, *, bucket_bytes):
        super().__init__()
        self.module = module
        self.copy_start()
        self.plan(bucket_bytes)
        self.hook()

    def copy_start(self):
        for tensor in [*self.module.parameters(), *self.module.buffers()]:
            dist.broadcast(tensor.detach(), 0)

    def to_send(self):
        return [p for p in self.module.parameters() if p.requires_grad]

    def plan(self, bucket_bytes):
        self.buckets, size = [], 0
        for p in reversed(self.to_send()):
            if not self.buckets or size + p.nbytes > bucket_bytes:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += p.nbytes
        self.reset()

    def reset(self):
        self.seen, self.sent = set(), []

    def hook(self):
        for p in {id(p): p for p in self.to_send()}.values():
            p.register_post_accumulate_grad_hook(self.ready)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def is_full(self, bucket):
        return all(id(p) in self.seen for p in bucket)

    def ready(self, p):
        self.seen.add(id(p))
        while len(self.sent) < len(self.buckets) and self.is_full(self.buckets[len(self.sent)]):
            self.send(self.buckets[len(self.sent)])

    def flatten(self, bucket):
        return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1) for p in bucket])

    def send(self, bucket):
        flat = self.flatten(bucket) / dist.get_world_size()
        self.sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))

    def send_rest(self):
        for bucket in self.buckets[len(self.sent) :]:
            self.send(bucket)

    def write(self, bucket, flat):
        for p, grad in zip(bucket, flat.split([p.numel() for p in bucket])):
            p.grad = grad.view_as(p)

    def finish(self):
        self.send_rest()
        for bucket, flat, handle in self.sent:
            handle.wait()
            self.write(bucket, flat)
        self.reset()


@right("the plain one")
class DataParallel(Base):
    """As it stands."""


@right("counts down, divides afterwards, flat tensors made once")
class DataParallel(nn.Module):
    def __init__(self, module, *, bucket_bytes=1 << 20):
        super().__init__()
        self.module = module
        with torch.no_grad():
            for tensor in module.state_dict().values():
                dist.broadcast(tensor, src=0)
        self.buckets = []
        for p in reversed([p for p in module.parameters() if p.requires_grad]):
            last = self.buckets[-1] if self.buckets else None
            if last is None or last["bytes"] + p.numel() * p.element_size() > bucket_bytes:
                last = {"params": [], "bytes": 0}
                self.buckets.append(last)
            last["params"].append(p)
            last["bytes"] += p.numel() * p.element_size()
        for bucket in self.buckets:
            bucket["flat"] = torch.zeros(sum(p.numel() for p in bucket["params"]))
            bucket["left"] = len(bucket["params"])
            at = 0
            for p in bucket["params"]:
                place = slice(at, at + p.numel())
                at += p.numel()
                p.register_post_accumulate_grad_hook(partial(self.arrived, bucket, place))
        self.next = 0
        self.handles = []

    def forward(self, x):
        return self.module(x)

    def arrived(self, bucket, place, p):
        bucket["flat"][place] = p.grad.flatten()
        bucket["left"] -= 1
        while self.next < len(self.buckets) and self.buckets[self.next]["left"] == 0:
            self.launch()

    def launch(self):
        self.handles.append(dist.all_reduce(self.buckets[self.next]["flat"], async_op=True))
        self.next += 1

    def finish(self):
        while self.next < len(self.buckets):
            self.launch()
        for handle, bucket in zip(self.handles, self.buckets):
            handle.wait()
            mean = bucket["flat"] / dist.get_world_size()
            at = 0
            for p in bucket["params"]:
                p.grad = mean[at : at + p.numel()].reshape(p.shape).clone()
                at += p.numel()
            bucket["flat"].zero_()
            bucket["left"] = len(bucket["params"])
        self.next, self.handles = 0, []


@right("buckets from the first parameter on, sent from the back, through futures")
class DataParallel(Base):
    def plan(self, bucket_bytes):
        groups, size = [[]], 0
        for p in self.to_send():
            if groups[-1] and size + p.nbytes > bucket_bytes:
                groups.append([])
                size = 0
            groups[-1].append(p)
            size += p.nbytes
        self.buckets = groups[::-1]
        self.reset()

    def send(self, bucket):
        flat = self.flatten(bucket)
        self.sent.append((bucket, flat, dist.all_reduce(flat, async_op=True).get_future()))

    def finish(self):
        self.send_rest()
        for bucket, flat, future in self.sent:
            future.wait()
            self.write(bucket, flat / dist.get_world_size())
        self.reset()


@right("hooks on the tensors, gradients kept aside")
class DataParallel(Base):
    def reset(self):
        self.kept, self.sent = {}, []

    def hook(self):
        for p in self.to_send():
            p.register_hook(partial(self.keep, p))

    def keep(self, p, grad):
        self.kept[id(p)] = grad.clone()
        while len(self.sent) < len(self.buckets) and self.is_full(self.buckets[len(self.sent)]):
            self.send(self.buckets[len(self.sent)])

    def is_full(self, bucket):
        return all(id(p) in self.kept for p in bucket)

    def flatten(self, bucket):
        return torch.cat([self.kept.get(id(p), torch.zeros_like(p)).reshape(-1) for p in bucket])


@right("agrees on who has a gradient, and leaves None where nobody has")
class DataParallel(Base):
    def finish(self):
        self.send_rest()
        holders = torch.tensor([float(p.grad is not None) for b in self.buckets for p in b])
        dist.all_reduce(holders)
        counts = iter(holders.tolist())
        for bucket, flat, handle in self.sent:
            handle.wait()
            for p, grad in zip(bucket, flat.split([p.numel() for p in bucket])):
                if next(counts):
                    p.grad = grad.view_as(p)
        self.reset()


@wrong("NO_START_COPY", points=14)
class DataParallel(Base):
    def copy_start(self):
        torch.manual_seed(0)


@wrong("BUFFERS_FORGOTTEN", points=14)
class DataParallel(Base):
    def copy_start(self):
        for p in self.module.parameters():
            dist.broadcast(p.data, 0)


@wrong("FROZEN_SKIPPED", points=14)
class DataParallel(Base):
    def copy_start(self):
        for tensor in [*self.to_send(), *self.module.buffers()]:
            dist.broadcast(tensor.detach(), 0)


@wrong("SUM_NOT_AVERAGE", points=3)
class DataParallel(Base):
    def send(self, bucket):
        flat = self.flatten(bucket)
        self.sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))


@wrong("DIVIDED_TWICE", points=3)
class DataParallel(Base):
    def write(self, bucket, flat):
        super(type(self), self).write(bucket, flat / dist.get_world_size())


@wrong("COPY_REDUCED", points=3)
class DataParallel(Base):
    def write(self, bucket, flat):
        for p, grad in zip(bucket, flat.split([p.numel() for p in bucket])):
            grad = grad.view_as(p)


@wrong("NOTHING_SENT", points=3)
class DataParallel(Base):
    def ready(self, p):
        self.seen.add(id(p))

    def finish(self):
        self.reset()


@wrong("NO_EARLY_START", points=14)
class DataParallel(Base):
    def hook(self):
        pass


@wrong("NO_EARLY_START", points=14)
class DataParallel(Base):
    def ready(self, p):
        self.seen.add(id(p))
        if len(self.seen) == len(self.to_send()):
            self.send_rest()


@wrong("WAITS_IN_HOOK", points=14)
class DataParallel(Base):
    def send(self, bucket):
        flat = self.flatten(bucket) / dist.get_world_size()
        handle = dist.all_reduce(flat, async_op=True)
        handle.wait()
        self.sent.append((bucket, flat, handle))


@wrong("WAITS_IN_HOOK", points=14)
class DataParallel(Base):
    def send(self, bucket):
        flat = self.flatten(bucket) / dist.get_world_size()
        dist.all_reduce(flat)
        self.sent.append((bucket, flat))

    def finish(self):
        self.send_rest()
        for bucket, flat in self.sent:
            self.write(bucket, flat)
        self.reset()


@wrong("ONE_CALL_A_PARAMETER", points=15)
class DataParallel(Base):
    def plan(self, bucket_bytes):
        self.buckets = [[p] for p in reversed(self.to_send())]
        self.reset()


@wrong("BUCKET_TOO_BIG", points=13)
class DataParallel(Base):
    def plan(self, bucket_bytes):
        self.buckets = [list(reversed(self.to_send()))]
        self.reset()


@wrong("BUCKET_TOO_BIG", points=15)
class DataParallel(Base):
    def plan(self, bucket_bytes):  # opens a new bucket one parameter too late
        self.buckets, size = [[]], 0
        for p in reversed(self.to_send()):
            if size > bucket_bytes:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += p.nbytes
        self.reset()


@wrong("BUCKET_TOO_BIG", points=13)
class DataParallel(Base):
    def plan(self, bucket_bytes):  # counts numbers, not bytes
        self.buckets, size = [], 0
        for p in reversed(self.to_send()):
            if not self.buckets or size + p.numel() > bucket_bytes:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += p.numel()
        self.reset()


@wrong("UNUSED_FORGOTTEN", points=14)
class DataParallel(Base):
    def send_rest(self):
        pass


@wrong("UNUSED_FORGOTTEN", points=14)
class DataParallel(Base):
    def send(self, bucket):
        bucket = [p for p in bucket if p.grad is not None]
        if bucket:
            super(type(self), self).send(bucket)


@wrong("UNUSED_FORGOTTEN", points=14)
class DataParallel(Base):
    def flatten(self, bucket):
        return torch.cat([p.grad.reshape(-1) for p in bucket])


@wrong("TIED_TWICE", points=15)
class DataParallel(Base):
    def to_send(self):
        return [p for _, p in self.module.named_parameters(remove_duplicate=False) if p.requires_grad]


@wrong("FROZEN_TOUCHED", points=15)
class DataParallel(Base):
    def to_send(self):
        return list(self.module.parameters())

    def hook(self):
        for p in self.to_send():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(self.ready)


@wrong("NOT_RESET")
class DataParallel(Base):
    def finish(self):
        self.send_rest()
        for bucket, flat, handle in self.sent:
            handle.wait()
            self.write(bucket, flat)
        self.seen = set()


@wrong("ORDER_BY_HOOKS")
class DataParallel(Base):
    def ready(self, p):
        self.seen.add(id(p))
        for bucket in self.buckets:
            if self.is_full(bucket) and not any(bucket is other for other, _, _ in self.sent):
                self.send(bucket)

    def send_rest(self):
        sent = [bucket for bucket, _, _ in self.sent]
        for bucket in self.buckets:
            if not any(bucket is other for other in sent):
                self.send(bucket)


@wrong("ORDER_BY_HOOKS")
class DataParallel(Base):
    """Plans its buckets in the order of the first backward's hooks."""

    def plan(self, bucket_bytes):
        self.limit = bucket_bytes
        self.waiting = []
        self.reset()

    def ready(self, p):
        self.seen.add(id(p))
        if self.waiting and sum(q.nbytes for q in self.waiting) + p.nbytes > self.limit:
            self.send(self.waiting)
            self.waiting = []
        self.waiting.append(p)

    def send_rest(self):
        missing = [p for p in self.to_send() if id(p) not in self.seen]
        for bucket in [self.waiting, *([p] for p in missing)]:
            if bucket:
                self.send(bucket)
        self.waiting = []


@wrong("HANDLE_NOT_WAITED", points=3)
class DataParallel(Base):
    def finish(self):
        self.send_rest()
        for bucket, flat, _ in self.sent:
            self.write(bucket, flat)
        self.reset()


@wrong("FORWARD_CHANGED")
class DataParallel(Base):
    def forward(self, x):
        return x


@wrong(says="is missing the required", points=2)
class DataParallel(nn.Module):
    def __init__(self, module, *, bucket_bytes):
        super().__init__()
        self.module = module
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.detach(), 0)

    def finish(self):
        for p in self.module.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


@wrong(says="has no attribute 'finish'")
class DataParallel(nn.parallel.DistributedDataParallel):
    def __init__(self, module, *, bucket_bytes):
        super().__init__(module, bucket_cap_mb=bucket_bytes / 2**20)


@wrong(says="`.module` is a Sequential")
class DataParallel(Base):
    def __init__(self, module, *, bucket_bytes):
        super(type(self), self).__init__(module, bucket_bytes=bucket_bytes)
        self.module = nn.Sequential(module)


@wrong("NOTHING_SENT", points=3)
class DataParallel(Base):
    """All-reduces the loss, through its forward, instead of the gradients."""

    def forward(self, x):
        return self.module(x)

    def ready(self, p):
        pass

    def finish(self):
        pass


@wrong(says="a step sends 2.00 times the gradients", points=14)
class DataParallel(Base):
    """Sums one after the other: once per bucket, once more in finish."""

    def write(self, bucket, flat):
        dist.all_reduce(flat)
        super(type(self), self).write(bucket, flat / dist.get_world_size())


@right("futures, in a helper of its own")
class DataParallel(Base):
    def send(self, bucket):
        flat = self.flatten(bucket) / dist.get_world_size()

        def start():
            return dist.all_reduce(flat, async_op=True).get_future()

        self.sent.append((bucket, flat, start()))


@right("asks until each is done")
class DataParallel(Base):
    def finish(self):
        self.send_rest()
        for bucket, flat, handle in self.sent:
            while not handle.is_completed():
                pass
            self.write(bucket, flat)
        self.reset()


@wrong("BUCKET_TOO_BIG", points=15)
class DataParallel(Base):
    def plan(self, bucket_bytes):  # a parameter larger than a bucket joins the one that is open
        self.buckets, size = [], 0
        for p in reversed(self.to_send()):
            if not self.buckets or (p.nbytes <= bucket_bytes and size + p.nbytes > bucket_bytes):
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += p.nbytes
        self.reset()
