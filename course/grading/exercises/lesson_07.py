"""Exercises of lesson 07: pipeline parallel."""

from course.grading.exercises.exercise import Exercise

_ACTIONS = (
    'An action is a pair, `("F", k)` for the forward or `("B", k)` for the backward of microbatch k, from 0 on (the '
    'word `"F0"` and an `Action` of `course.spec.schedule` pass as well). '
)

SPLIT_LAYERS = Exercise(
    id="split_layers",
    lesson="07_pipeline_parallel",
    level="core",
    minutes=40,
    points=10,
    source=None,
    statement=(
        "Write `split_layers(costs, stages, *, memory=None)`. `costs` is a list with the cost of each layer, in order, "
        "none negative. Cut the layers into `stages` groups that follow one another, none empty. Return the cuts: a "
        "list or tuple of `stages`−1 ints, for each cut the number of layers before it. `[2, 5]` gives stage 0 two "
        "layers, stage 1 the next three, stage 2 all others. The most expensive stage costs as little as can be; of "
        "several such splits any passes. `memory`, where given, lists the most layers that each stage can hold. "
        "`ValueError`: fewer stages than one, more stages than layers, no split that fits `memory`. The models have at "
        "most 40 layers."
    ),
    hints=(
        "What a split is worth is decided by its slowest stage alone. Say somebody claims that no stage needs to cost "
        "more than 7. How would you check that, going once through the layers?",
        "Two ways. Find the smallest limit for which such a walk needs no more than `stages` stages (mind that none "
        "may stay empty). Or build the answer up: the best for s stages and the first j layers, from the best for "
        "s−1 stages.",
        "The second way: `best[s][j]` is the smallest, over all i < j, of `max(best[s-1][i], sum(costs[i:j]))`. Keep "
        "the i that was chosen, and read the cuts from the back. `memory` only forbids some i.",
    ),
)

ONE_F_ONE_B = Exercise(
    id="one_f_one_b",
    lesson="07_pipeline_parallel",
    level="core",
    minutes=30,
    points=12,
    source="course.spec.schedule.one_f_one_b",
    statement=(
        "Write `one_f_one_b(stages, microbatches)`, the 1F1B schedule: a list (or tuple) with one list of actions for "
        f"each stage, in the order in which it does them. {_ACTIONS}"
        "Stage s of p, from 0 on, begins with min(m, p−1−s) forwards, takes turns, a forward and a backward, until all "
        "m forwards are done, and does the backwards that are left. Both go in the order 0, 1, 2, …. So stage s "
        "holds at most min(m, p−s) microbatches. There may be fewer microbatches than stages, or one of either; less "
        "than one raises `ValueError`."
    ),
    hints=(
        "Write down three stages and four microbatches by hand, the last stage first: it can go backward right after "
        "its first forward. When can the stage before it?",
        "Three loops a stage: warm-up, turns, cool-down. The first two together do m forwards, the last two together "
        "m backwards. How many rounds does each have, when the warm-up has w?",
        "In round i of the turns the forward is number w + i. Backwards count for themselves: the oldest microbatch "
        "that has not been backward yet comes next. For m < p the warm-up is m, and there are no turns.",
    ),
)

PIPELINE_STEP = Exercise(
    id="pipeline_step",
    lesson="07_pipeline_parallel",
    level="core",
    minutes=50,
    points=16,
    source=None,
    statement=(
        "Write `pipeline_step(stage, actions, inputs, targets, *, shape)`. Each rank is a stage, in order. `inputs` "
        "and `targets` are lists of m tensors, one a microbatch, all of one size. `stage(x)` gives the activation to "
        "hand on; on the last rank `stage(x, target)` gives the microbatch's mean loss. The first rank takes x from "
        "`inputs`, the others from the rank before; activations and their gradients are float32 of shape `shape`. "
        '`actions` is this rank\'s list of pairs `("F", k)` and `("B", k)`: do them in that order. Afterwards the '
        "gradient of the mean loss over all m has been *added* to each `.grad`. Return that mean on the last rank, "
        "None elsewhere. A microbatch crosses each boundary in one message each way; nothing else is sent. No send "
        "holds its stage up, and every handle is waited for."
    ),
    hints=(
        "Two kinds of action, four questions for each: where does its input come from, what is computed, what has to "
        "be kept for later, what is sent to whom? The first and the last rank answer some of them differently.",
        "What has arrived is a plain tensor: autograd gives a gradient for it only after `requires_grad_()`. Keep "
        "the pair (x, y) of each microbatch until its backward. Each receive needs a buffer of its own.",
        "Backward of y with the gradient g that came from the next rank is `y.backward(g)`; what goes to the rank "
        "before is `x.grad`. On the last rank y is the loss, divided by m, and needs no g.",
        "Under 1F1B two neighbours send to each other at the same time, so `dist.send` would wait for ever: take "
        "`dist.isend`, keep the handles and what is sent, and wait for all at the end. `dist.recv` may wait.",
    ),
)

