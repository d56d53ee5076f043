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

HYBRID_STEP = Exercise(
    id="hybrid_step",
    lesson="09_hybrid_parallel",
    level="challenge",
    minutes=60,
    points=18,
    source=None,
    statement=(
        "Write `hybrid_step(stage, optimizer, x, y, groups, max_norm)`: one training step of this rank on a "
        "dp x pp x tp mesh. It is called again and again, and what one step leaves in `.grad` must not count in the "
        "next.\n\n"
        "`x` and `y` are the whole batch, the same on every rank. It is cut along dim 0 for dp, evenly or not, no part "
        "empty, and a rank trains on the part of its index. Call once `stage.forward_backward(its_x, its_y)`, which "
        "runs all microbatches with what pp and tp send for them. It *adds* to each `.grad` that of the mean loss over "
        "what it was given, and returns this mean, a float, on the last stage, None on the others. The rest is "
        "yours:\n\n"
        "- `stage.shards` lists the parameters that tp cuts. Their gradients are complete for these samples, but for "
        "`stage.tied`, one of the shards: the embedding's weight, which the first and the last stage both hold and "
        "use (with pp = 1 it is one parameter). The two gradients must be added up. On the stages between, "
        "`stage.tied` is None.\n"
        "- `stage.copies` lists all other parameters. Every rank of tp holds them whole, but has seen its own tokens "
        "only (sequence parallel), so each gradient is a part of a sum over tp.\n"
        "- All copies of the model along dp must take the step of the whole batch's mean loss.\n\n"
        "Then clip the norm of the whole gradient to `max_norm`, as `clip_gradients_sharded` does: each number of the "
        "model counts once, and all gradients are scaled by one factor. Call `optimizer.step()` once. Return, on "
        "every rank, the mean loss over the whole batch, a number or a tensor of one.\n\n"
        '`groups` is a dict of this rank\'s process groups: `"dp"`, `"pp"`, `"tp"` of the mesh; `"model"`, all ranks '
        'of its copy of the model (pp and tp together); `"ends"`, the first and the last stage of its pp group (with '
        "pp = 1 this rank alone, on the stages between None). What ranks hold in common stays equal to the bit. "
        "Outside of `forward_backward` a gradient is sent once in each group that needs it; all else that is sent are "
        "single numbers."
    ),
    hints=(
        "Take one parameter at a time: a column's shard, a norm's scale, the embedding. Which ranks hold the same "
        "numbers? Which of them have seen only a part of what its gradient is made of: some tokens, one of two uses, "
        "some samples? The sum goes over these.",
        "Over tp and over the ends, parts of one gradient are added. Over dp, means of different samples are averaged: "
        "scale each by its share of the batch, `len(its_x) / len(x)`, then sum.",
        "Clip when all sums are done. Shards are split over `model`, copies over `pp`: two sums of squares. The "
        "tied weight is in two ranks' shards: only one of them may bring it into the norm, and both scale it.",
        "For the loss, a stage with None brings 0.0, the last one its loss times its share; sum over pp, then over dp. "
        '`dist.get_rank(groups["dp"])` is the index along dp.',
    ),
)

RESHARD_STATE = Exercise(
    id="reshard_state",
    lesson="09_hybrid_parallel",
    level="challenge",
    minutes=30,
    points=11,
    source=None,
    statement=(
        "Write `reshard_state(shards, dims, n)`: a checkpoint that some ranks wrote, for n others to read. `shards` is "
        "a list with a dict for each old rank, name -> tensor, all with the same names. `dims[name]` is the dim along "
        "which this tensor is cut, the ranks' parts in order, of any lengths, some perhaps 0; or None where every rank "
        "holds it whole, with equal numbers. Return a list of n dicts with the same names, what each new rank holds: "
        "what was cut, cut anew as `torch.tensor_split` does, so that a part may have length 0; what was whole, whole "
        "on each. dtypes stay. Every new tensor is contiguous and owns its memory, just as much as its numbers take: "
        "it shares none with another new tensor or with the shards. `ValueError`: no shards, n below 1, a dict or "
        "`dims` with other names than the rest, parts that differ in dtype or in their size along another dim than "
        "`dims[name]`, whole tensors that differ in dtype or shape, a dim that a tensor does not have."
    ),
    hints=(
        "Take a tensor of 5 rows, in parts of 3 and 2, for three new ranks. Write down what each gets. From which old "
        "parts does it come?",
        "The simple way: for each name put the whole together, then cut it. Copies need no putting together. "
        "`torch.cat` and `torch.tensor_split` know about dims.",
        "What `tensor_split` gives are views: look at `part.untyped_storage().nbytes()`. Make a copy of each, one that "
        "is contiguous, and of each whole tensor n copies.",
    ),
)

EXERCISES = (
    RANK_TO_COORDINATES,
    COORDINATES_TO_RANK,
    AXIS_GROUPS,
    PLACE_AXES,
    CLIP_GRADIENTS_SHARDED,
    HYBRID_STEP,
    RESHARD_STATE,
)
