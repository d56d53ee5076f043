"""Mistakes of lesson 09's longer exercises: a step over all axes, a checkpoint cut anew."""

from course.grading.mistakes.mistake import Mistake

# --- whose data -------------------------------------------------------------------------------------------------------

HYBRID_WHOLE_BATCH = Mistake(
    "every copy trains on the whole batch",
    "The gradient is right, since the mean of equal gradients is that gradient.",
    "Then dp saves no time: every copy does all the work. Which samples are for this rank's index along dp?",
)
HYBRID_PART_BY_RANK = Mistake(
    "parts of the batch by global rank",
    "Each rank has a part.",
    "Ranks of one copy work on the same samples together: the first stage reads `x`, the last one `y`, and all of tp "
    "share each sample. On which axis does the part depend, then?",
)

# --- gradients --------------------------------------------------------------------------------------------------------

HYBRID_COPIES_NOT_SUMMED = Mistake(
    "copies along tp with gradients of their own tokens",
    "Each rank of tp has a gradient for them, and of the right size.",
    "Each has seen a part of the tokens only. What makes the gradient of all tokens out of the parts?",
)
HYBRID_COPIES_AVERAGED = Mistake(
    "copies averaged over tp",
    "Copies along dp are averaged, so copies along tp look alike.",
    "Along dp each rank has the mean of its own samples. Along tp each has a part of one sum, over its tokens.",
)
HYBRID_SHARDS_SUMMED = Mistake(
    "shards are summed over tp",
    "All ranks of tp take part in every gradient.",
    "A shard's neighbour holds other rows. Which parameters do all ranks of tp hold alike?",
)
HYBRID_TIED_NOT_SUMMED = Mistake(
    "the tied embedding's two gradients are not added",
    "Each end of the pipeline has one.",
    "In one process there is one weight, used twice: what does autograd do with its two gradients?",
)
HYBRID_TIED_AVERAGED = Mistake(
    "the tied embedding's two gradients are averaged",
    "Afterwards both ends hold the same one.",
    "Both are of the same loss: one use of the weight, and the other. Do they add up, or are they two guesses of one?",
)
HYBRID_MIDDLE_STAGE = Mistake(
    "the ends meet in a group that the middle is in",
    "With two stages the ends are all of pp.",
    "A collective waits for every rank of its group. Which group has the first and the last stage alone?",
)
HYBRID_DP_FORGOTTEN = Mistake(
    "nothing is averaged over dp",
    "With one copy it is right.",
    "Each copy has seen other samples, and all copies must take the same step. What do they have to agree on?",
)
HYBRID_DP_SUMMED = Mistake(
    "summed over dp, not averaged",
    "`all_reduce` sums, and with one copy it is right.",
    "Each copy's gradient is a mean over its samples already. What is the mean over all of them?",
)
HYBRID_MEAN_OF_MEANS = Mistake(
    "a mean of means over unequal parts",
    "With parts of one size it is right.",
    "A copy with three samples counts as much as one with two. What is each one's share of the batch?",
)
HYBRID_DIVIDED_BY_ALL = Mistake(
    "divided by all ranks",
    "Every rank takes part in the step.",
    "pp and tp cut one model, they make no further means. How many copies of the model are there?",
)
HYBRID_OTHER_PARTS = Mistake(
    "a sum with ranks that hold other parts",
    "Every rank calls, and where shapes agree something comes out.",
    "`all_reduce` without a group means all ranks. Which of them hold this very part of the model?",
)
HYBRID_NOT_ZEROED = Mistake(
    "the gradients of the step before count once more",
    "The first step is right.",
    "`forward_backward` adds to `.grad`. What is in there when the next step begins?",
)

# --- the norm, the loss, what is sent ---------------------------------------------------------------------------------

