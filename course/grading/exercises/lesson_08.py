"""Exercises of lesson 08: tensor parallel."""

from course.grading.exercises.exercise import Exercise

_WHOLE = (
    "Every rank makes it from the same {what}, which stays untouched, and keeps only its own part, as parameters "
    "with the values they have there: rank r owns chunk r of the {cut}, one piece. "
)

PARALLEL_MLP = Exercise(
    id="ParallelMLP",
    lesson="08_tensor_parallel",
    level="core",
    minutes=45,
    points=10,
    source=None,
    statement=(
        "Write the class `ParallelMLP(mlp)`, a `torch.nn.Module`. `mlp` has two linear layers with biases, `up` and "
        "`down`, and computes `down(gelu(up(x)))` with `torch.nn.functional.gelu`. "
        + _WHOLE.format(what="`mlp`", cut="hidden channels")
        + "The bias of `down` may be on all ranks or on one. Called with x of shape (batch, time, channels), the same "
        "on all ranks, it returns what `mlp(x)` would, on every rank. Backward starts on every rank with the same "
        "gradient and gives each the whole gradient of x, and each weight it keeps the gradient it would have in one "
        "process. One all-reduce of x's size travels forward and one backward. Where the ranks do not divide the "
        "hidden channels, making it raises `ValueError`."
    ),
    hints=(
        "Cut `up` so that each rank gets whole hidden channels: whole sums, to which GELU can be applied at once. "
        "Which part of `down` does a rank with those channels need?",
        "torch keeps a weight as (out, in): take rows of `up.weight` with their part of `up.bias`, and columns of "
        "`down.weight`. Each rank then has one share of a sum. `down.bias` belongs into that sum once.",
        "Two `torch.autograd.Function`s carry it: at the entrance, forward gives x as it is and backward sums the "
        "gradient over ranks; at the exit, forward sums and backward gives the gradient as it is. Sum copies: "
        "`all_reduce` works in place and returns None.",
    ),
)

COPY_TO_RANKS = Exercise(
    id="copy_to_ranks",
    lesson="08_tensor_parallel",
    level="practice",
    minutes=15,
    points=7,
    source=None,
    statement=(
        "Write `copy_to_ranks(x)`, the entrance of a split layer. x is the same on all ranks. Forward gives x as it "
        "is, and nothing is sent. Each rank then uses it in a part of the layer of its own, so that gradients come "
        "back that differ: backward gives every rank the sum of them over the ranks, and one all-reduce of x's size "
        "travels. The gradient that comes in stays untouched, since others may use it too."
    ),
    hints=(
        "Forward does nothing, backward communicates: autograd has to be told. `torch.autograd.Function` lets you "
        "write both.",
        "Two static methods: `forward(ctx, x)` and `backward(ctx, grad)`; call it as `YourFunction.apply(x)`.",
        "`dist.all_reduce` works in place and returns None. In `backward`, sum into a copy of `grad`, and return that.",
    ),
)

REDUCE_FROM_RANKS = Exercise(
    id="reduce_from_ranks",
    lesson="08_tensor_parallel",
    level="practice",
    minutes=10,
    points=7,
    source=None,
    statement=(
        "Write `reduce_from_ranks(x)`, the exit of a split layer. Each rank brings an x of its own, a share of a sum. "
        "Forward gives every rank the sum over the ranks, and one all-reduce of x's size travels; x stays untouched. "
        "From there on all ranks do the same, so the same gradient comes back to each: backward gives it as it is, "
        "and nothing is sent."
    ),
    hints=(
        "The mirror image of `copy_to_ranks`: what that one does forward, this one does backward.",
        "How does the loss change when one element of this rank's x grows a little? The sum grows as much, whatever "
        "the other ranks brought.",
        "In `forward`, sum into a copy of x and return the copy. `backward` returns its argument.",
    ),
)

COLUMN_PARALLEL_LINEAR = Exercise(
    id="ColumnParallelLinear",
    lesson="08_tensor_parallel",
    level="practice",
    minutes=20,
    points=10,
    source=None,
    statement=(
        "Write the class `ColumnParallelLinear(linear)`, a `torch.nn.Module` (`linear` with or without bias). "
        + _WHOLE.format(what="`linear`", cut="out features")
        + "Full in, local out: called with an x that is the same on all ranks, it returns this rank's part of "
        "`linear(x)`. Backward starts on each rank with the gradient of that part. It gives every rank the whole "
        "gradient of x, and each weight it keeps the gradient it would have in one process. Nothing is sent forward; "
        "one all-reduce of x's size travels backward. Where the ranks do not divide the out features, making it "
        "raises `ValueError`."
    ),
    hints=(
        "An out feature needs all of x, one row of the weight and one number of the bias. Nothing of another rank.",
        "`linear.weight` is (out, in). Cut it with its bias along dim 0, copy this rank's piece, and wrap it in "
        "`nn.Parameter`, so that an optimizer finds it.",
        "All ranks have used x, each for its own features: the gradient of x is a sum over ranks. `copy_to_ranks` "
        "is for that.",
    ),
)

