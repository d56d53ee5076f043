"""Exercises of lesson 05: data parallel."""

from course.grading.exercises.exercise import Exercise

SHARD_INDICES = Exercise(
    id="shard_indices",
    lesson="05_data_parallel",
    level="core",
    minutes=20,
    points=8,
    source="course.parallel.data.shard_indices",
    statement=(
        "Write `shard_indices(n, rank, world_size, *, epoch=0, seed=0)`. It returns a list of ints: the samples, "
        "numbered 0 to n−1, that this rank trains on in this epoch. All n samples are shuffled together, then dealt "
        "to the ranks. Over all ranks every sample appears exactly once: none twice, none left out, no padding. "
        "The ranks' shares differ by at most one sample; with fewer samples than ranks some lists are empty. "
        "Another epoch or another seed gives another order and other shares. The same arguments give the same list, "
        "on whatever rank they are asked. Nothing is sent: each rank works it out alone."
    ),
    hints=(
        "The ranks never talk here. What must all of them agree on, so that their shares fit together?",
        "Let every rank build the same order of all n samples, from `seed` and `epoch` and from nothing else. "
        "Then each takes its own part of it. A `torch.Generator` keeps this apart from all other random numbers.",
        "For the cut: `n` need not divide. Either take every `world_size`-th sample of the order, starting at "
        "`rank`, or cut as `torch.tensor_split` does.",
    ),
)

WEIGHTED_AVERAGE_GRADIENTS = Exercise(
    id="weighted_average_gradients",
    lesson="05_data_parallel",
    level="core",
    minutes=20,
    points=9,
    source="course.parallel.data.weighted_average_gradients",
    statement=(
        "Write `weighted_average_gradients(module, count)`. Each rank has run backward on the *mean* loss of its own "
        "`count` samples; counts differ from rank to rank. It works *in place*: afterwards each parameter's `.grad` "
        "is the gradient of the mean loss over all samples of all ranks, the same on every rank. A rank with "
        "`count` 0 adds nothing, whatever finite numbers its `.grad` holds; it may be None there. That rank still "
        "takes part and ends with the same gradients. The counts of all ranks together are never 0. Each gradient is "
        "sent once: an all-reduce's bytes of all gradients, plus at most 64 bytes a parameter for everything else."
    ),
    hints=(
        "Two ranks, 3 samples and 1. The mean of the two means gives the lone sample as much say as the other three "
        "together. How much say should it have?",
        "A mean times its count is a sum. Sums of parts add up to the sum of the whole. What has to be divided by "
        "what at the end?",
        "The divisor is the number of samples of all ranks: one all-reduce of one number gives it. A rank without "
        "samples joins every call with zeros.",
    ),
)

BROADCAST_PARAMETERS = Exercise(
    id="broadcast_parameters",
    lesson="05_data_parallel",
    level="practice",
    minutes=15,
    points=7,
    source="course.parallel.data.broadcast_parameters",
    statement=(
        "Write `broadcast_parameters(module, src=0)`. Every rank calls it with a module of the same shape but with "
        "numbers of its own. It works *in place*: afterwards every parameter and every buffer holds, to the bit, "
        "what rank `src` holds; frozen parameters too. The parameters stay the same objects (an optimizer may "
        "already hold them) and gradients are left alone. Each number is sent to each rank once: "
        "(n−1)·(bytes of the module) over the whole group."
    ),
    hints=(
        "A module is more than its weights. What else would a BatchNorm layer carry over from one step to the next?",
        "One call a tensor is enough. The rank that has the numbers and the ranks that want them make the same call, "
        "in the same order.",
        "Go over `module.parameters()` and `module.buffers()`. The call has to write into the parameter itself, not "
        "into a copy of it, and autograd should not watch: `p.data`, `p.detach()` or `torch.no_grad()`.",
    ),
)

AVERAGE_GRADIENTS = Exercise(
    id="average_gradients",
    lesson="05_data_parallel",
    level="practice",
    minutes=20,
    points=9,
    source="course.parallel.data.average_gradients",
    statement=(
        "Write `average_gradients(module)`. Every rank has run backward on its own samples and calls it. It works "
        "*in place*: afterwards each parameter's `.grad` is the average of that parameter's gradients over all "
        "ranks, the same numbers on every rank. Where `.grad` is None on some ranks only, those count as zero, and "
        "every rank gets the average. Where it is None on all ranks it stays None. Parameters themselves are left "
        "alone. Each gradient is sent once: an all-reduce's bytes of all gradients, plus at most 64 bytes a parameter "
        "to agree on who has one."
    ),
    hints=(
        "An all-reduce adds. What is left to do to make an average of a sum, and how many numbers went into it?",
        "A collective is a meeting: all ranks must make the same calls in the same order. A rank whose gradient is "
        "None has to come as well, and bring something of the right shape.",
        "Nobody can see on its own which gradients are None everywhere. One small all-reduce of zeros and ones, one "
        "number a parameter, tells every rank how many ranks have that gradient.",
    ),
)

