"""Exercises of lesson 03: ranks and collectives."""

from course.grading.exercises.exercise import Exercise

RING_REDUCE_SCATTER = Exercise(
    id="ring_reduce_scatter",
    lesson="03_ranks_and_collectives",
    level="core",
    minutes=40,
    points=11,
    source=None,
    statement=(
        "Write `ring_reduce_scatter(t)`. Every rank calls it with a tensor of the same shape and dtype, whole numbers "
        "or floats, that holds numbers of its own. Rank r gets back chunk r of the sum over the ranks: of `t`, "
        "flattened and cut as `torch.tensor_split` does into as many chunks as there are ranks. The chunk is flat and "
        "has the dtype of `t`; with fewer elements than ranks some chunks are empty. `t` stays untouched. Build it "
        "from sends and receives; every handle is waited for, and until then its tensor left alone. A rank sends at "
        "most n−1 messages and (n−1)/n of the bytes of `t`, the group together (n−1) times the bytes of `t`, each "
        "within 64 bytes a message."
    ),
    hints=(
        "Take three ranks and follow one chunk. It starts on some rank, goes from neighbour to neighbour, and grows "
        "by one rank's part at each. All chunks do this at once, each starting on another rank.",
        "In each of n−1 steps a rank sends one chunk to `(rank + 1) % n` and adds what comes from `(rank - 1) % n` to "
        "the chunk of the same number. What arrived in this step goes on in the next.",
        "Chunk r has to end on rank r, so it starts on the rank after it: in step s, counted from 0, rank r sends "
        "chunk `(r - s - 1) % n` and receives chunk `(r - s - 2) % n`. Receive into a buffer of that chunk's size, "
        "and use `isend` or `batch_isend_irecv`, so that not all ranks wait in `send`.",
    ),
)

RING_ALL_GATHER = Exercise(
    id="ring_all_gather",
    lesson="03_ranks_and_collectives",
    level="core",
    minutes=20,
    points=11,
    source=None,
    statement=(
        "Write `ring_all_gather(chunk, numel)`. A tensor of `numel` elements was cut as `torch.tensor_split` does, "
        "and rank r holds chunk r, flat; chunks may be empty. Every rank gets back the whole tensor, flat, in the "
        "dtype of `chunk`. `chunk` stays untouched. Build it from sends and receives; every handle is waited for, and "
        "until then its tensor left alone. A rank sends at most n−1 messages and (n−1)/n of the bytes of the whole "
        "tensor, the group together (n−1) times those bytes, each within 64 bytes a message."
    ),
    hints=(
        "Like the first ring, but nothing is added: each rank passes on what it got last. After how many steps has "
        "every chunk been everywhere?",
        "In step s, counted from 0, rank r sends chunk `(r - s) % n` and receives chunk `(r - s - 1) % n`. "
        "In the first step that is its own.",
        "Make the result first, `chunk.new_empty(numel)`, and cut it with `tensor_split`: the pieces are views, so a "
        "receive can write straight into its place.",
    ),
)

RING_ALL_REDUCE = Exercise(
    id="ring_all_reduce",
    lesson="03_ranks_and_collectives",
    level="core",
    minutes=20,
    points=11,
    source=None,
    statement=(
        "Write `ring_all_reduce(t)`. Every rank calls it with a tensor of the same shape and dtype, whole numbers or "
        "floats. It works *in place*: afterwards `t` holds on every rank the sum over the ranks, in the shape it had. "
        "Any shape will do, one without dimensions or without elements too; what is returned is not looked at. Build "
        "it from sends and receives (`dist.all_reduce` itself is not called); every handle is waited for, and until "
        "then its tensor left alone. A rank sends at most 2(n−1) messages and 2(n−1)/n of the bytes of `t`, the group "
        "together 2(n−1) times the bytes of `t`, each within 64 bytes a message."
    ),
    hints=(
        "Once around the ring to add, once around to hand out. Which two functions have you just written?",
        "After the first half each rank has one finished chunk. The second half starts with that one.",
        "`t.view(-1)` is flat and shares the memory of `t`, whatever its shape. What is written there with `copy_` "
        "is in `t`.",
    ),
)