HYBRID_TIED_TWICE = Mistake(
    "the tied embedding counts twice in the norm",
    "Both ends hold it, and each adds what it holds.",
    "In one process it is one weight. Which of the two ranks brings it into the sum?",
)
HYBRID_ONE_END_SCALED = Mistake(
    "the tied embedding is scaled on one end only",
    "It counts once in the norm, so it stands in one end's list.",
    "Who counts it in the norm is one question, who scales it another. What does the other end's weight do in this "
    "step?",
)
HYBRID_STAGE_NORM = Mistake(
    "each stage clips by its own norm",
    "The sum over tp makes it equal within a stage.",
    "Then the stages scale by different factors. Over which ranks is the model split?",
)
HYBRID_CLIPPED_EARLY = Mistake(
    "clipped before the gradients were complete",
    "The factor is that of a norm, and afterwards no gradient is too long.",
    "The norm asked for is that of the whole batch's gradient. When does this rank hold its part of that one?",
)
HYBRID_LOSS_ON_ONE_STAGE = Mistake(
    "only the last stage has the loss",
    "It is the stage that computes it.",
    "The others get None from `forward_backward`. What can they bring into a sum, to have the number too?",
)
HYBRID_LOSS_OF_A_PART = Mistake(
    "the loss of one copy's samples",
    "It is close to that of the batch.",
    "Other copies have other samples. Weigh the losses as you do the gradients.",
)
HYBRID_LOSS_COUNTED = Mistake(
    "the loss counts once a rank of tp",
    "All of its ranks are in the sum.",
    "All ranks of tp have the same loss of the same samples. Along which axes do the numbers differ?",
)
HYBRID_SENT_TWICE = Mistake(
    "gradients travel more often than they must",
    "The result is right.",
    "For each gradient write down which ranks lack something of it: a call for each such group, and no other.",
)

# --- a checkpoint, cut anew -------------------------------------------------------------------------------------------

RESHARD_DIM_IGNORED = Mistake(
    "always along dim 0",
    "Most weights are cut along it.",
    "A row-parallel weight is cut along dim 1. `dims` says it for each name.",
)
RESHARD_CHUNK = Mistake(
    "cut by torch.chunk",
    "Where the ranks divide the size, it cuts as `tensor_split` does.",
    "Cut 5 into 4 with both, and look at the sizes. How many parts does `chunk` make?",
)
RESHARD_BIGGER_LAST = Mistake(
    "the last parts are bigger",
    "All is there, once, in order, and the sizes differ by one or by what is left over.",
    "Which parts does `torch.tensor_split` make bigger?",
)
RESHARD_STRIDED = Mistake(
    "dealt out in turn",
    "Each rank gets as many, and nothing is lost.",
    "Side by side, in the order of the ranks, the parts must make the whole again.",
)
RESHARD_EACH_APART = Mistake(
    "each old part is cut by itself",
    "With one old part it is right, and the sizes always are.",
    "Put the old parts of one tensor together first. What does rank 0 of the new ones hold, its first rows or some of "
    "each part's?",
)
RESHARD_NO_REST = Mistake(
    "what does not divide is lost",
    "Where the ranks divide the size, it is right.",
    "Add up the sizes of the new parts. Where is the rest?",
)
RESHARD_WHOLE_SUMMED = Mistake(
    "what every rank holds is added up",
    "Gradients of copies are summed, so summing looks familiar.",
    "Every rank has the same numbers. How many of them do you need to know them?",
)
RESHARD_WHOLE_JOINED = Mistake(
    "what every rank holds is put side by side",
    "All shards of a tensor are put together.",
    "None in `dims` means that each rank has all of it already.",
)
RESHARD_WHOLE_CUT = Mistake(
    "what every rank holds is cut",
    "Each new rank gets a part.",
    "None in `dims` means that each rank holds all of it: before and after.",
)
RESHARD_VIEW = Mistake(
    "a view that keeps the whole alive",
    "Its numbers are right, and `is_contiguous()` may say so too.",
    "`tensor_split` copies nothing: each part holds on to all the memory of the whole. A rank then saves nothing. What "
    "gives a part memory of its own?",
)
RESHARD_SHARED = Mistake(
    "two ranks, or a rank and the input, share memory",
    "The numbers are right.",
    "These ranks live in different processes, and each changes its tensors in place. How many tensors do you make for "
    "n ranks?",
)
RESHARD_STRIDES = Mistake(
    "not contiguous",
    "The numbers are right, and printed they look the same.",
    "A part along dim 1 has gaps between its rows; `clone` keeps the order of strides. Which call does away with both?",
)
RESHARD_DTYPE = Mistake(
    "another dtype",
    "The numbers look the same.",
    "A checkpoint has numbers of many types: bfloat16 weights, int64 counters. Do you make new tensors with a dtype?",
)
RESHARD_INPUT_CHANGED = Mistake(
    "the shards that came in are changed",
    "The result is right.",
    "Whoever called still needs them. Read, and leave what you read as it is.",
)
RESHARD_EMPTY_DROPPED = Mistake(
    "ranks without a part are left out",
    "There is nothing for them to hold.",
    "A rank looks for every name. Its part may have size 0 along the dim, as `tensor_split` gives it.",
)
