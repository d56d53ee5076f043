"""Mistakes of lesson 04: LoRA, accumulation, int8, recomputing. Those of counting: `lesson_04_counts`."""

from course.grading.mistakes.mistake import Mistake

# --- LoRA -------------------------------------------------------------------------------------------------------------

LORA_BASE_TRAINED = Mistake(
    "the layer itself is still trained",
    "It is there, and the outputs are right.",
    "Then gradients and Adam's states are as large as without LoRA. What has to be switched off in `linear`?",
)
LORA_NOT_PARAMETERS = Mistake(
    "A and B are no parameters",
    "They are tensors, and the formula uses them.",
    "An optimizer is handed `layer.parameters()`. What do tensors have to be wrapped in, to be found there?",
)
LORA_B_NOT_ZERO = Mistake(
    "B does not start at zero",
    "Weights start with random numbers, usually.",
    "With random numbers in both, the first step is made from a damaged model. One of the two has to be zero.",
)
LORA_BOTH_ZERO = Mistake(
    "A and B both start at zero",
    "The output is that of `linear`, as asked.",
    "The gradient of A has B as a factor, and that of B has A. What do both become, in every step?",
)
LORA_A_ZERO = Mistake(
    "A is zero, and B random",
    "Their product is zero too, and they do learn.",
    "Here it is the other way round, as in the paper. Which of the two did you set to zero?",
)
LORA_ROWS_ALIKE = Mistake(
    "all rows of A are the same",
    "They are not zero.",
    "Equal rows get equal gradients and stay equal: the rank is 1, whatever was asked for. Draw random numbers.",
)
LORA_NO_SCALE = Mistake(
    "the scale is missing",
    "The product of A and B is added.",
    "What does `alpha` do in your code? It stands for alpha / rank.",
)
LORA_SCALE_INVERTED = Mistake(
    "rank / alpha",
    "Both numbers are in it.",
    "A larger alpha should make what is added larger.",
)
LORA_SCALE_ALPHA = Mistake(
    "alpha alone",
    "With rank 1 it is right.",
    "The sum in the product grows with the rank. What keeps it in bounds?",
)
LORA_SCALE_ROOT = Mistake(
    "alpha over the root of the rank",
    "A later paper proposes just that.",
    "Here it is alpha / rank. Read the formula again.",
)
LORA_BIAS_LOST = Mistake(
    "the bias is lost",
    "The weights are what matters, and with `bias=False` it is right.",
    "The output starts as that of `linear`, with all it has. Call `linear` itself, or add its bias.",
)
LORA_NOT_ADDED = Mistake(
    "A and B change nothing",
    "They start at nothing, so at first the output is right.",
    "Give B other numbers and look at the output. Where do A and B come into `forward`?",
)
LORA_BASE_WITHOUT_GRADIENT = Mistake(
    "no gradient of x through the frozen layer",
    "It is not trained, so `torch.no_grad()` saves memory.",
    "Layers before this one train on the gradient of x, and most of it comes through `linear`. Freeze weights, not x.",
)
LORA_ADAPTER_DETACHED = Mistake(
    "no gradient of x through A and B",
    "A and B get theirs.",
    "x goes two ways. Its gradient is the sum of both.",
)
LORA_MERGED_UNSCALED = Mistake(
    "merged without the scale",
    "B A is added to the weight.",
    "`forward` multiplies by alpha / rank. The merged weight needs it too.",
)
LORA_MERGED_NOTHING = Mistake(
    "the merged layer is the old one",
    "It is a plain `nn.Linear`, and before training it is right.",
    "What A and B have learned is to be in its weight.",
)
LORA_MERGED_NO_BIAS = Mistake(
    "the merged layer has another bias",
    "Its weight is right.",
    "A bias comes over as it is; and where there was none, the new layer has none either.",
)
LORA_MERGED_IN_PLACE = Mistake(
    "merging changed the layer itself",
    "What is returned is right.",
    "Call the LoRALinear once more: A and B are now added twice. Write into a new layer, with a copy of the weight.",
)
LORA_MERGED_KIND = Mistake(
    "not a plain nn.Linear",
    "It gives the same outputs.",
    "A server should not need to know about LoRA. Make an `nn.Linear` of the same sizes.",
)

