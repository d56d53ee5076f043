"""Mistakes of lesson 10 about FLOPs and utilisation. A step and whole runs have files of their own."""

from course.grading.mistakes.mistake import Mistake

ROUNDED = Mistake(
    "rounded",
    "It reads better.",
    "Who calls a function may go on reckoning. Return the number as it is, and round where it is printed.",
)

# --- FLOPs of a step --------------------------------------------------------------------------------------------------

FLOPS_FORWARD_ONLY = Mistake(
    "the forward pass alone",
    "Every matrix product is there, once.",
    "Training also goes backward. For each product, backward makes a gradient of both factors: how many products are "
    "these?",
)
FLOPS_BACKWARD_AS_FORWARD = Mistake(
    "backward costs as much as forward",
    "It passes through the same layers.",
    "For y = x w, backward needs the gradient of x and the gradient of w. How many products are these?",
)
FLOPS_RECOMPUTED = Mistake(
    "a recomputed forward pass is counted",
    "A run with recomputation does execute it.",
    "Model FLOPs say what the model needs, not what a run chose to do again. Forward once, backward twice as much.",
)
FLOPS_MULTIPLY_ADDS = Mistake(
    "a multiplication and its addition count as one",
    "Chips do both in one instruction.",
    "By the statement a product of (m, k) and (k, n) takes 2mkn: additions count too, as they do in chips' peaks.",
)
FLOPS_TWICE = Mistake(
    "a factor of 2 too much",
    "A product is multiplications and additions.",
    "2mkn has both in it, and backward has twice that, not more. Where did the 2 come in again?",
)
FLOPS_A_TOKEN = Mistake(
    "FLOPs of one token",
    "Per token is how one counts.",
    "The step trains on `batch` sequences of `sequence` tokens each.",
)
FLOPS_ONE_SEQUENCE = Mistake(
    "FLOPs of one sequence",
    "All its tokens are there.",
    "How many sequences are in the step?",
)
FLOPS_NO_SCORES = Mistake(
    "attention's scores are left out",
    "6 a parameter and token is the rule of thumb, and scores have no parameters.",
    "Queries are multiplied with keys, and the scores with values. How large are these products for one token?",
)
FLOPS_HALF_THE_SCORES = Mistake(
    "half of attention's scores",
    "Half of them are masked; or the product with the keys is there, and looks like all of attention.",
    "Two products have `sequence` as one of their sizes, with the keys and with the values, and the statement counts "
    "both whole.",
)
FLOPS_SCORES_ONE_LAYER = Mistake(
    "the scores of one layer",
    "All products of a layer are there.",
    "Each layer has scores of its own. What is multiplied by `layers`?",
)
FLOPS_SCORES_A_HEAD = Mistake(
    "the heads are counted twice or not at all",
    "Each head has scores of its own.",
    "Each head multiplies hidden/heads channels, and there are `heads` of them. What is that in all?",
)
FLOPS_SCORES_SQUARED = Mistake(
    "`sequence` once too often in the scores",
    "The scores are a square of sequence x sequence.",
    "That square is for a whole sequence. One token has one row of it: did you multiply by the tokens again?",
)
FLOPS_NO_HEAD = Mistake(
    "the output head is left out",
    "All layers are there.",
    "After the last layer every token gets a score for each word: a product with a matrix of hidden x vocab.",
)
FLOPS_LOOKUP_COUNTED = Mistake(
    "looking up the embedding is counted",
    "The table has vocab x hidden parameters, so it is in the number of parameters.",
    "Nothing is multiplied there: a row is read. Which of the two large tables is part of a product?",
)
FLOPS_HEAD_A_LAYER = Mistake(
    "an output head in each layer",
    "All parts are there.",
    "The head comes once, after all layers. What is multiplied by `layers`?",
)
FLOPS_PROJECTION_MISSING = Mistake(
    "a projection of attention is missing",
    "Queries, keys and values are what attention is made of.",
    "There are four: for queries, for keys, for values, and the one that puts the heads' output together.",
)
FLOPS_FFN_IS_FOUR = Mistake(
    "takes 4 hidden for `ffn`",
    "GPT-2 and GPT-3 are like that.",
    "Other models are not. How wide their MLP is, is an argument.",
)
FLOPS_ALL_KV_HEADS = Mistake(
    "as many key and value heads as heads",
    "It was so before grouped queries.",
    "Keys and values have `kv_heads` heads of hidden/heads channels. How wide are their two matrices?",
)
FLOPS_SCORES_OF_KV = Mistake(
    "fewer scores for fewer key heads",
    "There are fewer keys to multiply with.",
    "A key is shared by several heads, and each of them still multiplies its own queries with it.",
)
FLOPS_ONE_NARROW = Mistake(
    "only one of keys and values is narrow",
    "One of the two is right.",
    "Keys and values both have `kv_heads` heads.",
)
FLOPS_KV_BY_HIDDEN = Mistake(
    "a key head of one channel",
    "`kv_heads` is in it.",
    "A head has hidden/heads channels, a key head too. How wide are `kv_heads` of them?",
)
FLOPS_TWO_MATRICES = Mistake(
    "`ffn_matrices` makes no difference",
    "GPTs have two.",
    "A gated MLP has three matrices of hidden x ffn. Each is a product.",
)