RING_SHIFT = Exercise(
    id="ring_shift",
    lesson="03_ranks_and_collectives",
    level="practice",
    minutes=10,
    points=8,
    source=None,
    statement=(
        "Write `ring_shift(t)`. Every rank calls it with a tensor of the same shape and dtype. Rank r gets back the "
        "tensor of rank r−1, rank 0 that of the last rank, in the same shape and dtype. `t` stays untouched. Each "
        "rank sends one message, the bytes of `t`; every handle is waited for, and until then its tensor left alone. "
        "With one rank nothing is sent, and the result holds the numbers of `t`."
    ),
    hints=(
        "Each rank does two things: it sends to the next and receives from the one before. Make a buffer to receive "
        "into.",
        "If every rank calls `dist.send` first, all wait for a receive that nobody has reached. "
        "`dist.isend` comes back at once.",
        "Next is `(rank + 1) % n`, before is `(rank - 1) % n`: both are right at the ends of the ring too. Start the "
        "send, receive, then wait for the send. One rank alone does neither.",
    ),
)

BROADCAST_TREE = Exercise(
    id="broadcast_tree",
    lesson="03_ranks_and_collectives",
    level="practice",
    minutes=25,
    points=10,
    source=None,
    statement=(
        "Write `broadcast_tree(t, src=0)`. Every rank calls it with a tensor of the same shape and dtype and the same "
        "`src`. It works *in place*: afterwards `t` holds on every rank, to the bit, what it held on rank `src`. "
        "Build it from sends and receives (`dist.broadcast` itself is not called); every handle is waited for, and "
        "until then its tensor left alone. The group sends n−1 messages, each the bytes of `t`, in ⌈log2 n⌉ rounds: a "
        "rank may send one message a round, and only what it already has. Rounds are counted from the order of each "
        "rank's calls."
    ),
    hints=(
        "In the first round `src` tells one rank. In the second both tell one more. How many know it after the third?",
        "Let `place = (rank - src) % n`: then `src` has place 0, and the tree looks the same for every `src`. "
        "In the round of distance d = 1, 2, 4, ..., who has the tensor, and who gets it?",
        "In that round each place below d sends to place + d, if there is such a place below n, and places d to 2d−1 "
        "receive from place − d. The rank of a place is `(place + src) % n`.",
    ),
)

ALL_REDUCE_SECONDS = Exercise(
    id="all_reduce_seconds",
    lesson="03_ranks_and_collectives",
    level="practice",
    minutes=10,
    points=6,
    source=None,
    statement=(
        "Write `all_reduce_seconds(nbytes, n, *, alpha, bandwidth)`: the seconds that a ring all-reduce of a tensor "
        "of `nbytes` bytes takes on n ranks. A message costs `alpha` seconds plus its bytes over `bandwidth`, in "
        "bytes per second. All ranks send at the same time, step after step, chunks of nbytes/n bytes, not rounded. "
        "Adding costs nothing, and with one rank nothing is sent. Raise `ValueError` for n below 1, for a negative "
        "`nbytes` or `alpha`, and for a `bandwidth` that is not above 0. Plain arithmetic; nothing is sent."
    ),
    hints=(
        "How many steps does the ring take, and what does one of them cost?",
        "n−1 steps to add and n−1 to hand out. Each is one message for every rank, all at the same time.",
        "Steps times (alpha + bytes of one message / bandwidth). Put n = 1 in: the steps are 0.",
    ),
)

FIT_ALPHA_BETA = Exercise(
    id="fit_alpha_beta",
    lesson="03_ranks_and_collectives",
    level="practice",
    minutes=20,
    points=8,
    source="course.planner.network.fit_alpha_beta",
    statement=(
        "Write `fit_alpha_beta(points)`. `points` is a list of pairs `(nbytes, seconds)`: how long one message of "
        "that size took. Return the pair `(alpha, bandwidth)`, in seconds and in bytes per second, for which alpha + "
        "nbytes/bandwidth fits best: the sum over all points of the *relative* error squared, ((alpha + "
        "nbytes/bandwidth − seconds)/seconds)², is the smallest. alpha may come out negative. Raise `ValueError` "
        "where there is no such fit: fewer than two different sizes, a time that is not above 0, or a bandwidth that "
        "would not be positive. Plain arithmetic; nothing is sent."
    ),
    hints=(
        "With beta = 1/bandwidth the model is a straight line, alpha + beta·nbytes. What does the word *relative* "
        "change?",
        "Divide the line by the measured seconds: alpha·(1/seconds) + beta·(nbytes/seconds) should be 1 for every "
        "point. That is an ordinary least-squares problem with two unknowns.",
        "`numpy.linalg.lstsq` or `numpy.polyfit` with weights `1/seconds` solve it; by hand it is two equations. The "
        "bandwidth is one over the slope. Check the input before, and the slope after.",
    ),
)

EXERCISES = (
    RING_REDUCE_SCATTER,
    RING_ALL_GATHER,
    RING_ALL_REDUCE,
    RING_SHIFT,
    BROADCAST_TREE,
    ALL_REDUCE_SECONDS,
    FIT_ALPHA_BETA,
)
