"""Exercises of lesson 04: does it fit."""

from course.grading.exercises.exercise import Exercise

TRAINING_BYTES = Exercise(
    id="training_bytes",
    lesson="04_does_it_fit",
    level="core",
    minutes=20,
    points=10,
    source=None,
    statement=(
        "Write `training_bytes(module, *, optimizer, precision)`: the bytes that training a `torch.nn.Module` keeps "
        "from step to step. A parameter that is used in several places is one parameter. One whose `requires_grad` is "
        'False is frozen: it has neither a gradient nor optimizer states. In precision `"float32"` a weight takes 4 '
        'bytes and a gradient 4. In `"mixed"` both take 2, and each number that is trained has a float32 copy of its '
        "weight beside them, 4 bytes more. The optimizer's states are float32 in both: for each number that is "
        'trained, `"sgd"` keeps none, `"momentum"` one, `"adam"` two. `precision` decides, not the dtype that the '
        "parameters have. Buffers, activations and step counters are not counted. The module may be on the meta "
        "device, whose tensors have a shape and no memory. Another optimizer or precision raises `ValueError`."
    ),
    hints=(
        "Start with one trained number under float32 and Adam. What is kept of it, and how many bytes is each?",
        "Two counts say everything about a module: its numbers that are trained, and those that are frozen. "
        "`p.numel()` asks for no memory, so it works on the meta device.",
        "`module.parameters()` names a shared parameter once. Bytes a trained number: weight + gradient + copy + 4 for "
        "each state; a frozen one has its weight alone. Two small dicts hold what depends on the two names.",
    ),
)

COUNT_PARAMETERS = Exercise(
    id="count_parameters",
    lesson="04_does_it_fit",
    level="practice",
    minutes=20,
    points=7,
    source=None,
    statement=(
        "Write `count_parameters(shape)`: the parameters of a decoder, from its sizes alone. `shape` is a "
        "`ModelShape` of `course.spec.shape`, where `SHAPES` holds published ones by name; h is `shape.hidden`.\n\n"
        "- The token table has `vocab` rows of h numbers, the position table `positions` rows (there may be 0).\n"
        "- Each of the `layers` layers has two norms; a query matrix from h to h channels; a key and a value matrix, "
        "each from h channels to `kv_heads` heads of h / `heads` channels; an output matrix from h to h; and an MLP of "
        "`ffn_matrices` matrices: the last from `ffn` channels to h, the others from h to `ffn`.\n"
        "- A last norm and a head from h to `vocab` channels follow. Where `tied`, the head is the token table.\n"
        "- With 2 MLP matrices (GPT) each matrix in a layer has a bias, a number for each channel it puts out, and "
        "each norm has 2h numbers. With 3 (Llama) there are no biases, and each norm has h. The head never has a "
        "bias.\n\n"
        "Leave `experts` aside: it is 1."
    ),
    hints=(
        "Write down one layer first: four matrices of attention, two or three of the MLP. What do they have in common?",
        "With grouped heads, keys and values have `kv_heads * (hidden // heads)` channels. In GPT-2 that is h itself, "
        "so only a Llama shows whether it is right.",
        "GPT-2 has 124,439,808 parameters. What you are short of it, divided by 768 and by 12, often tells what "
        "is missing.",
    ),
)