# --- utilisation ------------------------------------------------------------------------------------------------------

MFU_HARDWARE = Mistake(
    "what is computed again is counted",
    "The chips do execute it: that is the *hardware* FLOPs utilisation.",
    "A run could look better by wasting more. Which FLOPs does the model need, however the run saves memory?",
)
MFU_RECOMPUTATION_TAKEN_OFF = Mistake(
    "recomputation is taken off twice",
    "A quarter of what the chips do is done again.",
    "6 FLOPs a parameter have no recomputation in them, and the tokens a second are as many as they are. There is "
    "nothing to take off.",
)
MFU_NO_ATTENTION = Mistake(
    "attention is left out",
    "6 FLOPs a parameter is most of it.",
    "Products of queries with keys have no parameters. The statement says what they cost for a token.",
)
MFU_HALF_ATTENTION = Mistake(
    "half of attention",
    "Half of the scores are masked.",
    "PaLM's definition counts all of them, and so does the statement: 12, not 6.",
)
MFU_FORWARD_ONLY = Mistake(
    "the forward pass alone",
    "2 FLOPs a parameter is what a token costs on its way forward.",
    "The run trains. The statement's numbers have backward in them.",
)
MFU_ONE_GPU = Mistake(
    "all tokens over the peak of one GPU",
    "Tokens a second and a peak are all that it takes.",
    "The tokens are those of all GPUs together. Whose peak stands below?",
)
MFU_ALL_GPUS_TWICE = Mistake(
    "times the number of GPUs, where it belongs below",
    "There are that many GPUs.",
    "The log's tokens are already those of all GPUs. What grows with their number is the peak.",
)
MFU_BACKWARD_AGAIN = Mistake(
    "backward is counted again",
    "Forward and backward together are three times the forward pass.",
    "6 a parameter is all three. What would the forward pass alone cost?",
)
MFU_SEQUENCES = Mistake(
    "times `sequence`",
    "Each sequence has that many tokens.",
    "The log counts tokens, not sequences.",
)
MFU_UNITS = Mistake(
    "a factor of a million million",
    "Peaks are printed in TFLOP per second.",
    "`peak_flops` is in FLOP per second, as all units here.",
)
MFU_PERCENT = Mistake(
    "percent in place of a share",
    "Utilisation is quoted in percent.",
    "Half is 0.5 here.",
)
MFU_UPSIDE_DOWN = Mistake(
    "upside down",
    "All numbers are in it.",
    "More tokens a second are a better use of the chips. Which of the two belongs above?",
)
MFU_FLOPS = Mistake(
    "FLOP per second, not a share",
    "It is what a paper's table prints.",
    "A share has no unit. By what all chips could do at their peak has this to be divided?",
)
MFU_SCORES_WRONG = Mistake(
    "another size in the term of attention",
    "`12` and some of the sizes are in it.",
    "12 · layers · heads · head_width · sequence: each of the four once, and it stands beside the 6 a parameter, not "
    "inside.",
)
