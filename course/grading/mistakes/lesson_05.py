"""Mistakes of lesson 05: shards, replicas, gradients, buckets."""

from course.grading.mistakes.mistake import Mistake

# --- shards -----------------------------------------------------------------------------------------------------------

PADDING = Mistake(
    "padding",
    "torch's DistributedSampler repeats samples too, so that every rank has as many batches.",
    "A repeated sample counts twice in the average. Let the shares differ by one instead.",
)
DROPS_LAST = Mistake(
    "the last samples are dropped",
    "`drop_last=True` makes all shares equal, and only a few samples are lost.",
    "Those few are never trained on in this epoch. Who could take the ones that are left over?",
)
SEED_PER_RANK = Mistake(
    "every rank shuffles for itself",
    "The ranks need different samples, so a seed of its own for each rank seems to give them that.",
    "Shares of two different orders overlap. What must all ranks agree on, before each takes its own part?",
)
UNSEEDED = Mistake(
    "the order comes from an unseeded generator",
    "Each call gives a well shuffled order.",
    "Two calls with the same arguments must agree, and so must two ranks. What can the order depend on?",
)
EVERYONE_EVERYTHING = Mistake(
    "every rank gets all samples",
    "Each list is a fine permutation, and training on it works.",
    "Then every rank does the whole work. Where does your function use `rank`?",
)
EPOCH_IGNORED = Mistake(
    "the same order in every epoch",
    "One epoch looks well shuffled. DistributedSampler does the same when `set_epoch` is forgotten.",
    "Compare the lists for epoch 0 and epoch 1. Where does `epoch` enter your shuffle?",
)
SEED_IGNORED = Mistake(
    "the same order for every seed",
    "One seed is enough to look shuffled.",
    "Compare the lists for seed 0 and seed 1. Where does `seed` enter your shuffle?",
)
NOT_SHUFFLED = Mistake(
    "no shuffle",
    "The samples are cut evenly, and every one appears once.",
    "Text and files come sorted: without a shuffle a rank sees one kind of sample only. Shuffle before the cut.",
)
REST_ON_ONE = Mistake(
    "one rank takes all that is left over",
    "`n // world_size` each and the rest to the last rank covers every sample.",
    "The others wait for the rank with the largest share. How small can the difference be made?",
)
CEIL_CHUNKS = Mistake(
    "chunks rounded up",
    "`torch.chunk` cuts this way, and all samples appear once.",
    "The last rank gets what is left, sometimes nothing. `torch.tensor_split` cuts another way: look it up.",
)
FIXED_SHARES = Mistake(
    "shuffled inside the share only",
    "Each rank's list changes from epoch to epoch.",
    "The same samples stay on the same rank for ever. What should be shuffled first, and what cut second?",
)
SAMPLES_FROM_ONE = Mistake(
    "samples numbered from one",
    "There are n of them, and the last is number n in everyday speech.",
    "As indices of a list, the samples are 0 to n−1.",
)
ASKS_DIST = Mistake(
    "the arguments are not used",
    "On rank r with `rank=r` the arguments say the same as `dist`.",
    "The caller may ask for another rank's share, or plan for more ranks than there are. Use what was passed in.",
)

# --- replicas ---------------------------------------------------------------------------------------------------------

NOTHING_SENT = Mistake(
    "nothing was sent",
    "It runs without an error on every rank.",
    "No communication call was made, so no rank can know anything of another. Which collective is needed?",
)
BUFFERS_FORGOTTEN = Mistake(
    "buffers forgotten",
    "`module.parameters()` sounds like everything, and most layers have nothing else.",
    "A BatchNorm's running mean is no parameter, and still decides what the module computes. What else is there?",
)
FROZEN_SKIPPED = Mistake(
    "frozen parameters skipped",
    "They have no gradient, so it seems that nothing has to be done for them.",
    "They differ from rank to rank at the start, like all the others. Do they take part in forward?",
)
SRC_IGNORED = Mistake(
    "`src` is not used",
    "Rank 0 is the usual source.",
    "The caller may want another rank's numbers. What does your call say about who sends?",
)
COPY_RECEIVED = Mistake(
    "received into a copy",
    "The collective did its work: the right numbers arrived, in a tensor that was thrown away.",
    "Which tensor does your call write into, and is it the one the module holds?",
)
AVERAGED_START = Mistake(
    "averaged instead of copied",
    "Afterwards all ranks hold the same numbers.",
    "The same, but not those of rank `src`. Nothing has to be added here.",
)
SUMMED_START = Mistake(
    "summed instead of copied",
    "Afterwards all ranks hold the same numbers.",
    "The same, but far from those of rank `src`. Nothing has to be added here.",
)
NEW_PARAMETERS = Mistake(
    "new parameter objects",
    "The module holds the right numbers.",
    "An optimizer made before still holds the old objects and would train those. Write into the parameters instead.",
)
NOT_ALL_CALL = Mistake(
    "not every rank makes the call",
    "Only one rank has something to send, so only that one seems to have something to do.",
    "A collective is a meeting: those who receive call it too. Look for an `if` or an early `return` around it.",
)
ORDER_DIFFERS = Mistake(
    "ranks make their calls in different orders",
    "Each rank handles every tensor once, and order seems not to matter.",
    "The k-th call of one rank meets the k-th call of the others. A `set` or a sort by value has another order "
    "on each rank.",
)

