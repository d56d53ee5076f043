"""Exercises of lesson 10: plan a cluster."""

from course.grading.exercises.exercise import Exercise

MODEL_FLOPS = Exercise(
    id="model_flops",
    lesson="10_plan_a_cluster",
    level="practice",
    minutes=20,
    points=8,
    source=None,
    statement=(
        "Write `model_flops(*, layers, hidden, heads, kv_heads, ffn, ffn_matrices, vocab, batch, sequence)`: the FLOPs "
        "of one training step of a decoder of these sizes, forward and backward, on `batch` sequences of `sequence` "
        "tokens. Only matrix products count: (m, k) times (k, n) takes 2mkn, its backward twice that. In each layer a "
        "token meets matrices of hidden x hidden for its queries and for the output, two of hidden x (kv_heads heads "
        "of hidden/heads channels) for keys and values, and `ffn_matrices` of hidden x ffn or ffn x hidden. In each "
        "head its query is multiplied with the keys of all `sequence` tokens, and the scores with their values: the "
        "whole square, although half is masked. After the last layer comes one matrix of hidden x vocab. "
        "Looking up the embedding is no product, and nothing is computed twice. `ValueError`: an argument below 1, "
        "heads that do not divide hidden, kv_heads that do not divide heads."
    ),
    hints=(
        "Take one token and one layer. Which matrices is it multiplied with, and what does one of them cost, in terms "
        "of the matrix's size?",
        "A product of one token with a matrix takes 2 FLOPs for each number of the matrix. Which two products have no "
        "weights at all, and how large are they?",
        "Scores: heads x (hidden/heads) x sequence multiplications with the keys, and as many with the values. Add up "
        "one token, forward; times 3 for backward too, times all tokens.",
    ),
)

MFU = Exercise(
    id="mfu",
    lesson="10_plan_a_cluster",
    level="practice",
    minutes=10,
    points=6,
    source=None,
    statement=(
        "A run trains a decoder. To save memory it computes each forward pass a second time, before its backward. Its "
        "log says how many `tokens_per_second` all its GPUs train on together. Write `mfu(*, tokens_per_second, gpus, "
        "peak_flops, parameters, layers, heads, head_width, sequence)`: the model FLOPs utilisation, a share from 0 to "
        "1, as PaLM's paper defines it (Chowdhery et al. 2022, appendix B). It is the FLOP per second that the model "
        "needs over what all GPUs could do at their peak, `peak_flops` FLOP per second each. Forward and backward "
        "together, a token needs 6 FLOPs for each of the `parameters`, and for attention 12 · layers · heads · "
        "head_width · sequence. What is computed again is not needed by the model and does not count. `ValueError`: an "
        "argument that is not above 0, or a utilisation above 1, since then some argument is wrong."
    ),
    hints=(
        "Keep the units in sight: tokens per second times FLOPs per token gives FLOP per second. What is the same for "
        "all GPUs at their peak?",
        "One token: 6 · parameters + 12 · layers · heads · head_width · sequence. Where would recomputation enter, and "
        "why does it not?",
        "Needed FLOP per second, of all GPUs together, over gpus · peak_flops. Check the arguments before, the "
        "share after.",
    ),
)

STEP_SECONDS = Exercise(
    id="step_seconds",
    lesson="10_plan_a_cluster",
    level="practice",
    minutes=20,
    points=10,
    source=None,
    statement=(
        "Write `step_seconds(*, forward, backward, layers, stages, microbatches, chunks=1, tp_seconds=0.0, "
        "dp_seconds=0.0)`: how long a training step takes, put together from its parts. Each of `stages` pipeline "
        "stages has `layers` layers and computes `forward` seconds on a microbatch, later `backward` seconds. In each "
        "layer come two all-reduces of `tp_seconds` in forward and two in backward; the stage waits for them, so they "
        "make its passes longer. The stages work side by side, and messages between them take no time: a stage is busy "
        "with its `microbatches`, and idle for (stages − 1)/chunks times as long as one microbatch takes it, forward "
        "and backward. The gradients' all-reduce takes `dp_seconds` and comes once a step. Up to `backward` seconds "
        "of it run beside the last microbatch's backward and cost nothing; what is left comes after all else. "
        "`ValueError`: a count (`layers`, `stages`, `microbatches`, `chunks`) below 1, or seconds below 0."
    ),
    hints=(
        "Take one part after the other. What does one microbatch take on one stage, all-reduces and all?",
        "A stage is busy `microbatches` times that long, and idle (stages − 1)/chunks times that long. Its idle time "
        "is waiting for passes of other stages, which have their all-reduces too.",
        "Four all-reduces for each of the stage's layers. Of the gradients' all-reduce `dp_seconds − backward` is "
        "left, but never less than 0.",
    ),
)