ROW_PARALLEL_LINEAR = Exercise(
    id="RowParallelLinear",
    lesson="08_tensor_parallel",
    level="practice",
    minutes=20,
    points=10,
    source=None,
    statement=(
        "Write the class `RowParallelLinear(linear)`, a `torch.nn.Module` (`linear` with or without bias). "
        + _WHOLE.format(what="`linear`", cut="in features")
        + "The bias may be on all ranks or on one. Local in, full out: called with this rank's part of x, cut along "
        "its last dim, it returns `linear(x)` of the whole x on every rank. Backward starts on every rank with the "
        "same gradient and gives each its part of the gradient of x, and each weight it keeps the gradient it would "
        "have in one process. One all-reduce of the output's size travels forward, nothing backward. Where the ranks "
        "do not divide the in features, making it raises `ValueError`."
    ),
    hints=(
        "A dot product over all in features is a sum of dot products over parts of them. Each rank has one.",
        "`linear.weight` is (out, in): cut it along dim 1, copy this rank's piece, and wrap it in `nn.Parameter`. "
        "The input comes cut already.",
        "`reduce_from_ranks` adds the shares up. The bias is no share: add it once, after the sum, or on one rank.",
    ),
)

PARALLEL_ATTENTION = Exercise(
    id="ParallelAttention",
    lesson="08_tensor_parallel",
    level="practice",
    minutes=45,
    points=12,
    source=None,
    statement=(
        "Write the class `ParallelAttention(attention)`, a `torch.nn.Module`. `attention` is causal self-attention "
        "with two linear layers with biases, `qkv` and `out`, and the number `heads`: `qkv(x)` holds along its last "
        "dim all queries, then all keys, then all values, in each the heads one after another; scores are divided by "
        "the root of a head's width; `out` takes the heads side by side. There is no dropout. "
        + _WHOLE.format(what="`attention`", cut="heads")
        + "The bias of `out` may be on all ranks or on one. Called with x (batch, time, channels), the same on all "
        "ranks, it returns what `attention(x)` would, on every rank. Backward starts on every rank with the same "
        "gradient and gives each the whole gradient of x, and each weight it keeps the gradient it would have in one "
        "process. One all-reduce of x's size travels "
        "forward and one backward. Where the ranks do not divide the heads, making it raises `ValueError`."
    ),
    hints=(
        "Heads need nothing of each other until `out` mixes them. So a rank can compute its own heads from end to end. "
        "Which rows of `qkv.weight` are those?",
        "`qkv.weight.view(3, heads, width, channels)` shows them: this rank's heads of each of the three. "
        "A piece of each, never one piece of the whole. The bias is cut the same way.",
        "`F.scaled_dot_product_attention(q, k, v, is_causal=True)` on (batch, heads/n, time, width), heads side by "
        "side again, then a row split of `out`, with `copy_to_ranks` in front and `reduce_from_ranks` behind.",
    ),
)

KV_CACHE_BYTES = Exercise(
    id="kv_cache_bytes",
    lesson="08_tensor_parallel",
    level="practice",
    minutes=10,
    points=5,
    source="course.spec.inference.kv_cache_bytes",
    statement=(
        "Write `kv_cache_bytes(*, layers, kv_heads, head_width, tokens, batch=1, dtype_bytes=2, tp=1)`. While text "
        "is generated, each layer keeps one key and one value of `head_width` numbers for each of its `kv_heads` "
        "heads, each token so far and each sequence of the batch. Numbers take `dtype_bytes` bytes. Return the bytes "
        "that one of `tp` ranks keeps, when the heads are shared evenly among them. Counts below 1, tokens below 0, "
        "and heads that `tp` does not divide are impossible. Plain arithmetic; nothing is sent."
    ),
    hints=(
        "Start with one token, one layer and one head. What is kept, and how many bytes is that?",
        "Everything else multiplies it: heads, layers, tokens, sequences. Only one thing divides.",
        "Check first whether the arguments are possible, then return one product of seven numbers, with a 2 for key "
        "and value.",
    ),
)

VOCAB_PARALLEL_EMBEDDING = Exercise(
    id="VocabParallelEmbedding",
    lesson="08_tensor_parallel",
    level="challenge",
    minutes=25,
    points=8,
    source=None,
    statement=(
        "Write the class `VocabParallelEmbedding(embedding)`, a `torch.nn.Module`. "
        + _WHOLE.format(what="`nn.Embedding`", cut="rows, which the ranks need not divide")
        + "Called with tokens, int64 of any shape, the same on all ranks, it returns `embedding(tokens)` on every "
        "rank. Backward starts on every rank with the same gradient and gives each weight the gradient it would have "
        "in one process. One all-reduce of the output's size travels forward, nothing backward."
    ),
    hints=(
        "Each token's row is on exactly one rank. What can the others bring to a sum, so that the row comes out?",
        "Tokens are numbers in the whole vocabulary: take this rank's first one off before you look them up. "
        "Those that fall outside have to be moved into range for the lookup, and their rows set to zero after it.",
        "`masked_fill` does both: on the places before `F.embedding`, on its result after. Then "
        "`reduce_from_ranks`. `torch.tensor_split(weight, n)` cuts, and the sizes of the parts tell where each begins.",
    ),
)