ACCUMULATE_WITHOUT_SYNC = Exercise(
    id="accumulate_without_sync",
    lesson="05_data_parallel",
    level="practice",
    minutes=20,
    points=8,
    source="course.parallel.data.accumulate_without_sync",
    statement=(
        "Write `accumulate_without_sync(ddp, microbatches, loss_fn)`. `ddp` is a module wrapped in torch's "
        "`DistributedDataParallel`, its gradients empty. `microbatches` is a list of pairs `(x, y)`, as many pairs "
        "on every rank; their sizes `len(x)` may differ, but all ranks have the same number of samples in all. "
        "`loss_fn(ddp(x), y)` is the mean loss over one pair. Run forward and backward on every pair, so that in "
        "the end every parameter's `.grad` is the gradient of the mean loss over all samples of all ranks. "
        "The gradients travel once, not once a pair: the bytes of one synchronisation, plus at most 64. "
        "The optimizer is not called."
    ),
    hints=(
        "DDP sends gradients during every backward. You want it only during one of them: which, and why that one?",
        "`ddp.no_sync()` is a context in which gradients only add up on the rank. DDP decides in the forward whether "
        "the next backward sends, so the forward belongs inside it too.",
        "`loss_fn` gives a mean over one pair, and pairs have different sizes. Scale each loss by its share of all "
        "samples before backward.",
    ),
)

EXPOSED_SECONDS = Exercise(
    id="exposed_seconds",
    lesson="05_data_parallel",
    level="practice",
    minutes=15,
    points=6,
    source="course.parallel.data.exposed_seconds",
    statement=(
        "Write `exposed_seconds(backward, all_reduces)`. A backward pass takes `backward` seconds. `all_reduces` is "
        "a list of pairs `(ready, seconds)`, one a bucket, in the order they are sent: the bucket's gradients are "
        "ready `ready` seconds after backward began, and its all-reduce takes `seconds`. There is one link: an "
        "all-reduce starts when its bucket is ready and the one before it is done. They run beside backward and do "
        "not slow it down. Return the exposed time: the seconds from the end of backward until the last "
        "all-reduce is done, and 0 when none outlives backward. Plain arithmetic; nothing is sent."
    ),
    hints=(
        "Draw two rows: backward on top, the link below. Put each all-reduce where it can start first.",
        "An all-reduce has two reasons to wait: its bucket is not ready, or the link is busy. It starts at the later "
        "of the two.",
        "Keep one number, the time at which the link is free again, and go once through the list. "
        "Only what sticks out beyond `backward` counts.",
    ),
)

DATA_PARALLEL = Exercise(
    id="DataParallel",
    lesson="05_data_parallel",
    level="challenge",
    minutes=90,
    points=16,
    source="course.parallel.buckets.DataParallel",
    statement=(
        "Write the class `DataParallel(module, *, bucket_bytes)`, a `torch.nn.Module`. Making it copies rank 0's "
        "parameters and buffers to all ranks and keeps the module as `.module`; calling it calls the module. After "
        "`backward()` and `.finish()`, step after step, each `.grad` is the average over the ranks, on every rank; "
        "a parameter that some ranks did not use counts as zero there. Frozen parameters are left alone; a shared one "
        "is sent once. Gradients are packed into buckets of at most `bucket_bytes` (a larger parameter travels alone); "
        "each is sent once, plus at most 8 bytes a parameter. The first all-reduce starts before the last gradient is "
        "ready, and backward does not wait for it. Gradients may get ready in another order on each rank."
    ),
    hints=(
        "Four parts: copy the start values, plan the buckets once, send a bucket as soon as its last gradient is "
        "there, and wait for everything in `finish()`. Get the gradients right in `finish()` alone first, then move "
        "the sending forward.",
        "`p.register_post_accumulate_grad_hook(f)` calls `f(p)` when p's gradient is complete. Backward goes from "
        "the last layer to the first, so plan buckets from the last parameter back. `dist.all_reduce(flat, "
        "async_op=True)` returns a handle and goes on.",
        "All ranks must send buckets in one order, the planned one. A bucket that is full but not next waits. "
        "What no hook sent, `finish()` sends, with zeros where a gradient is missing.",
        "`finish()`: send the rest in order, wait for every handle, divide, copy the pieces back into each `.grad`, "
        "and reset the counters for the next step.",
    ),
)

EXERCISES = (
    SHARD_INDICES,
    WEIGHTED_AVERAGE_GRADIENTS,
    BROADCAST_PARAMETERS,
    AVERAGE_GRADIENTS,
    ACCUMULATE_WITHOUT_SYNC,
    EXPOSED_SECONDS,
    DATA_PARALLEL,
)
