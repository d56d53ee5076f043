"""Mistakes of lesson 08: what ranks exchange, split layers, heads, the cache, the vocabulary."""

from course.grading.mistakes.mistake import Mistake

# --- what travels -----------------------------------------------------------------------------------------------------

NO_BACKWARD_SUM = Mistake(
    "no sum over ranks in backward",
    "All outputs are right, and the weights' gradients too: nothing in the forward pass shows it.",
    "Each rank has used all of the input, in its own part of the layer, and knows its own part of the gradient. "
    "What makes the whole of it?",
)
SUMMED_BOTH_WAYS = Mistake(
    "summed in both directions",
    "Forward is a sum, so its gradient seems to need one as well; `torch.distributed.nn` sums both ways too.",
    "Behind the sum every rank holds the same output and the same gradient. Adding equal gradients makes them as many "
    "times too large as there are ranks.",
)
SUMMED_FORWARD = Mistake(
    "summed in the forward pass",
    "The sum over ranks is asked for somewhere, and `forward` is where one writes it first.",
    "The input is the same on every rank already. In which direction do the ranks hold parts of a sum?",
)
NOT_SUMMED = Mistake(
    "not summed over the ranks",
    "Every rank has a result of the right shape.",
    "Each of these results is one share of a sum. Who adds the shares up?",
)
SHARES_AVERAGED = Mistake(
    "averaged where a sum was asked",
    "Gradients of data parallel ranks are averaged, so dividing by the ranks looks familiar.",
    "The ranks hold shares of one sum, not several opinions of one number. What does the division make of it?",
)
ALL_REDUCE_RETURNED = Mistake(
    "uses what `all_reduce` returns",
    "In most of torch the result of an operation is what comes back.",
    "`dist.all_reduce` works in place and returns None. Which tensor holds the sum afterwards?",
)
REDUCED_IN_PLACE = Mistake(
    "summed in place, in a tensor that others use",
    "`all_reduce` changes the tensor it is given, and the right sum stands in it.",
    "The operation before may need that tensor for its backward, and so may another branch its gradient. "
    "Give the collective a copy.",
)
OUTPUT_CUT_OFF = Mistake(
    "cut off from autograd",
    "The numbers of the forward pass are right.",
    "Backward reaches only what autograd saw. Look for `detach`, `no_grad` or `.data` on the way from weights and "
    "input to output, and say what the gradient of your step is.",
)
GATHERS = Mistake(
    "gathers what could stay apart",
    "With all pieces in one place every rank can compute as one process does.",
    "The pieces are larger than what one all-reduce carries. Which step really needs numbers of another rank?",
)
SUMMED_TOO_OFTEN = Mistake(
    "an all-reduce too many",
    "One more sum, or one of equal numbers that is divided again, leaves the result right.",
    "Count the calls of one forward and one backward pass. Which of them changes nothing that matters?",
)

# --- split layers -----------------------------------------------------------------------------------------------------

BIAS_ON_EVERY_RANK = Mistake(
    "the bias is added on every rank before the sum",
    "On each rank this is what a linear layer does, and with a bias of zero it is even right.",
    "The sum over ranks then holds the bias as often as there are ranks. How often should it be in there?",
)
BIAS_LOST = Mistake(
    "the bias is left out",
    "The matrix is the large part, and a new layer's bias is often zero.",
    "Compare with the whole module: output minus reference is the bias, everywhere.",
)
BIAS_ASSUMED = Mistake(
    "takes a bias for granted",
    "Nearly every linear layer has one.",
    "With `bias=False` the layer's bias is None. Ask before you cut it, and before you add it.",
)
WRONG_DIMENSION = Mistake(
    "cut along the wrong dimension",
    "Rows and columns are easily swapped: torch keeps a linear layer's weight as (out, in).",
    "Write the shapes beside the product. Which of the weight's two dims meets the input, and which makes the output?",
)
SHARD_CUT_AGAIN = Mistake(
    "cuts an input that is cut already",
    "The input of a row split is cut along its last dim, so one cuts it.",
    "It comes that way from the column split before it: what comes in is this rank's part. Print its shape.",
)
COLUMN_GATHERED = Mistake(
    "gathers the output",
    "The whole output is what one process gives.",
    "What follows, an element-wise function and a row split, works on parts. Let each rank keep its own.",
)
SAME_PART = Mistake(
    "every rank takes the first part",
    "The shapes fit on every rank, and on rank 0 the numbers too.",
    "Where does this rank's number enter the cut?",
)
STRIDED_PART = Mistake(
    "takes every n-th feature",
    "Each feature is on exactly one rank.",
    "Rank r owns chunk r, one piece: features that are neighbours stay neighbours.",
)
GELU_OF_PARTS = Mistake(
    "the activation is applied to shares of a sum",
    "All pieces are multiplied with all pieces, and the sum over ranks comes at the end.",
    "gelu(a + b) is not gelu(a) + gelu(b). How can the first matrix be cut, so that each rank has whole sums before "
    "the activation?",
)
KEEPS_THE_WHOLE = Mistake(
    "keeps the whole layer",
    "Everything is right, since each rank can compute it all.",
    "Then nothing is saved: the layer was split because it does not fit. Copy this rank's part and let the rest go.",
)
NO_PARAMETERS = Mistake(
    "its weights are no parameters",
    "The output is right, and a slice of a parameter looks like one.",
    "An optimizer trains what `parameters()` gives. Copy the slice and wrap it in `nn.Parameter`.",
)