VOCAB_PARALLEL_CROSS_ENTROPY = Exercise(
    id="vocab_parallel_cross_entropy",
    lesson="08_tensor_parallel",
    level="challenge",
    minutes=45,
    points=10,
    source=None,
    statement=(
        "Write `vocab_parallel_cross_entropy(logits, targets, start)`. Each rank has the logits, float32 "
        "(batch, time, own tokens), of its part of the vocabulary, which begins with token `start`; parts differ in "
        "size. `targets` is int64 (batch, time), tokens of the whole vocabulary, the same on all ranks. It returns "
        "the mean cross-entropy over all tokens, a tensor without dimensions, the same on every rank, for large "
        "logits too. Backward starts on every rank with the same gradient and gives each its part of the gradient of "
        "the logits. The inputs stay untouched. The logits themselves are too many to send: all-reduces of at most "
        "four float32 a token travel, forward and backward together."
    ),
    hints=(
        "The loss of one token is the logarithm of a sum of exponentials, minus the target's logit. What of it is a "
        "sum over ranks, and what does one rank alone know?",
        "Three numbers a token: the largest logit (an all-reduce with `dist.ReduceOp.MAX`), the sum of exponentials "
        "of what is left when it is subtracted, and the target's logit, zero on ranks that do not have it.",
        "Keep autograd out of the largest logit: take it from `logits.detach()`. The two sums can go through "
        "`reduce_from_ranks`, stacked, and autograd finds the rest. For `gather`, move foreign targets into range "
        "and zero what they give.",
    ),
)

SEQUENCE_PARALLEL_NORM = Exercise(
    id="SequenceParallelNorm",
    lesson="08_tensor_parallel",
    level="challenge",
    minutes=20,
    points=7,
    source=None,
    statement=(
        "Write the class `SequenceParallelNorm(norm)`, a `torch.nn.Module`. `norm` is an `nn.LayerNorm` over the last "
        "dim, with weight and bias. Every rank makes it from the same `norm`, which stays untouched, and holds both "
        "as parameters of its own. The sequence is cut over the ranks: called with this rank's part of x, (batch, "
        "time/n, channels), it returns this rank's part of `norm(x)`. Backward starts on each rank with the gradient "
        "of that part and gives it its part of the gradient of x. The parameters get, in backward and on every rank, "
        "the gradient of all tokens. That is all that travels: one all-reduce of the parameters' size, backward."
    ),
    hints=(
        "A norm looks at one token at a time. Which rank needs anything of another, forward?",
        "The weights are the same everywhere and are used on each rank for other tokens. Which of the functions of "
        "this lesson is for something that all ranks hold, and use each in its own way?",
        "`copy_to_ranks` on the weight and on the bias, in `forward`, each time; then `F.layer_norm` with the norm's "
        "own `normalized_shape` and `eps`.",
    ),
)

RING_ATTENTION = Exercise(
    id="ring_attention",
    lesson="08_tensor_parallel",
    level="challenge",
    minutes=75,
    points=12,
    source=None,
    statement=(
        "Write `ring_attention(q, k, v)`, causal attention over a sequence that is cut over the ranks. Each is "
        "float32 (batch, heads, time/n, width), all parts are equally long, and rank r has part r. Scores are divided "
        "by the root of `width`. It returns this rank's part of the output, and backward gives each rank its part of "
        "the gradients of q, k and v. The inputs stay untouched. Keys and values go round the ring: only sends to and "
        "receives from neighbours, in no message more than k and v of one rank, and in backward their gradients as "
        "well. All ranks together send at most n·(3n−2) times the bytes of one rank's k and v."
    ),
    hints=(
        "n steps: compute with the keys that are here, then pass them on. In step s rank r has the keys of rank "
        "(r − s) mod n. Parts before its own it sees whole, its own through the triangle, later ones not at all.",
        "The parts share one softmax. Keep, for each query, the largest score so far, the sum of exponentials under "
        "it, and the weighted sum of values. When a larger score turns up, multiply both sums by "
        "exp(old largest − new largest). Begin with the own part, where each query sees something.",
        "A shift as a `torch.autograd.Function`, whose backward shifts the other way, and autograd does the rest. "
        "Every rank has to use what each shift brings, if only under a mask of −inf: else its backward never runs, "
        "and the neighbour waits for ever. Use `isend`, so that not all ranks wait in `send`.",
    ),
)

EXERCISES = (
    PARALLEL_MLP,
    COPY_TO_RANKS,
    REDUCE_FROM_RANKS,
    COLUMN_PARALLEL_LINEAR,
    ROW_PARALLEL_LINEAR,
    PARALLEL_ATTENTION,
    KV_CACHE_BYTES,
    VOCAB_PARALLEL_EMBEDDING,
    VOCAB_PARALLEL_CROSS_ENTROPY,
    SEQUENCE_PARALLEL_NORM,
    RING_ATTENTION,
)
