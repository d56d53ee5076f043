# ruff: noqa: F811
import queue
import threading

import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


@right("recv where it is needed, isend, waits at the end")
def pipeline_step(stage, actions, inputs, targets, *, shape):
    rank, last, m = dist.get_rank(), dist.get_world_size() - 1, len(inputs)
    held, sending, total = {}, [], 0.0
    for kind, k in actions:
        if kind == "F":
            x = inputs[k]
            if rank > 0:
                x = torch.empty(shape)
                dist.recv(x, rank - 1)
                x.requires_grad_()
            if rank == last:
                y = stage(x, targets[k]) / m
                total += y.item()
            else:
                y = stage(x)
                out = y.detach()
                sending.append((dist.isend(out, rank + 1), out))
            held[k] = x, y
        else:
            x, y = held.pop(k)
            grad = None
            if rank < last:
                grad = torch.empty(shape)
                dist.recv(grad, rank + 1)
            y.backward(grad)
            if rank > 0:
                sending.append((dist.isend(x.grad, rank - 1), x.grad))
    for handle, _ in sending:
        handle.wait()
    return total if rank == last else None


@right("all receives posted first, in the order in which they come")
def pipeline_step(stage, actions, inputs, targets, *, shape):
    rank, n, m = dist.get_rank(), dist.get_world_size(), len(inputs)
    coming, sending = {}, []
    for kind, k in actions:
        source = rank - 1 if kind == "F" else rank + 1
        if 0 <= source < n:
            buffer = torch.zeros(shape)
            coming[kind, k] = buffer, dist.irecv(buffer, source)

    def take(kind, k):
        buffer, handle = coming.pop((kind, k))
        handle.wait()
        return buffer

    graphs, losses = {}, []
    for kind, k in actions:
        if kind == "F":
            x = inputs[k] if rank == 0 else take("F", k).requires_grad_()
            y = stage(x, targets[k]) if rank == n - 1 else stage(x)
            if rank == n - 1:
                losses.append(y.detach())
            else:
                sending.append(dist.isend(y.detach().clone(), rank + 1))
            graphs[k] = x, y
        else:
            x, y = graphs.pop(k)
            torch.autograd.backward(y, torch.tensor(1.0 / m) if rank == n - 1 else take("B", k))
            if rank:
                sending.append(dist.isend(x.grad.clone(), rank - 1))
    for handle in sending:
        handle.wait()
    return torch.stack(losses).mean() if losses else None


@right("sends what still has its history, divides the gradient that goes in")
def pipeline_step(stage, actions, inputs, targets, *, shape):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    xs, ys, handles, losses = {}, {}, [], {}
    for kind, k in actions:
        if kind == "F":
            if rank == 0:
                xs[k] = inputs[k]
            else:
                xs[k] = torch.zeros(*shape, requires_grad=True)
                dist.recv(xs[k].data, rank - 1)
            if rank == last:
                losses[k] = stage(xs[k], targets[k])
                ys[k] = losses[k] / len(targets)
            else:
                ys[k] = stage(xs[k])
                handles += [dist.isend(ys[k], rank + 1)]
        elif rank == last:
            ys[k].backward()
        else:
            grad = torch.empty(shape)
            dist.recv(grad, rank + 1)
            ys[k].backward(grad)
        if kind == "B" and rank > 0:
            handles += [dist.isend(xs[k].grad, rank - 1)]
    [handle.wait() for handle in handles]
    if rank == last:
        return (sum(losses.values()) / len(losses)).item()


