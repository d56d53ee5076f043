"""Mistakes of lesson 04, first half: bytes of training, parameters and activations, counted on paper."""

from course.grading.mistakes.mistake import Mistake

# --- bytes from step to step ------------------------------------------------------------------------------------------

BYTES_WEIGHTS_ONLY = Mistake(
    "only the weights",
    "That is the size of the file that one downloads.",
    "The file is for using the model. What else does one training step need of each number?",
)
BYTES_NO_GRADIENT = Mistake(
    "the gradients are missing",
    "They are gone after each step.",
    "They come back in the next one, one for each trained number. Add their bytes.",
)
BYTES_NO_STATES = Mistake(
    "the optimizer's states are missing",
    "They are no part of the model.",
    "Adam keeps two averages of each trained number from step to step. Where are they?",
)
BYTES_ONE_MOMENT = Mistake(
    "Adam with one state",
    "A moving average of the gradient is what momentum keeps.",
    "Adam also keeps an average of the squares. How many float32 numbers is that for each trained one?",
)
BYTES_OPTIMIZER_IGNORED = Mistake(
    "Adam's states for every optimizer",
    "Nearly everybody uses Adam.",
    'What does plain `"sgd"` remember of the last step?',
)
BYTES_NO_COPY = Mistake(
    "the float32 copy is missing",
    "The weights are there already, in 2 bytes.",
    "A small step is lost when it is added to a bfloat16 number. So the optimizer has a weight of its own, in float32.",
)
BYTES_GRADIENT_FLOAT32 = Mistake(
    "gradients in float32",
    "Some frameworks do keep them so.",
    'Here gradients have the size of the weights they belong to. Read what "mixed" says.',
)
BYTES_HALF_STATES = Mistake(
    "the optimizer works in 2 bytes",
    "In mixed precision numbers take 2 bytes.",
    "The optimizer adds up small things over many steps. What precision do its own numbers have here?",
)
BYTES_PRECISION_IGNORED = Mistake(
    "4 bytes whatever the precision",
    "A trained number comes to as many bytes in both: what weight and gradient save, the copy takes.",
    "A frozen number has no copy. How many bytes does its weight take in mixed precision?",
)
BYTES_OWN_DTYPE = Mistake(
    "reads the dtype that the parameters have",
    "`p.nbytes` and `p.element_size()` are there to be asked.",
    "They tell how the module is stored now. The question is about training it in `precision`.",
)
BYTES_ELEMENTS = Mistake(
    "counts numbers, not bytes",
    "All parts are in the sum.",
    "How many bytes does each of these numbers take?",
)
BYTES_COPY_ALWAYS = Mistake(
    "a float32 copy of float32 weights",
    "The optimizer works on a copy of its own.",
    "Where the weights are float32 already, what would the copy be for?",
)
BYTES_BUFFERS = Mistake(
    "buffers are counted",
    "`state_dict()` lists them beside the weights.",
    "A running mean is not trained, and is left out here. What lists parameters and nothing else?",
)
BYTES_SHARED_TWICE = Mistake(
    "a shared parameter counts twice",
    "It is listed in both places, with two names.",
    "Two names, one tensor: it is stored once, and has one gradient. Which way of going through a module knows that?",
)
BYTES_FROZEN_TRAINED = Mistake(
    "frozen parameters cost as much as trained ones",
    "They are parameters of the module.",
    "Nothing ever changes them. Which of the parts are then not needed?",
)
BYTES_FROZEN_COPIED = Mistake(
    "a float32 copy of frozen weights",
    "Each weight in 2 bytes has its copy.",
    "The copy is there so that small steps are not lost. How many steps does a frozen weight make?",
)
BYTES_FROZEN_STATES = Mistake(
    "optimizer states for frozen parameters",
    "The optimizer was handed all parameters.",
    "It makes states where a gradient comes. Does one come here?",
)
BYTES_FROZEN_GRADIENT = Mistake(
    "gradients for frozen parameters",
    "Backward goes through them.",
    "It passes on the gradient of what went in. `.grad` of the weight stays None.",
)
BYTES_FROZEN_LEFT_OUT = Mistake(
    "frozen weights are left out",
    "They are not trained.",
    "Forward still needs them. How many bytes is that?",
)
BYTES_MODULE_CHANGED = Mistake(
    "the module was changed",
    "Converted to the precision asked for, it can be measured.",
    "The caller goes on with this module. Count without touching it.",
)

# --- parameters from sizes --------------------------------------------------------------------------------------------