# --- heads ------------------------------------------------------------------------------------------------------------

QKV_IN_ONE_PIECE = Mistake(
    "the fused weight is cut in one piece",
    "`qkv` is one matrix, its parts have the right shape, and no error is raised.",
    "Its rows are all queries, then all keys, then all values. What does the first half of them hold?",
)
QKV_PER_HEAD = Mistake(
    "takes q, k and v to lie side by side for each head",
    "Some models keep their fused weight that way.",
    "Here all queries come first, then all keys, then all values. Look at how the whole module reads its rows.",
)
LOCAL_WIDTH_SCALE = Mistake(
    "scores scaled by another width than a head's",
    "The square root of a width stands there, and attention still looks like attention.",
    "Scores are divided by the root of the number of channels of one head. That does not change with the ranks.",
)
HEADS_NOT_SHARED = Mistake(
    "as many heads as before the split",
    "`attention.heads` is the number of heads, and the shapes fit.",
    "A rank has its share of the heads, each as wide as before. With the old number each gets narrower.",
)
SEES_THE_FUTURE = Mistake(
    "no causal mask",
    "The last token sees everything anyway, so its output is right.",
    "The whole module lets no token see a later one.",
)

# --- cache ------------------------------------------------------------------------------------------------------------

CACHE_KEYS_ONLY = Mistake(
    "keys only, no values",
    "One tensor a layer is cached, so it seems.",
    "Attention needs two of them for every token it looks back at.",
)
CACHE_ONE_LAYER = Mistake(
    "one layer only",
    "The formula of one attention layer is right.",
    "Each layer has keys and values of its own.",
)
CACHE_ONE_SEQUENCE = Mistake(
    "one sequence of the batch only",
    "A prompt has one cache.",
    "Every sequence of the batch has its own tokens to remember.",
)
CACHE_NOT_SPLIT = Mistake(
    "the cache is not shared out",
    "It is the right size for the whole group.",
    "Heads are split over the tp ranks, and each keeps only what its own heads look at.",
)
CACHE_IN_BITS = Mistake(
    "bits taken for bytes",
    "Number formats are called by their bits.",
    "`dtype_bytes` is in bytes already, and so is the result.",
)
CACHE_ELEMENTS = Mistake(
    "elements, not bytes",
    "The number of cached numbers is right.",
    "How many bytes does each of them take?",
)
CACHE_SQUARED = Mistake(
    "grows with the square of the tokens",
    "Attention compares every token with every other one.",
    "What is kept is one key and one value a token. The comparisons are made anew and not kept.",
)

# --- vocabulary -------------------------------------------------------------------------------------------------------