@right("torch.autograd.grad, gradients added by hand; one batch of operations an action")
def pipeline_step(stage, actions, inputs, targets, *, shape):
    rank, n, m = dist.get_rank(), dist.get_world_size(), len(inputs)
    parameters = list(stage.parameters())
    kept, sending, total = {}, [], torch.zeros(())
    for kind, k in actions:
        source, target = (rank - 1, rank + 1) if kind == "F" else (rank + 1, rank - 1)
        got = None
        if 0 <= source < n:
            got = torch.empty(shape)
            for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, got, source)]):
                work.wait()
        if kind == "F":
            x = inputs[k].clone().requires_grad_() if rank == 0 else got.requires_grad_()
            y = stage(x) if rank < n - 1 else stage(x, targets[k])
            kept[k] = (x, y)
            out = y.detach()
            if rank == n - 1:
                total += out / m
        else:
            x, y = kept.pop(k)
            seed = torch.ones(()) / m if rank == n - 1 else got
            out, *grads = torch.autograd.grad(y, [x, *parameters], seed)
            for p, g in zip(parameters, grads, strict=True):
                p.grad = g if p.grad is None else p.grad + g
        if 0 <= target < n:
            sending += dist.batch_isend_irecv([dist.P2POp(dist.isend, out, target)])
    while sending:
        sending.pop().wait()
    return total if rank == n - 1 else None


@right("keeps the input only and goes forward again before backward")
def pipeline_step(stage, actions, inputs, targets, *, shape):
    rank, last, m = dist.get_rank(), dist.get_world_size() - 1, len(inputs)
    kept, sent, loss = {}, [], 0

    def forward(k):
        return stage(kept[k], targets[k]) if rank == last else stage(kept[k])

    for kind, k in actions:
        if kind == "F":
            kept[k] = inputs[k]
            if rank:
                kept[k] = torch.empty(shape)
                dist.recv(kept[k], rank - 1)
            with torch.no_grad():
                y = forward(k)
            if rank == last:
                loss += float(y) / m
            else:
                sent.append(dist.isend(y, rank + 1))
        else:
            x = kept[k] = kept[k].detach().requires_grad_(rank > 0)
            y = forward(k)
            if rank == last:
                (y / m).backward()
            else:
                g = torch.empty(shape)
                dist.irecv(g, rank + 1).wait()
                y.backward(gradient=g)
            del kept[k]
            if rank:
                sent.append(dist.isend(x.grad, rank - 1))
    for work in sent:
        work.wait()
    return loss if rank == last else None


@right("waits for a send before the next one in that direction")
def pipeline_step(stage, actions, inputs, targets, *, shape):
    rank, last, m = dist.get_rank(), dist.get_world_size() - 1, len(inputs)
    held, under_way, losses = {}, {}, []

    def send(tensor, to):
        if to in under_way:
            under_way.pop(to)[0].wait()
        under_way[to] = dist.isend(tensor, to), tensor

    def receive(source):
        tensor = torch.empty(shape, dtype=torch.float32)
        dist.recv(tensor, src=source)
        return tensor

    for kind, k in actions:
        if kind == "F":
            x = receive(rank - 1).requires_grad_() if rank else inputs[k]
            y = stage(x, targets[k]) if rank == last else stage(x)
            held[k] = x, y
            if rank == last:
                losses.append(y.item())
            else:
                send(y.detach(), rank + 1)
        else:
            x, y = held.pop(k)
            (y / m).backward() if rank == last else y.backward(receive(rank + 1))
            if rank:
                send(x.grad, rank - 1)
    for handle, _ in under_way.values():
        handle.wait()
    return sum(losses) / m if rank == last else None


@right("a thread for each neighbour that it sends to")
def pipeline_step(stage, actions, inputs, targets, *, shape):
    rank, last, m = dist.get_rank(), dist.get_world_size() - 1, len(inputs)
    held, total, threads = {}, 0.0, []
    queues = {to: queue.Queue() for to in (rank - 1, rank + 1) if 0 <= to <= last}

    def work(to):
        while (tensor := queues[to].get()) is not None:
            dist.send(tensor, to)

    for to in queues:
        threads.append(threading.Thread(target=work, args=(to,)))
        threads[-1].start()
    for kind, k in actions:
        source = rank - 1 if kind == "F" else rank + 1
        came = inputs[k]
        if source in queues:
            came = torch.empty(shape)
            dist.recv(came, source)
        if kind == "F":
            x = came.requires_grad_(rank > 0)
            y = stage(x, targets[k]) if rank == last else stage(x)
            held[k] = x, y
            if rank == last:
                total += y.item() / m
            else:
                queues[rank + 1].put(y.detach())
        else:
            x, y = held.pop(k)
            y.backward(torch.tensor(1 / m) if rank == last else came)
            if rank:
                queues[rank - 1].put(x.grad)
    for q in queues.values():
        q.put(None)
    for thread in threads:
        thread.join()
    return total if rank == last else None