GPIPE_SCHEDULE = Exercise(
    id="gpipe_schedule",
    lesson="07_pipeline_parallel",
    level="practice",
    minutes=10,
    points=7,
    source="course.spec.schedule.gpipe_schedule",
    statement=(
        "Write `gpipe_schedule(stages, microbatches)`: a list (or tuple) with one list of actions for each stage, in "
        f"the order in which it does them. {_ACTIONS}"
        "Every stage does all its forwards, in the order 0, 1, 2, …, and then all its backwards. These go in the same "
        "order or in the opposite one, but on all stages alike. Fewer than one stage or microbatch raises `ValueError`."
    ),
    hints=(
        "What does stage 0 do with three microbatches? And stage 1?",
        "All stages have the same list: who has to wait is decided by the messages, not by the list.",
        "Forwards of all microbatches, then backwards of all, and that list once for each stage.",
    ),
)

BUBBLE_FRACTION = Exercise(
    id="bubble_fraction",
    lesson="07_pipeline_parallel",
    level="practice",
    minutes=10,
    points=6,
    source=None,
    statement=(
        "Write `bubble_fraction(stages, microbatches, chunks=1)`: the share of the whole step, from 0 to 1, in which a "
        "device of a pipeline is idle. All stages cost the same and messages cost nothing. With `chunks=1` the "
        "schedule is GPipe or 1F1B. With more it is the interleaved one: each device holds `chunks` pieces of the "
        "model, each with 1/`chunks` of a stage's work, and filling and draining the pipeline takes one piece's time a "
        "stage. An argument below 1 raises `ValueError`. Return a number."
    ),
    hints=(
        "Draw three stages and four microbatches, a square each for a forward. How many squares long is the picture, "
        "and how many of a row are empty?",
        "Idle is what the pipeline takes to fill and to drain, counted in microbatches. The whole step is idle and "
        "busy together.",
        "With v chunks a square is v times as small. Busy: v times as many squares. Idle: as many squares as before.",
    ),
)

PEAK_ACTIVATIONS = Exercise(
    id="peak_activations",
    lesson="07_pipeline_parallel",
    level="practice",
    minutes=10,
    points=5,
    source=None,
    statement=(
        "Write `peak_activations(actions)`. `actions` is the list of one stage, in the order in which it does them: "
        'pairs `("F", k)` and `("B", k)`, each microbatch forward first and backward later. A stage holds the '
        "activations of a microbatch from its forward on, until its backward is done. Return an int: the most "
        "microbatches that it holds at one moment. An empty list gives 0."
    ),
    hints=(
        "Go through `F0 F1 B0 F2 B1 B2` with your finger and say, after each action, how many are held.",
        "A forward adds one, a backward takes one away. What you want is not where the count ends.",
        "Keep two numbers: held now, and the most so far.",
    ),
)

INTERLEAVED_1F1B = Exercise(
    id="interleaved_1f1b",
    lesson="07_pipeline_parallel",
    level="challenge",
    minutes=60,
    points=13,
    source=None,
    statement=(
        "Write `interleaved_1f1b(stages, microbatches, chunks)`: a list (or tuple) with one list of actions for each "
        "of p ranks. The model is cut into p·v pieces; chunk c of rank r, both from 0 on, is piece c·p + r. An action "
        'is a triple, `("F", k, c)` or `("B", k, c)`: microbatch k through chunk c (`"F3.1"` and an `Action` pass as '
        "well). Microbatches go in rounds of p: forward, those of a round pass chunk 0, then chunk 1, and so on; then "
        "comes the next round. Backward alike, chunks from the last to 0. Rank r begins with "
        "min(m·v, (v−1)·p + 2(p−1−r)) forwards, takes turns, a forward and a backward, and does the backwards that are "
        "left. `ValueError`: an argument below 1, or m no multiple of p."
    ),
    hints=(
        "Number the forwards of a rank from 0 to m·v − 1, in the order in which it does them. Which microbatch and "
        "which chunk is number j? Do it by hand for p = 2, m = 4, v = 2.",
        "A round has p·v forwards, and a chunk's part in it has p. Division by the one and by the other, and what is "
        "left over, give round, chunk and microbatch.",
        "With `round, rest = divmod(j, p * v)` and `chunk, place = divmod(rest, p)`, forward j is microbatch "
        "round·p + place. Backward j is the same with the chunk counted from the end. Warm-up, turns and cool-down "
        "are then those of 1F1B, with m·v actions.",
    ),
)

EXERCISES = (
    SPLIT_LAYERS,
    ONE_F_ONE_B,
    PIPELINE_STEP,
    GPIPE_SCHEDULE,
    BUBBLE_FRACTION,
    PEAK_ACTIVATIONS,
    INTERLEAVED_1F1B,
)