FOREIGN_TOKENS = Mistake(
    "tokens of other ranks count as well",
    "Their numbers were moved into range, so that no lookup fails.",
    "The row found there belongs to another token. What should a rank bring to the sum for a token it does not have?",
)
TOKENS_NOT_SHIFTED = Mistake(
    "tokens looked up by their number in the whole vocabulary",
    "On rank 0 the numbers agree.",
    "This rank's first row belongs to its first token. Which place in its part does a token have?",
)
ROWS_LEFT_OVER = Mistake(
    "the last rows are on no rank",
    "With a vocabulary that the ranks divide, nothing is missing.",
    "`size // n` rows a rank leave some over. Cut as `torch.tensor_split` does.",
)
LOCAL_SOFTMAX = Mistake(
    "a softmax over this rank's part only",
    "Each rank has logits, and a softmax can be taken over them.",
    "Probabilities add up to 1 over the whole vocabulary. Which one number a token do the ranks have to add up?",
)
LOCAL_LARGEST = Mistake(
    "each rank subtracts its own largest logit",
    "Any number may be subtracted in a softmax, and the largest is the safe one.",
    "Any number, but the same for all: the exponentials of all ranks go into one sum.",
)
NO_LARGEST = Mistake(
    "no largest logit is subtracted",
    "The formula is right, and with small logits the numbers too.",
    "The exponential of 100 is more than a float32 can hold. What can be subtracted without changing the result?",
)
LARGEST_IN_GRAPH = Mistake(
    "gradients flow through the largest logit",
    "In one process they cancel, so nobody notices.",
    "Here they cancel over all ranks together, not on each. It only guards against overflow: keep autograd out of it.",
)
LOSS_OVER_RANKS = Mistake(
    "the loss is divided by the ranks",
    "Losses of several ranks are usually averaged.",
    "Every rank has the loss of all tokens already, the same one.",
)
LOSS_ADDED_UP = Mistake(
    "the sum over tokens, not the mean",
    "The sum has the same minimum.",
    "The statement asks for the mean over all tokens.",
)

# --- sequence ---------------------------------------------------------------------------------------------------------

OWN_TOKENS_ONLY = Mistake(
    "weights' gradients of this rank's tokens only",
    "Output and input gradient are right, and each rank trains on what it sees.",
    "The weights are the same on all ranks, and have to stay so. Their gradient is a sum over all tokens.",
)
TOKENS_MIXED = Mistake(
    "sums the gradient of the input over the ranks",
    "That is what the entrance of a split layer does.",
    "Here each rank has tokens of its own, whose gradients nobody else needs. What do all ranks share?",
)
EPS_LOST = Mistake(
    "another eps than the norm's",
    "The default is nearly always used.",
    "The module says which eps it has.",
)
NORM_WEIGHTS_LOST = Mistake(
    "normalises, without weight and bias",
    "At the start of training the weight is 1 and the bias 0.",
    "The norm has weights, here with values of their own.",
)

# --- ring attention ---------------------------------------------------------------------------------------------------

OWN_KEYS_ONLY = Mistake(
    "looks at this rank's keys only",
    "On rank 0 it is right: nobody comes before it.",
    "A query looks at all earlier tokens, and those of earlier parts are on other ranks. How do their keys get here?",
)
LATER_PARTS_SEEN = Mistake(
    "looks at later parts",
    "The mask hides what is later within this rank's own part.",
    "Keys that come round the ring may belong to a later part. Whose are they in this step, and may you see them?",
)
MASKED_IN_EVERY_PART = Mistake(
    "the same triangle in every part",
    "Within one part the triangle is the right mask.",
    "A token sees all tokens of an earlier part, also those with a larger number within it.",
)
SOFTMAX_PER_PART = Mistake(
    "a softmax for each part by itself",
    "Each part gives a proper attention, and they can be added up or averaged.",
    "The weights of one query add up to 1 over all parts together. What has to be kept of each part, so that they can "
    "be joined?",
)
NOT_RESCALED = Mistake(
    "sums not rescaled when a larger score turns up",
    "The largest score so far is subtracted, as it should be, in each step.",
    "What was added up before stands under another largest score. By which factor do the two differ?",
)
GRADIENT_STAYS = Mistake(
    "keys and values get the gradient of this rank's queries only",
    "The output is right, and so is the gradient of q.",
    "Queries on later ranks have used these keys too. Their gradients have to travel back to the owner.",
)
SHIFT_NOT_USED = Mistake(
    "leaves unused what a shift has brought",
    "Later parts are not looked at, so skipping them saves work, and the output is right.",
    "Autograd runs the backward of a shift only where its result was used, and the neighbour waits for what that "
    "would send. How can a part be used without being seen?",
)
NOT_A_RING = Mistake(
    "gathers the whole sequence",
    "All keys are needed in the end, so one call brings them.",
    "A sequence that is cut does not fit on one rank. Keys can come by one part at a time, from the neighbour.",
)