CHECKPOINT_INTERVAL = Exercise(
    id="checkpoint_interval",
    lesson="10_plan_a_cluster",
    level="practice",
    minutes=20,
    points=8,
    source=None,
    statement=(
        "After how many steps should a run save a checkpoint? A GPU fails once in `gpu_mtbf_seconds` on average, "
        "independently of the others; the run stops as soon as one of its `gpus` fails. A step takes "
        "`step_seconds`; to save, the run stands still for `save_seconds`. Write `checkpoint_interval(*, save_seconds, "
        "step_seconds, gpu_mtbf_seconds, gpus)`: the number of steps k, a whole number of at least 1, for which the "
        "least is lost. What is lost is the sum of two shares of the time (Young 1974). For saving: `save_seconds` "
        "over the time of k steps. For failures: half the time of k steps over the mean time between two failures "
        "anywhere in the run. Where two k are equally good, either. An argument that is not above 0 raises "
        "`ValueError`."
    ),
    hints=(
        "Write the loss as a function of k. Which of its two terms falls with k, which one rises? And how often does "
        "a run on 1,000 GPUs fail, if one GPU fails once in 1,000 days?",
        "Forget for a moment that k is whole. With t = k · step_seconds the loss is C/t + t/(2M). Where is its "
        "derivative 0?",
        "t = √(2CM), with M = gpu_mtbf_seconds / gpus. In steps that is a fraction. The best k is one of its two "
        "neighbours: compare their losses. Neither may be 0.",
    ),
)

TRAINING_COST = Exercise(
    id="training_cost",
    lesson="10_plan_a_cluster",
    level="practice",
    minutes=10,
    points=7,
    source=None,
    statement=(
        "Write `training_cost(*, tokens, flops_per_token, gpus, peak_flops, mfu, goodput, price, spare_gpus=0)`: the "
        "pair (hours, cost) of a run. It trains on `tokens` tokens with `flops_per_token` model FLOPs each, forward "
        "and backward, on `gpus` GPUs that can do `peak_flops` FLOP per second each. While it makes progress, it "
        "reaches a model FLOPs utilisation of `mfu`. It makes progress in a share `goodput` of the time; the rest goes "
        "to failures, restarts and checkpoints. `spare_gpus` further GPUs stand by and compute nothing. hours are "
        "those by the clock, lost time included. cost is what all GPUs, spares too, cost for so long, at `price` an "
        "hour of one GPU. `ValueError`: gpus below 1, `spare_gpus` or `price` below 0, an `mfu` or `goodput` that is "
        "not above 0 or is above 1, or another argument that is not above 0."
    ),
    hints=(
        "How many FLOPs is the whole run? How many does the cluster do in a second in which it makes progress?",
        "That gives the seconds of progress. They are a share `goodput` of all seconds: so is all of it longer or "
        "shorter?",
        "hours = FLOPs / (gpus · peak_flops · mfu) / goodput / 3600. Who is paid in these hours, and who works?",
    ),
)

BEST_LAYOUT = Exercise(
    id="best_layout",
    lesson="10_plan_a_cluster",
    level="challenge",
    minutes=45,
    points=12,
    source=None,
    statement=(
        "Write `best_layout(*, gpus, layers, heads, batch, memory, nbytes, bound, seconds)`: the fastest layout, as a "
        "tuple (dp, tp, pp). A layout uses all GPUs, dp · tp · pp = `gpus`; dp divides `batch`, tp divides `heads`, pp "
        "divides `layers`; a size of 1 is allowed. The last three arguments are functions, called with dp, tp, pp in "
        "this order. `nbytes(dp, tp, pp)` is what a GPU has to hold, and may be at most `memory`. `seconds(dp, tp, "
        "pp)` is the time of a step. `bound(dp, tp, pp)` is never above it: a step takes at least that long. Of all "
        "layouts that divide and fit, return one with the least seconds. `nbytes` and `bound` are cheap. `seconds` "
        "runs a simulation of minutes: call it only for layouts that divide and fit, never twice for the same, and "
        "for none whose bound is above the seconds of the layout you return. If no layout divides and fits, or `gpus` "
        "is below 1, raise `ValueError`."
    ),
    hints=(
        "First without sparing: two loops, over tp and pp, give all layouts, since dp follows. Which conditions does a "
        "layout have to meet before its time is of interest?",
        "You have the time of one layout, and the bound of another is above it. What do you know? In which order "
        "should you go through the layouts, so that once this happens you are done?",
        "Sort those that divide and fit by `bound`. Go through them, keep the best seconds so far, and stop at the "
        "first bound that is not below it: all that follow have bounds at least as high.",
    ),
)

EXERCISES = (MODEL_FLOPS, MFU, STEP_SECONDS, CHECKPOINT_INTERVAL, TRAINING_COST, BEST_LAYOUT)