ACTIVATION_BYTES = Exercise(
    id="activation_bytes",
    lesson="04_does_it_fit",
    level="practice",
    minutes=25,
    points=7,
    source=None,
    statement=(
        'Write `activation_bytes(*, layers, width, heads, sequence, microbatch, itemsize=2, attention="fused", '
        "dropout=False, recompute=False)`: the most bytes that the layers of a GPT hold at once for backward. There "
        "are microbatch · sequence tokens. A number takes `itemsize` bytes, an element of a mask 1 byte.\n\n"
        "- Of each token a layer keeps `width` numbers for each of these: input and output of both norms, queries, "
        "keys, values, attention's output; and 4 · width numbers before GELU, and as many after it.\n"
        '- With attention `"stored"`, each head of a layer also keeps sequence² attention weights for each '
        'sequence, numbers too. `"fused"` keeps none of them.\n'
        "- With `dropout`, a layer also keeps two masks, each of `width` elements a token. Where attention weights are "
        "stored, it keeps a mask of all of them as well, and a second copy of them, after dropout.\n"
        "- With `recompute`, each layer keeps only the input of its first norm. In backward one layer at a time is "
        "computed again; that one then also holds everything else that it would keep without `recompute`.\n\n"
        "A count below 1 or another `attention` raises `ValueError`."
    ),
    hints=(
        "Start with one token, one layer, fused attention and no dropout. How many times `width` numbers is that?",
        "The stored weights of one sequence are a square: sequence · sequence for each head. Which of the other terms "
        "grow with the square of the sequence?",
        "Put one layer together first, call it `whole`, and its input `kept`. Without recomputation the answer is "
        "layers · whole. With it, all layers have `kept`, and one of them what is missing to `whole`.",
    ),
)

LORA_LINEAR = Exercise(
    id="LoRALinear",
    lesson="04_does_it_fit",
    level="practice",
    minutes=25,
    points=10,
    source=None,
    statement=(
        "Write the class `LoRALinear(linear, rank, alpha)`, a `torch.nn.Module`. `linear` is an `nn.Linear`, with or "
        "without bias. Called with x of shape (…, in features), it returns linear(x) + (alpha / rank) · x Aᵀ Bᵀ, where "
        "A holds rank · in features numbers, B out features · rank, in any layout, and together they are all that is "
        "trained: the only parameters that require a gradient. B starts as zeros, A with random numbers. "
        "The weight and bias of `linear` are frozen and keep their numbers; you may freeze the very module that "
        "was handed in. x gets its whole gradient. `.merged()` returns a plain `nn.Linear` that gives the same "
        "outputs, with a bias where `linear` has one, and changes nothing. A rank below 1 raises `ValueError`."
    ),
    hints=(
        "Two narrow layers beside a frozen one: in features → rank → out features, without biases. What is added to "
        "what?",
        "`requires_grad_(False)` on `linear` freezes both its tensors. A and B have to be `nn.Parameter`s (or the "
        "weights of `nn.Linear`s), or no optimizer will find them.",
        "In `merged`, x Aᵀ Bᵀ is x (B A)ᵀ: B A has the shape of `linear.weight`. Make a new `nn.Linear` and "
        "copy the sum into it, with the same factor as in `forward`.",
    ),
)

ACCUMULATE_GRADIENTS = Exercise(
    id="accumulate_gradients",
    lesson="04_does_it_fit",
    level="practice",
    minutes=20,
    points=10,
    source=None,
    statement=(
        "Write `accumulate_gradients(module, microbatches, loss_fn)`. `microbatches` is a list of pairs `(x, y)`, at "
        "least one, whose sizes `len(x)` may differ, none of them 0. `loss_fn(module(x), y)` is the mean loss over one "
        "pair. Afterwards each trained parameter's `.grad` is the gradient of the mean loss over all samples of all "
        "pairs; what it held before does not count. Return that mean loss, one number. Call `module` once and run one "
        "backward for each pair, and hold what backward needs of one pair at a time only: when `module` is called, "
        "nothing that an earlier pair's backward needed is held any more. The parameters keep their numbers: no "
        "optimizer is called."
    ),
    hints=(
        "Each backward adds to `.grad`. So the loop is short; what each loss has to be multiplied by is the question.",
        "Two pairs, 3 samples and 1. The mean over all four is 3/4 of the first mean plus 1/4 of the second.",
        "Empty the gradients before the loop. Count all samples first, then for each pair: loss times its share, "
        "backward at once. For the sum of losses keep numbers: `loss.item()`.",
    ),
)

