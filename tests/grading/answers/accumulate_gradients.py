# ruff: noqa: F811
import torch

from tests.grading.bank import right, wrong


def total(microbatches):
    return sum(len(x) for x, _ in microbatches)


@right("each loss times its share")
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    mean = 0.0
    for x, y in microbatches:
        loss = loss_fn(module(x), y) * (len(x) / total(microbatches))
        loss.backward()
        mean += loss.item()
    return mean


@right("sums first, gradients divided at the end, a tensor back")
def accumulate_gradients(module, microbatches, loss_fn):
    for p in module.parameters():
        p.grad = None
    count, summed = 0, torch.zeros(())
    for x, y in microbatches:
        loss = loss_fn(module(x), y)
        (loss * len(x)).backward()
        summed += loss.detach() * len(x)
        count += len(x)
    with torch.no_grad():
        for p in module.parameters():
            p.grad /= count
    return summed / count


@right("gradients asked for, in another order of pairs")
def accumulate_gradients(module, microbatches, loss_fn):
    parameters = [p for p in module.parameters() if p.requires_grad]
    sums = [torch.zeros_like(p) for p in parameters]
    n, mean = sum(len(y) for _, y in microbatches), 0.0
    for x, y in reversed(microbatches):
        share = len(x) / n
        loss = loss_fn(module(x), y)
        for one, gradient in zip(sums, torch.autograd.grad(loss, parameters), strict=True):
            one += share * gradient
        mean += share * float(loss)
    for p, one in zip(parameters, sums, strict=True):
        p.grad = one
    return mean


@right("a running mean, the gradient handed to backward, old gradients set to zero")
def accumulate_gradients(module, microbatches, loss_fn):
    for p in module.parameters():
        if p.grad is not None:
            p.grad.zero_()
    n, mean = total(microbatches), torch.zeros(())
    for x, y in microbatches:
        loss = loss_fn(module(x), y)
        loss.backward(torch.tensor(len(x) / n))
        mean = mean + loss * len(x) / n
    return mean


@wrong("SUM_OF_MEANS", points=0)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    for x, y in microbatches:
        loss = loss_fn(module(x), y)
        loss.backward()
    return loss.item()


@wrong("MEAN_OF_MEANS", points=0)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    mean = 0.0
    for x, y in microbatches:
        loss = loss_fn(module(x), y) / len(microbatches)
        loss.backward()
        mean += loss.item()
    return mean


@wrong("SCALED_BY_SIZE_ONLY", points=0)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    for x, y in microbatches:
        loss = loss_fn(module(x), y) * len(x)
        loss.backward()


@wrong("ONLY_LAST_PAIR", points=0)
def accumulate_gradients(module, microbatches, loss_fn):
    mean = 0.0
    for x, y in microbatches:
        module.zero_grad()
        loss = loss_fn(module(x), y) * (len(x) / total(microbatches))
        loss.backward()
        mean += loss.item()
    return mean


@wrong("ONLY_LAST_PAIR", points=0)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    for x, y in microbatches:
        loss = loss_fn(module(x), y)
    loss.backward()
    return loss.item()


@wrong("ACCUMULATE_STALE", points=9)
def accumulate_gradients(module, microbatches, loss_fn):
    mean = 0.0
    for x, y in microbatches:
        loss = loss_fn(module(x), y) * (len(x) / total(microbatches))
        loss.backward()
        mean += loss.item()
    return mean


@wrong("ACCUMULATE_ALL_HELD", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    losses = [loss_fn(module(x), y) * len(x) for x, y in microbatches]
    loss = sum(losses) / total(microbatches)
    loss.backward()
    return loss.item()


@wrong("ACCUMULATE_ALL_HELD", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    losses = [loss_fn(module(x), y) * (len(x) / total(microbatches)) for x, y in microbatches]
    for loss in losses:
        loss.backward()
    return sum(losses)


@wrong("ACCUMULATE_ONE_BATCH", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    x, y = (torch.cat(part) for part in zip(*microbatches, strict=True))
    loss = loss_fn(module(x), y)
    loss.backward()
    return loss.item()


@wrong("ACCUMULATE_RETAINED", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    mean = 0.0
    for x, y in microbatches:
        loss = loss_fn(module(x), y) * (len(x) / total(microbatches))
        loss.backward(retain_graph=True)
        mean += loss.item()
    return mean


@wrong("ACCUMULATE_LOSS_ATTACHED", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    mean = torch.zeros(())
    for x, y in microbatches:
        loss = loss_fn(module(x), y)
        share = torch.tensor(len(x) / total(microbatches))
        (loss * share).backward()
        mean = mean + loss * share
    return mean


@wrong("ACCUMULATE_CALLED_TWICE", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    n = total(microbatches)
    for x, y in microbatches:
        (loss_fn(module(x), y) * (len(x) / n)).backward()
    with torch.no_grad():
        return sum(loss_fn(module(x), y).item() * len(x) / n for x, y in microbatches)


@wrong("ACCUMULATE_LOSS_LAST", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    for x, y in microbatches:
        loss = loss_fn(module(x), y)
        (loss * (len(x) / total(microbatches))).backward()
    return loss.item()


@wrong("ACCUMULATE_LOSS_MEAN", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    losses = []
    for x, y in microbatches:
        loss = loss_fn(module(x), y)
        (loss * (len(x) / total(microbatches))).backward()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@wrong("ACCUMULATE_LOSS_SUM", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    losses = 0.0
    for x, y in microbatches:
        loss = loss_fn(module(x), y)
        (loss * (len(x) / total(microbatches))).backward()
        losses += loss.item()
    return losses


@wrong("OPTIMIZER_CALLED", points=9)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    mean = 0.0
    for x, y in microbatches:
        loss = loss_fn(module(x), y) * (len(x) / total(microbatches))
        loss.backward()
        mean += loss.item()
    with torch.no_grad():
        for p in module.parameters():
            p -= 0.1 * p.grad
    return mean


@wrong(says="it returned None", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    for x, y in microbatches:
        (loss_fn(module(x), y) * (len(x) / total(microbatches))).backward()


@wrong(says="Where is `backward()` called?", points=0)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    return sum(loss_fn(module(x), y).item() * len(x) for x, y in microbatches) / total(microbatches)


@wrong(says="object has no attribute 'zero_'", points=0)
def accumulate_gradients(module, microbatches, loss_fn):
    for p in module.parameters():
        p.grad.zero_()
    for x, y in microbatches:
        (loss_fn(module(x), y) * (len(x) / total(microbatches))).backward()


@wrong("GENERATOR", points=0)
def accumulate_gradients(module, microbatches, loss_fn):
    for x, y in microbatches:
        yield loss_fn(module(x), y)


@right("forward by name, an optimizer empties the gradients")
def accumulate_gradients(module, microbatches, loss_fn):
    torch.optim.SGD(module.parameters(), lr=1.0).zero_grad()
    losses = []
    for x, y in microbatches:
        loss = loss_fn(module.forward(x), y)
        torch.autograd.backward(loss * len(x) / total(microbatches))
        losses.append(loss.detach() * len(x))
        del loss
    return torch.stack(losses).sum() / total(microbatches)


@wrong("ACCUMULATE_ALL_HELD", points=8)
def accumulate_gradients(module, microbatches, loss_fn):
    module.zero_grad()
    mean = 0.0
    for x, y in microbatches:
        mean = mean + loss_fn(module(x), y) * (len(x) / total(microbatches))
    mean.backward()
    return mean.detach()