COUNT_NOT_GROUPED = Mistake(
    "keys and values for every head",
    "In GPT-2 each query head has keys and values of its own.",
    "`kv_heads` may be fewer than `heads`. How many channels do the keys of one token have then?",
)
COUNT_TWO_MATRICES = Mistake(
    "two matrices in every MLP",
    "Up and down: that is an MLP.",
    "A Llama has a third one, the gate. `ffn_matrices` says how many there are.",
)
COUNT_FOUR_H = Mistake(
    "an MLP four times as wide as the model",
    "In GPT-2 and GPT-3 it is.",
    "`shape.ffn` says how wide it is. What does Llama have there?",
)
COUNT_TIED_TWICE = Mistake(
    "a tied head is counted",
    "It is a layer of its own, at the other end of the model.",
    "With `tied` it has no numbers of its own. Which matrix does it use?",
)
COUNT_NO_HEAD = Mistake(
    "the head is missing",
    "In GPT-2 there is none to count.",
    "Where it is not tied, it has h numbers for each token of the vocabulary.",
)
COUNT_NO_POSITIONS = Mistake(
    "the position table is missing",
    "Llama has none.",
    "GPT learns a vector for each place. How many places does `shape` name?",
)
COUNT_NO_BIASES = Mistake(
    "the biases are missing",
    "They are few, and Llama has none.",
    "With two MLP matrices, each matrix in a layer brings a number for each channel that it puts out.",
)
COUNT_BIASES_ALWAYS = Mistake(
    "biases in every model",
    "`nn.Linear` has one unless it is told otherwise.",
    "With three MLP matrices there are none.",
)
COUNT_NO_NORMS = Mistake(
    "the norms are missing",
    "They are a few thousand numbers.",
    "An exact count has them too: two in each layer, one at the end.",
)
COUNT_NO_LAST_NORM = Mistake(
    "the last norm is missing",
    "Every layer is complete.",
    "One more stands between the last layer and the head.",
)
COUNT_NORM_HALF = Mistake(
    "a norm with h numbers in every model",
    "Llama's has one for each channel.",
    "GPT's norm scales and shifts. How many numbers is that?",
)
COUNT_NORM_DOUBLE = Mistake(
    "a norm with 2h numbers in every model",
    "`nn.LayerNorm` has a weight and a bias.",
    "Llama's norm only scales. How many numbers is that?",
)
COUNT_ONE_LAYER = Mistake(
    "one layer",
    "The layer is right.",
    "There are `shape.layers` of them.",
)
COUNT_RULE_OF_THUMB = Mistake(
    "the rule of thumb 12 · layers · h²",
    "For large GPTs it is off by a percent or two.",
    "It is the four matrices of attention and the two of a GPT's MLP. Everything else is left out, and here it counts.",
)

# --- bytes of activations ---------------------------------------------------------------------------------------------

STASH_ONE_LAYER = Mistake(
    "one layer",
    "The layer is right.",
    "Backward comes to the first layer last. How many layers hold something when it starts?",
)
STASH_ONE_SEQUENCE = Mistake(
    "one sequence of the microbatch",
    "With microbatch 1 it is right.",
    "How many tokens go through at once?",
)
STASH_ITEMSIZE_FIXED = Mistake(
    "2 bytes whatever `itemsize` says",
    "Published formulas have the 2 built in: 34 · tokens · width are bytes in 16 bits.",
    "Take the formula apart: which terms are numbers of `itemsize` bytes, which are masks?",
)
STASH_ELEMENTS = Mistake(
    "counts numbers, not bytes",
    "Everything that is kept is in the sum.",
    "How many bytes does each take?",
)
STASH_WEIGHTS_LINEAR = Mistake(
    "one attention weight for each token",
    "Everything else is so much a token.",
    "Each token has a weight for every token of its sequence. How many is that for a head?",
)
STASH_WEIGHTS_ACROSS = Mistake(
    "attention weights between sequences",
    "All tokens of the microbatch times all tokens: a square.",
    "A token looks at its own sequence only. So it is one square for each sequence.",
)
STASH_WEIGHTS_ONE_HEAD = Mistake(
    "the attention weights of one head",
    "One square for each sequence.",
    "Each head has weights of its own.",
)
STASH_WEIGHTS_ALWAYS = Mistake(
    "stored weights for fused attention",
    "The weights are computed in both cases.",
    "Fused attention computes them block by block, and again in backward. What does it keep of them?",
)
STASH_WEIGHTS_NEVER = Mistake(
    "no attention weights",
    "Today's kernels keep none.",
    'With `attention="stored"` they are kept, and for long sequences nothing is larger.',
)
STASH_TRIANGLE = Mistake(
    "half of the attention weights",
    "No token looks at a later one.",
    "The whole square is stored, with zeros in the other half. Read which pairs count.",
)
STASH_DROPOUT_ALWAYS = Mistake(
    "masks without dropout",
    "The published 34 · tokens · width has the masks in it.",
    "Without dropout nothing is masked. Two of the 34 have to go.",
)
STASH_MASKS_WIDE = Mistake(
    "masks of `itemsize` bytes",
    "A mask has as many elements as what it masks.",
    "An element of a mask says yes or no. How many bytes does it take here?",
)
STASH_MASKS_FORGOTTEN = Mistake(
    "no masks with dropout",
    "A mask is small.",
    "Backward needs to know what was dropped. Two masks of `width` elements a token, in every layer.",
)
STASH_WEIGHTS_NOT_DROPPED = Mistake(
    "dropout leaves the attention weights alone",
    "The two masks of each token are there.",
    "Stored weights are dropped out as well: that keeps one more mask, and the weights as they are after it.",
)
STASH_RECOMPUTE_IGNORED = Mistake(
    "recomputing changes nothing",
    "In the end everything has been computed.",
    "With `recompute` a layer keeps its input only. How many layers hold everything at the same time?",
)
STASH_RECOMPUTE_FREE = Mistake(
    "inputs alone",
    "That is what the layers keep after forward.",
    "In backward a layer is computed again, and then holds everything it needs. Add that, for one layer.",
)
STASH_INPUT_TWICE = Mistake(
    "the input of the layer that is computed again counts twice",
    "All inputs, and one whole layer.",
    "The whole layer has its input in it, and that one is kept already. Count it once.",
)