def step(
    stage, actions, inputs, targets, shape, *,
    input_grad=True, divide=None, send=None, one_buffer=False, skip=(), keep=lambda y: y, back=lambda x, y, g: x.grad,
    use=lambda y, g: y.backward(g), forward_sends=None, between=lambda: None, buffer=torch.empty, wait=True,
    which=lambda k: k, result=None,
):  # fmt: skip
    """The step with one thing done in another way."""
    rank, last, m = dist.get_rank(), dist.get_world_size() - 1, len(inputs)
    held, sending, losses = {}, [], []
    shared = buffer(shape)
    send = send or (lambda t, to: sending.append((dist.isend(t, to), t)))
    for kind, k in actions:
        if kind == "F":
            x = inputs[which(k)]
            if rank > 0:
                x = shared if one_buffer else buffer(shape)
                dist.recv(x, rank - 1)
                x = x.detach().requires_grad_(input_grad)
            if rank == last:
                y = stage(x, targets[which(k)])
                losses.append(y.item())
                y = y / (m if divide is None else divide)
            else:
                y = stage(x)
                (forward_sends or send)(y.detach(), rank + 1)
            held[k] = x, keep(y)
        elif k not in skip:
            x, y = held.pop(k)
            grad = None
            if rank < last:
                grad = buffer(shape)
                dist.recv(grad, rank + 1)
            use(y, grad)
            if rank > 0:
                send(back(x, y, grad), rank - 1)
        between()
    for handle, _ in sending if wait else ():
        handle.wait()
    if result is not None:
        return result(losses, m)
    return sum(losses) / m if rank == last else None


@wrong("SEND_HOLDS_UP", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, send=dist.send)


@wrong("SEND_HOLDS_UP", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, send=lambda t, to: dist.isend(t, to).wait())


@wrong("SEND_HOLDS_UP", says="waits until the activation that it sent has been received", points=14)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, forward_sends=dist.send)


@wrong("SEND_HOLDS_UP", says="waits until the gradient that it sent has been received", points=14)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    forward_sends = []
    loss = step(
        stage, actions, inputs, targets, shape, send=dist.send,
        forward_sends=lambda t, to: forward_sends.append((dist.isend(t, to), t)),
    )  # fmt: skip
    for handle, _ in forward_sends:
        handle.wait()
    return loss


@wrong("NO_INPUT_GRADIENT", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, input_grad=False)