# --- accumulation -----------------------------------------------------------------------------------------------------

ACCUMULATE_STALE = Mistake(
    "old gradients are in the sum",
    "In a fresh model there are none.",
    "Backward adds to what is there. Empty the gradients once, before the first pair.",
)
ACCUMULATE_ALL_HELD = Mistake(
    "all pairs are held until one backward",
    "The gradients are right, to the bit.",
    "That needs as much memory as one large batch. Run backward for a pair before the next one goes in.",
)
ACCUMULATE_ONE_BATCH = Mistake(
    "one large batch",
    "The gradients are right: it is what accumulation is compared with.",
    "The large batch is what does not fit. Hand the pairs to the module one by one.",
)
ACCUMULATE_RETAINED = Mistake(
    "what backward needed is kept",
    "`retain_graph=True` makes an error go away.",
    "It keeps every tensor that backward used. With one backward for each forward nothing has to be kept.",
)
ACCUMULATE_LOSS_ATTACHED = Mistake(
    "the sum of losses hangs on to every graph",
    "It is one number, and nobody runs backward on it.",
    "It still knows what it was computed from. Add up `loss.item()` or `loss.detach()`.",
)
ACCUMULATE_CALLED_TWICE = Mistake(
    "the module is called more than once for a pair",
    "The numbers are right.",
    "Each call costs a forward pass. Keep the loss of the one that you run backward on.",
)
ACCUMULATE_LOSS_LAST = Mistake(
    "the loss of one pair",
    "`loss` still has it when the loop is over.",
    "It is one pair's loss, and jumps about. Add up the shares of all pairs.",
)
ACCUMULATE_LOSS_MEAN = Mistake(
    "the mean of the losses",
    "With pairs of equal size it is right.",
    "The gradients are weighted by size. Weigh the losses in the same way.",
)
ACCUMULATE_LOSS_SUM = Mistake(
    "the sum of the losses",
    "Each is a mean, and they are added up.",
    "A mean over all samples lies between the smallest and the largest of them. Which share does each pair have?",
)

# --- int8 -------------------------------------------------------------------------------------------------------------

INT8_CUT_OFF = Mistake(
    "fractions are cut off, not rounded",
    "`.to(torch.int8)` gives whole numbers.",
    "It turns 2.9 into 2: every weight gets a little smaller. Round first.",
)
INT8_FLOOR = Mistake(
    "rounded down",
    "`floor` rounds.",
    "It always goes the same way, so all weights are off to one side. To the nearest, please.",
)
INT8_ONE_SCALE = Mistake(
    "one scale for the whole weight",
    "Every number fits into int8.",
    "One large number then makes all other rows coarse. Each row has a largest number of its own.",
)
INT8_COLUMNS = Mistake(
    "a scale for each column",
    "There are as many scales as one dimension is long.",
    "`dim` names the dimension that goes away. Which one should be left?",
)
INT8_NO_ABS = Mistake(
    "the largest number, not the largest absolute one",
    "In most rows the largest one is positive.",
    "In a row whose largest number is negative, the others fit and that one does not. What is missing before the max?",
)
INT8_BY_128 = Mistake(
    "divided by 128",
    "int8 goes down to -128.",
    "It goes up to 127 only. What becomes of the largest number of a row?",
)
INT8_OFFSET = Mistake(
    "from the smallest to the largest number",
    "The whole range of int8 is used.",
    "Then 0 is no longer 0, and the way back needs an offset too. Here the scale is symmetric.",
)
INT8_INVERTED = Mistake(
    "the scale upside down",
    "The int8 numbers are right.",
    "The scale is what a step of 1 in int8 is worth: number times scale is the weight.",
)
INT8_ZERO_ROW = Mistake(
    "a row of zeros has no scale above 0",
    "Such rows are rare.",
    "Its largest number is 0, so its scale is 0, and 0 / 0 is not a number. Which scale does no harm there?",
)
INT8_KEPT_DIMENSION = Mistake(
    "scales of shape (rows, 1)",
    "In that shape they divide the rows.",
    "What is returned has one dimension. `squeeze` or `[:, 0]` drops the other.",
)
INT8_FLOATS = Mistake(
    "whole numbers, but not int8",
    "They have the right values.",
    "They still take 4 bytes each. Which dtype is asked for?",
)
INT8_SWAPPED = Mistake(
    "the pair is swapped",
    "Both are right.",
    "First the numbers, then the scales.",
)
BACK_COLUMNS = Mistake(
    "the scales lie along the columns",
    "For a square weight the shapes fit.",
    "Broadcasting lines up the last dimensions. Give the scales a second one.",
)
BACK_DIVIDES = Mistake(
    "divided by the scale",
    "There was a division on the way in.",
    "On the way back it is the other way round.",
)
BACK_UNSCALED = Mistake(
    "the scale is not used",
    "The numbers are floats again.",
    "How much is a step of 1 worth in each row?",
)
BACK_ONE_SCALE = Mistake(
    "one scale for all rows",
    "In one row it is right.",
    "Each row was divided by its own.",
)
BACK_INTEGERS = Mistake(
    "int8 again",
    "The shape is right.",
    "A weight like 0.03 becomes 0. Which dtype holds fractions?",
)
BACK_OTHER_DTYPE = Mistake(
    "another kind of float",
    "The numbers are about right.",
    "float32 is asked for, in 4 bytes each.",
)

