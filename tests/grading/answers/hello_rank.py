# ruff: noqa: F811
import os

import torch
import torch.distributed as dist

from tests.grading.bank import right, wrong


class Agreeable(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@right("asks the group")
def hello_rank():
    return dist.get_rank(), dist.get_world_size()


@right("takes both as parameters")
def hello_rank(rank, world_size):
    return rank, world_size


@right("asks the group object, and warns")
def hello_rank():
    import warnings

    warnings.warn("this is only a warning", stacklevel=1)
    print("hello from", dist.get_rank())
    group = dist.group.WORLD
    return (group.rank(), group.size())


@right("reads what torchrun would set")
def hello_rank():
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


@right("counts the others")
def hello_rank():
    here = torch.ones(1)
    dist.all_reduce(here)
    return dist.get_rank(), int(here)


@wrong("SWAPPED_PAIR", points=1)
def hello_rank():
    return dist.get_world_size(), dist.get_rank()


@wrong("COUNTS_FROM_ONE", points=2)
def hello_rank():
    return dist.get_rank() + 1, dist.get_world_size()


@wrong("SAME_RANK", points=2)
def hello_rank():
    return 0, dist.get_world_size()


@wrong("FIXED_WORLD_SIZE", points=2)
def hello_rank():
    return dist.get_rank(), 4


@wrong("FIXED_WORLD_SIZE", points=2)
def hello_rank():
    return dist.get_rank(), torch.cuda.device_count()


@wrong("LAST_RANK", points=2)
def hello_rank():
    return dist.get_rank(), dist.get_world_size() - 1


@wrong("PRINTED", points=0)
def hello_rank():
    print(dist.get_rank(), dist.get_world_size())


@wrong("GENERATOR", points=0)
def hello_rank():
    yield dist.get_rank(), dist.get_world_size()


@wrong("COROUTINE", points=0)
async def hello_rank():
    return dist.get_rank(), dist.get_world_size()


@wrong(says="returned a str", points=0)
def hello_rank():
    return f"rank {dist.get_rank()} of {dist.get_world_size()}"


@wrong(says="returned an int", points=0)
def hello_rank():
    return dist.get_rank()


@wrong(says="returned a set of 2", points=0)
def hello_rank():
    return {dist.get_rank(), dist.get_world_size()}


@wrong(says="a Agreeable")
def hello_rank():
    return Agreeable(7), Agreeable(7)


@wrong(says="with a int64 tensor", points=2)
def hello_rank():
    return torch.tensor(dist.get_rank()), torch.tensor(dist.get_world_size())


@wrong(says="the first numbers are", points=1)
def hello_rank():
    return 12 * dist.get_rank(), dist.get_rank()


@right("a named tuple")
def hello_rank():
    from collections import namedtuple

    return namedtuple("Place", "rank world_size")(dist.get_rank(), dist.get_world_size())


@wrong(says="an int of many digits", points=1)
def hello_rank():
    return 10**5000, 10**5000


@wrong(says="raised NotImplementedError", points=0)
def hello_rank():
    torch.ones(1) & torch.ones(1)
    return dist.get_rank(), dist.get_world_size()


@right("NumPy's whole numbers")
def hello_rank():
    import numpy as np

    return tuple(np.array([dist.get_rank(), dist.get_world_size()]))
