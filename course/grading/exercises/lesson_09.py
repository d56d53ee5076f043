"""Exercises of lesson 09: hybrid parallel."""

from course.grading.exercises.exercise import Exercise

RANK_TO_COORDINATES = Exercise(
    id="rank_to_coordinates",
    lesson="09_hybrid_parallel",
    level="core",
    minutes=10,
    points=7,
    source="course.spec.layout.rank_to_coordinates",
    statement=(
        "Write `rank_to_coordinates(rank, *, dp, pp, tp)`. dp·pp·tp ranks are laid out on three axes of these sizes: "
        "pp the slowest, then dp, tp the fastest. So rank 0 sits at 0 on each of them, rank 1 one further along tp, "
        'and so on; the indices of an axis go from 0 to its size less one. Return a dict with the keys `"pp"`, '
        '`"dp"` and `"tp"`, in any order, and this rank\'s index on each axis. A rank that is not there, or a size '
        "below 1, raises `ValueError`."
    ),
    hints=(
        "Write down the ranks 0 to 11 of pp=2, dp=3, tp=2, one line a rank. Which index changes with every rank? After "
        "how many ranks does the next one change?",
        "It is a clock: seconds are the remainder by 60, minutes what is left after the division by 60, and again the "
        "remainder by 60. Here tp are the seconds, dp the minutes, pp the hours.",
        "`divmod(rank, tp)` gives what is left and the index on tp. Go on with what is left.",
    ),
)

COORDINATES_TO_RANK = Exercise(
    id="coordinates_to_rank",
    lesson="09_hybrid_parallel",
    level="practice",
    minutes=10,
    points=6,
    source="course.spec.layout.coordinates_to_rank",
    statement=(
        "Write `coordinates_to_rank(coordinates, *, dp, pp, tp)`, the way back: `coordinates` is a dict such as "
        '`{"pp": 1, "dp": 0, "tp": 3}`, its keys in any order, and stays untouched. Return the rank that sits '
        "there, pp the slowest axis, then dp, tp the fastest. An index outside 0 to its axis' size less one, an axis "
        "that is missing, or a size below 1 raises `ValueError`."
    ),
    hints=(
        "How many ranks further does one step along tp lead? One along dp? One along pp?",
        "A step along an axis passes as many ranks as all faster axes have places together. The rank is the sum of "
        "index times step.",
        "Or as a clock goes: from hours to minutes, add the minutes, to seconds, add the seconds. Check the indices "
        "before.",
    ),
)

AXIS_GROUPS = Exercise(
    id="axis_groups",
    lesson="09_hybrid_parallel",
    level="practice",
    minutes=15,
    points=7,
    source=None,
    statement=(
        'Write `axis_groups(axis, *, dp, pp, tp)`. On the same mesh, `axis` is `"dp"`, `"pp"` or `"tp"`. The '
        "ranks that differ in their index on this axis and agree on the other two form a group. Return all groups, as "
        "a list of lists of ranks: each list in rising order, the lists in the order of their first ranks. Every rank "
        "is in one group, on an axis of size 1 in a group of its own. Another axis, or a size below 1, raises "
        "`ValueError`."
    ),
    hints=(
        "Take pp=1, dp=2, tp=3 and draw the ranks as a table with two rows. Which groups are rows, which are columns?",
        "For each rank: what do all members of its group have in common? That can be the key of a dict of lists.",
        "The key is the rank's coordinates without `axis`. Ranks that come in rising order fall into the lists in "
        "rising order.",
    ),
)

PLACE_AXES = Exercise(
    id="place_axes",
    lesson="09_hybrid_parallel",
    level="practice",
    minutes=30,
    points=10,
    source=None,
    statement=(
        "Write `place_axes(nbytes, sizes, per_node)`: in which order should axes be laid out, so that the fewest bytes "
        "cross from node to node? `sizes` is a dict of 1 to 4 axes, any names, and the ranks along each. Laid out in "
        "an order, fastest axis first, a rank is its index on the first axis, plus its index on the second times the "
        "first axis' size, plus its index on the third times both sizes, and so on. Rank r sits on node "
        "r // per_node. In a step, every rank sends along every axis `nbytes[axis]` to the next rank of its ring: the "
        "one whose index on this axis is one higher, from the last to the first, and whose other indices are the "
        "same. An axis of size 1 sends nothing. *Bytes across* are those of all these messages, of all ranks and "
        "axes, whose sender and receiver sit on different nodes. Return all axes' names, as a tuple or list, fastest "
        "first, in an order with the fewest bytes across; where several have as few, any of them. There are at most a "
        "few hundred ranks. Other axes in `nbytes` than in `sizes`, or `per_node` below 1, raises `ValueError`."
    ),
    hints=(
        "There are at most 24 orders. Write a function that counts the bytes across of one order, then ask it about "
        "each.",
        "With the axes in an order, an axis' *stride* is the product of the sizes before it. A rank's index on it "
        "is `rank // stride % size`: from that you know the next rank of its ring.",
        "For each axis, go through all ranks and count those whose next rank has another `// per_node`; times "
        "`nbytes[axis]`. `itertools.permutations` gives the orders, `min` with a `key` picks one.",
    ),
)

CLIP_GRADIENTS_SHARDED = Exercise(
    id="clip_gradients_sharded",
    lesson="09_hybrid_parallel",
    level="challenge",
    minutes=40,
    points=13,
    source=None,
    statement=(
        "Write `clip_gradients_sharded(entries, max_norm)`. It runs on every rank. `entries` is a list of pairs "
        "(parameters, group), equally long on all ranks and with the same kinds of groups in the same order. With a "
        "`torch.distributed` group, the parameters are this rank's shards: the ranks of that group together hold the "
        "whole, each number once, and other groups of the same kind hold copies of it. With None, every rank holds "
        "them whole, with equal gradients. Return, on every rank, the norm of the whole gradient over all entries: "
        "the root of the sum of squares, each number of the model counted once; a float or a tensor of one number. "
        "Where it is above `max_norm`, multiply all gradients by max_norm / norm, so that each parameter's `.grad` "
        "holds the clipped one; otherwise they stay as they are, also where all are zero. Parameters' values stay. A "
        "list of parameters may be empty, and a gradient may be None: it counts as zero and stays None. For each "
        "entry with a group one collective call, in which a rank sends one number; for the others nothing."
    ),
    hints=(
        "What adds up over shards? Not norms: 3 on one rank and 4 on the other make 5. Take apart what each rank can "
        "compute alone and what it needs of the others.",
        "For each entry, add up the squares of this rank's gradients. With a group, sum that number over its ranks; "
        "with None, every rank has the whole already. Mind that `group=None` in `dist.all_reduce` means all ranks.",
        "A rank without gradients brings `torch.zeros(())`: the others wait for it in the sum. Add the entries, take "
        "the root, and scale all gradients by one factor, if it is below 1.",
    ),
)

EXERCISES = (RANK_TO_COORDINATES, COORDINATES_TO_RANK, AXIS_GROUPS, PLACE_AXES, CLIP_GRADIENTS_SHARDED)