# --- gradients --------------------------------------------------------------------------------------------------------

SUM_NOT_AVERAGE = Mistake(
    "a sum where an average was asked",
    "`all_reduce` gives every rank the same numbers, the loss falls, and under Adam the scale hardly shows.",
    "The step is as many times too long as there are ranks. What turns a sum into a mean?",
)
DIVIDED_TWICE = Mistake(
    "divided twice",
    "Dividing before the sum is right, and dividing after the sum is right.",
    "One of them is enough. Count how often a number is divided on its way, and by what.",
)
FIXED_DIVISOR = Mistake(
    "divided by a fixed number",
    "It is right with exactly that many ranks.",
    "The number of ranks is known at run time only. Whom can you ask?",
)
COPY_REDUCED = Mistake(
    "a copy was reduced",
    "The all-reduce did its work, in a tensor that was thrown away.",
    "Look at what you hand to `all_reduce`: does `p.grad` share its memory, or is it written back afterwards?",
)
AVERAGED_PARAMETERS = Mistake(
    "parameters averaged instead of gradients",
    "Replicas come out equal, and it even trains.",
    "The optimizer reads `.grad`. Leave the parameters to it.",
)
SKIPS_NONE = Mistake(
    "a rank skips the parameters without gradient",
    "`if p.grad is None: continue` is what an optimizer does.",
    "The k-th call of one rank meets the k-th call of the others: a skipped call shifts all later ones. "
    "What could a rank without gradient bring to the meeting?",
)
HOLDERS_ONLY = Mistake(
    "divided by the ranks that have a gradient",
    "It is the mean of the gradients there are.",
    "A rank that did not use the parameter has a gradient of zero, and zero counts in a mean.",
)
NONE_BECOMES_ZERO = Mistake(
    "None everywhere became zero",
    "Zeros are safe to send and change no sum.",
    "An optimizer skips None, but applies weight decay and momentum to a zero gradient. "
    "How can the ranks find out that nobody has this gradient?",
)
RANK_ZERO_ONLY = Mistake(
    "only one rank got the result",
    "`reduce` adds up correctly, on one rank.",
    "Every rank takes the step, so every rank needs the average. Which collective gives the result to all?",
)
ONE_RANKS_GRADIENT = Mistake(
    "rank 0's gradient everywhere",
    "All ranks hold the same gradient afterwards.",
    "The other ranks' samples are lost. What should become of their gradients?",
)
LARGEST = Mistake(
    "the largest instead of the sum",
    "All ranks hold the same gradient afterwards.",
    "`ReduceOp.MAX` keeps one number of all. Which operation lets every rank count?",
)
MEAN_OF_MEANS = Mistake(
    "a mean of means",
    "Each part's mean is right, and a mean of right things looks right. With equal parts it is.",
    "A part with few samples has as much say as one with many. How much should each part weigh?",
)
NOT_DIVIDED_BY_TOTAL = Mistake(
    "a sum over samples, not divided",
    "The weights are right.",
    "Weights of a mean add up to one. What do yours add up to?",
)
OWN_COUNT = Mistake(
    "divided by the rank's own count",
    "A mean is a sum divided by a count.",
    "The sum now holds the samples of all ranks. Whose count belongs under it?",
)
UNWEIGHTED = Mistake(
    "divided by all samples, without weights",
    "The divisor is right: it is the number of all samples.",
    "Each rank's gradient is a mean. What has to be done to a mean before it can be added to others?",
)
AVERAGED_AGAIN = Mistake(
    "averaged once too often",
    "Gradients of several ranks are usually divided by their number.",
    "Weights that add up to one already make a mean. What is left for the number of ranks to do?",
)
EMPTY_RANK_AWAY = Mistake(
    "the rank without samples stays away",
    "It has nothing to add.",
    "A collective is a meeting: the others wait for it. What can it bring that changes no sum?",
)

# --- accumulate -------------------------------------------------------------------------------------------------------