QUANTIZE_INT8 = Exercise(
    id="quantize_int8",
    lesson="04_does_it_fit",
    level="challenge",
    minutes=15,
    points=8,
    source=None,
    statement=(
        "Write `quantize_int8(weight)`. `weight` is float32 (rows, columns). It returns a pair: int8 numbers of the "
        "same shape, and one float32 scale a row, of shape (rows,). A row's scale is its largest absolute value "
        "divided by 127, and its int8 numbers are the row divided by the scale, rounded to the nearest whole number "
        "(halves either way): so all lie from −127 to 127. A row of zeros gives zeros, with any scale above 0."
    ),
    hints=(
        "Take one row, say 0.5, −2, 1. Which number should become −127? What does the scale have to be?",
        "`weight.abs().amax(dim=1)` has one number a row. To divide each row by its own, the scale needs a second "
        "dimension.",
        "Divide, round, then change the dtype: `.to(torch.int8)` alone cuts off the fraction. A row of zeros would "
        "divide 0 by 0: give it a scale of 1 before that.",
    ),
)

DEQUANTIZE_INT8 = Exercise(
    id="dequantize_int8",
    lesson="04_does_it_fit",
    level="challenge",
    minutes=5,
    points=4,
    source=None,
    statement=(
        "Write `dequantize_int8(numbers, scale)`, the way back: `numbers` is int8 (rows, columns), `scale` float32 "
        "(rows,). It returns float32 (rows, columns): each row times its own scale."
    ),
    hints=(
        "Each row has one scale. Along which dimension do the scales have to lie?",
        "(rows, columns) · (rows,) lines the scales up with the columns, and for a square nobody complains.",
        "`scale[:, None]` has shape (rows, 1).",
    ),
)

RECOMPUTE_FORWARD = Exercise(
    id="recompute_forward",
    lesson="04_does_it_fit",
    level="challenge",
    minutes=45,
    points=15,
    source=None,
    statement=(
        "Write `recompute_forward(function, *inputs)`: what `function(*inputs)` returns, a float32 tensor, without "
        "holding what its backward needs. `inputs` are tensors; at least one requires a gradient, others may not "
        "(int64 tokens). `function` may use parameters of modules, and dropout. Forward calls `function` once; when it "
        "is done, nothing that was computed inside is held any more except the output. Backward (the caller's "
        "`.backward()`) calls `function` once more and gives inputs and parameters the gradients they would get from "
        "`function(*inputs)`. Dropout has the same masks then as in forward, and random numbers drawn after backward "
        "are those that would come without recomputation. The inputs stay untouched. Ranks compute on CPUs here: "
        "torch's default generator is the only source of random numbers. `torch.utils.checkpoint` is what you write "
        "here: the grader refuses it."
    ),
    hints=(
        "A `torch.autograd.Function` with `forward(ctx, function, *inputs)`: inside it, autograd records nothing. Keep "
        "the inputs with `ctx.save_for_backward` and the function on `ctx`. What has to be kept besides?",
        "In backward: detach the inputs, so that this graph ends at them, ask again for gradients where they were "
        "asked for, and call the function under `torch.enable_grad()`. Then run backward through it, starting with the "
        "gradient that came in.",
        "`torch.autograd.backward(output, gradient)` reaches parameters as well, `torch.autograd.grad(output, inputs)` "
        "only the inputs. Backward returns one gradient for each argument of forward: None for the function, and None "
        "where an input has none.",
        "`torch.get_rng_state()` before the first call. In backward: keep the state of now, set the old one, call, "
        "set the kept one again.",
    ),
)

EXERCISES = (
    TRAINING_BYTES,
    COUNT_PARAMETERS,
    ACTIVATION_BYTES,
    LORA_LINEAR,
    ACCUMULATE_GRADIENTS,
    QUANTIZE_INT8,
    DEQUANTIZE_INT8,
    RECOMPUTE_FORWARD,
)