# --- recomputing ------------------------------------------------------------------------------------------------------

RECOMPUTE_LIBRARY = Mistake(
    "torch.utils.checkpoint does it",
    "It does just this, and at work one would call it.",
    "Here you write it. A `torch.autograd.Function` of your own has a forward and a backward: what does each do?",
)
RECOMPUTE_KEEPS = Mistake(
    "what was computed inside is kept",
    "Output and gradients are right: so they are without recomputing.",
    "Autograd keeps what the operations inside need. Under which condition does it keep nothing?",
)
RECOMPUTE_NO_GRAPH = Mistake(
    "the output leads nowhere",
    "Under `torch.no_grad()` nothing is kept.",
    "No gradient can come back either. What ties an output to inputs whose inside is not recorded?",
)
RECOMPUTE_NOT_RECORDED = Mistake(
    "the second call is not recorded either",
    "It is the call of which the gradients are wanted.",
    "Inside a Function's `backward` autograd is off, and a detached input asks for nothing by itself. Which two things "
    "have to be switched on?",
)
RECOMPUTE_OTHER_MASK = Mistake(
    "another dropout mask in backward",
    "Without dropout the gradients are right.",
    "The second call draws new random numbers. What do they come from, and can it be set back?",
)
RECOMPUTE_RANDOM_STATE = Mistake(
    "the random numbers after backward are others",
    "The mask is the same as in forward.",
    "The generator now stands where it stood then. Put it back to where it was before the second call.",
)
RECOMPUTE_TWICE_COUNTED = Mistake(
    "the gradient of the input counts twice",
    "Backward reaches the input, and it is returned as well.",
    "The second graph should end at a copy of the input that knows nothing of what came before: `detach()`.",
)
RECOMPUTE_NO_INPUT_GRADIENT = Mistake(
    "no gradient for the input",
    "The parameters inside get theirs.",
    "Layers before this one wait for it. What does `backward` return for each argument?",
)
RECOMPUTE_NO_PARAMETER_GRADIENT = Mistake(
    "no gradient for the parameters inside",
    "`torch.autograd.grad` is asked for the inputs, and gives them.",
    "It leaves alone whatever it is not asked for. Which call runs backward to every leaf?",
)
RECOMPUTE_UPSTREAM_IGNORED = Mistake(
    "the gradient that came in is not used",
    "For the sum of the output it is all ones.",
    "Start the inner backward with what `backward(ctx, ...)` was handed.",
)
RECOMPUTE_AT_ONCE = Mistake(
    "called more than once in forward",
    "Everything is there for backward.",
    "The second call belongs in backward, when its memory is free again.",
)
RECOMPUTE_CALLED_TOO_OFTEN = Mistake(
    "called more than once in backward",
    "The gradients are right.",
    "One call gives all of them at once: backward goes to every leaf.",
)
RECOMPUTE_INTEGERS = Mistake(
    "asks gradients for whole numbers",
    "For float inputs it is right.",
    "Tokens have no gradient. Ask for one only where the input did.",
)