SYNCS_EVERY_PAIR = Mistake(
    "gradients sent for every pair",
    "The gradients are right: averaging what is averaged already changes nothing.",
    "The same bytes travel once for each pair. DDP decides in the *forward* whether the next backward sends: "
    "is that inside `no_sync()` too, for all pairs but one?",
)
SYNCS_TWICE = Mistake(
    "sent by DDP, then sent again",
    "Averaging averages changes nothing, so the numbers are right.",
    "DDP's backward has already sent them. What is your own all-reduce for?",
)
NEVER_SYNCS = Mistake(
    "gradients never sent",
    "`no_sync()` is there, and every rank has gradients.",
    "Each rank still has only its own. Which of the backwards should be allowed to send?",
)
BYPASSED = Mistake(
    "the wrapper was bypassed",
    "`ddp.module(x)` gives the same output.",
    "DDP prepares its sending in its own forward. What has to be called?",
)
SUM_OF_MEANS = Mistake(
    "means added, not averaged",
    "Each backward adds to `.grad`: that is what accumulation is.",
    "With as many pairs, the gradient is as many times too long. What share of all samples is in each pair?",
)
ONLY_LAST_PAIR = Mistake(
    "only the last pair counts",
    "Gradients are emptied before each backward, as in every training loop.",
    "Here they are to add up over the pairs. When should they be emptied?",
)
SCALED_BY_SIZE_ONLY = Mistake(
    "weighted by size, not by share",
    "A mean times its size is a sum, and sums may be added.",
    "What has the sum over all samples still to be divided by?",
)
OPTIMIZER_CALLED = Mistake(
    "the parameters were changed",
    "A step usually ends with the optimizer.",
    "This function only gathers gradients. The caller takes the step.",
)

# --- exposed time -----------------------------------------------------------------------------------------------------

NO_OVERLAP = Mistake(
    "no overlap",
    "All the all-reduces together do take that long.",
    "Most of that time passes while backward still runs. Which part of it comes after?",
)
ONE_BLOCK = Mistake(
    "all of it could start at once",
    "What does not fit beside backward sticks out.",
    "A bucket cannot be sent before its gradients are there. Draw where each all-reduce can start first.",
)
NO_QUEUE = Mistake(
    "the link is shared without waiting",
    "Each all-reduce starts when its bucket is ready.",
    "There is one link. What if the one before is still on it?",
)
NOT_CLAMPED = Mistake(
    "less than nothing is exposed",
    "The end of the last all-reduce minus the end of backward is the right difference.",
    "What is exposed when everything is done before backward ends?",
)
LAST_ONLY = Mistake(
    "only the last all-reduce counts",
    "The last bucket is always the exposed one.",
    "It may have to wait for those before it, and part of it may pass beside backward. When does it start?",
)
WHOLE_STEP = Mistake(
    "the whole step instead of what sticks out",
    "It is the time at which the last all-reduce ends.",
    "From which moment on does the statement count?",
)
SUM_OF_OVERHANGS = Mistake(
    "overhangs added up",
    "Each all-reduce's part behind backward is right on its own.",
    "With one link they come one after the other. Only the end of the last one counts.",
)

# --- the wrapper ------------------------------------------------------------------------------------------------------

NO_START_COPY = Mistake(
    "no copy at the start",
    "The same code builds the same module on every rank, as long as the seeds agree.",
    "Equal gradients on different weights stay different for ever. What has to happen before the first step?",
)
NO_EARLY_START = Mistake(
    "nothing is sent before the last gradient is ready",
    "The gradients are right, and they are sent in buckets.",
    "The link is idle during the whole of backward. What calls your code when one gradient is ready?",
)
WAITS_IN_HOOK = Mistake(
    "every all-reduce is waited for where it starts",
    "It is sent during backward, from a hook.",
    "Backward stands still until each is done. Keep the handle and wait for it later: where?",
)
ONE_CALL_A_PARAMETER = Mistake(
    "one all-reduce a parameter",
    "The gradients are right, and each is sent as soon as it is ready.",
    "Each call costs its latency, however small. How many parameters fit into `bucket_bytes`?",
)
BUCKET_TOO_BIG = Mistake(
    "a bucket larger than `bucket_bytes`",
    "The fewer messages the less latency.",
    "One large bucket is full only when backward is over. When does a new bucket have to be opened?",
)
UNUSED_FORGOTTEN = Mistake(
    "a bucket whose last gradient never came",
    "In most models every parameter gets a gradient in every step.",
    "A parameter that was not used fires no hook, so its bucket never fills. Who sends it then, and with what?",
)
TIED_TWICE = Mistake(
    "a shared parameter is reduced twice",
    "Two layers hold it, and each layer's parameters are reduced.",
    "Two names, one tensor. Which way of listing parameters gives it once?",
)
FROZEN_TOUCHED = Mistake(
    "frozen parameters are part of it",
    "They are parameters of the module like all others.",
    "They never get a gradient, so nothing has to be sent and `.grad` stays None.",
)
NOT_RESET = Mistake(
    "right in the first step only",
    "The first step is right, and the test that only takes one step passes.",
    "Which counters, handles or lists still hold what belongs to the step before?",
)
ORDER_BY_HOOKS = Mistake(
    "buckets go in the order in which they fill",
    "On each rank that is the quickest order.",
    "Ranks may fill theirs in different orders, and then two different buckets meet. "
    "Let a full bucket wait until all those planned before it have been sent.",
)
HANDLE_NOT_WAITED = Mistake(
    "a handle was never waited for",
    "The all-reduce is often done in time, so the numbers are often right.",
    "`async_op=True` returns before the numbers are there. What does `finish()` have to wait for?",
)
FORWARD_CHANGED = Mistake(
    "calling it does not call the module",
    "It is a wrapper, and the module is at hand as `.module`.",
    "`dp(x)` must give what `module(x)` gives. Which method does calling a `nn.Module` run?",
)