@wrong("NO_INPUT_GRADIENT", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(
        stage, actions, inputs, targets, shape, input_grad=False,
        back=lambda x, y, g: torch.zeros(shape) if x.grad is None else x.grad,
    )  # fmt: skip


@wrong("NO_INPUT_GRADIENT", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(
        stage, actions, inputs, targets, shape, input_grad=False, back=lambda x, y, g: x.grad.contiguous()
    )  # fmt: skip


@wrong("DETACHED_KEPT", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, keep=lambda y: y.detach())


@wrong("LOSS_NOT_DIVIDED", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, divide=1)


@wrong("DIVIDED_BY_RANKS", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, divide=dist.get_world_size())


@wrong("BUFFER_REUSED", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, one_buffer=True)


@wrong("BUFFER_REUSED", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    rank, last, m = dist.get_rank(), dist.get_world_size() - 1, len(inputs)
    buffer = torch.empty(shape).requires_grad_()
    held, sending, losses = {}, [], []
    for kind, k in actions:
        if kind == "F":
            x = inputs[k] if rank == 0 else buffer
            if rank:
                dist.recv(buffer.data, rank - 1)
            y = stage(x, targets[k]) / m if rank == last else stage(x)
            held[k] = x, y
            if rank == last:
                losses.append(y.item())
            else:
                sending.append(dist.isend(y.detach(), rank + 1))
        else:
            x, y = held.pop(k)
            g = None if rank == last else torch.empty(shape)
            if rank < last:
                dist.recv(g, rank + 1)
            y.backward(g)
            if rank:
                sending.append(dist.isend(x.grad.clone(), rank - 1))
    for handle in sending:
        handle.wait()
    return sum(losses) if rank == last else None


@wrong("BACKWARD_FORGOTTEN", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, skip=(len(inputs) - 1,))


@wrong("BACKWARD_FORGOTTEN", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, skip=range(len(inputs)))


@wrong("WRONG_GRADIENT_SENT", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(
        stage, actions, inputs, targets, shape, back=lambda x, y, g: x.grad if g is None else g
    )  # fmt: skip


@wrong("WRONG_GRADIENT_SENT", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, back=lambda x, y, g: x.detach())


@wrong("GRADIENT_NOT_USED", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, use=lambda y, g: y.sum().backward())


@wrong("SAME_INPUT", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, which=lambda k: 0)


@wrong("OWN_ORDER")
def pipeline_step(stage, actions, inputs, targets, *, shape):
    m = len(inputs)
    return step(stage, [(kind, k) for kind in "FB" for k in range(m)], inputs, targets, shape)


@wrong("OWN_ORDER", points=12)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    m = len(inputs)
    own = [a for k in range(m) for a in (("F", k), ("B", k))]
    return step(stage, own, inputs, targets, shape)


@wrong("COLLECTIVES_CALLED")
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, result=lambda losses, m: shared_loss(losses, m))


def shared_loss(losses, m):
    loss = torch.tensor(sum(losses) / m)
    dist.all_reduce(loss)
    return loss.item() if losses else None


@wrong("LOSS_EVERYWHERE", points=14)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, result=lambda losses, m: sum(losses) / m)


@wrong("LOSS_OF_ONE", points=14)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, result=lambda losses, m: losses[-1] if losses else None)


@wrong("LOSS_SUMMED", points=14)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, result=lambda losses, m: sum(losses) if losses else None)


@wrong("GRADIENT_OVERWRITTEN", points=14)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    stage.zero_grad()
    return step(stage, actions, inputs, targets, shape)


@wrong("OPTIMIZER_CALLED", points=14)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    loss = step(stage, actions, inputs, targets, shape)
    torch.optim.SGD(stage.parameters(), lr=0.1).step()
    return loss


@wrong("UNWAITED", points=15)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, wait=False)


@wrong("BUFFER_DTYPE", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, buffer=lambda shape: torch.empty(shape, dtype=torch.float64))


@wrong("BUFFER_SIZE", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return step(stage, actions, inputs, targets, shape, buffer=lambda shape: torch.empty(1, *shape[1:]))


@wrong("GENERATOR", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    yield step(stage, actions, inputs, targets, shape)


@wrong(says="messages", points=14)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    loss = step(stage, actions, inputs, targets, shape)
    if rank == last and rank:
        dist.isend(torch.ones(1), 0).wait()
    elif rank == 0 and last:
        dist.recv(torch.empty(1), last)
    return loss


@wrong(says="stage() takes", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return stage(inputs[0], targets[0], shape)


@wrong(says="is None", points=0)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    return 0.0 if dist.get_rank() == dist.get_world_size() - 1 else None


@wrong("COLLECTIVES_CALLED", points=14)
def pipeline_step(stage, actions, inputs, targets, *, shape):
    dist.barrier()
    return step(stage, actions, inputs, targets, shape)
