"""Mistakes of lesson 07: cuts, schedules, the bubble, what is held, and a step on real ranks."""

from course.grading.mistakes.mistake import Mistake

# --- cuts -------------------------------------------------------------------------------------------------------------

EQUAL_LAYERS = Mistake(
    "as many layers for every stage",
    "Layers look alike, and a model of 30 over 3 devices is 10 + 10 + 10.",
    "Costs differ: a head may cost as much as four layers. Where does your function use `costs`?",
)
GREEDY_AVERAGE = Mistake(
    "each cut for itself, by the average",
    "If every stage had the average, all would be equal.",
    "Layers cannot be halved, and what one stage takes too much nobody gives back. "
    "What is the cost of the slowest stage that you get, and is there a split with less?",
)
LAST_TAKES_REST = Mistake(
    "the last stage takes what is left over",
    "Every other stage stays within the average.",
    "What they leave adds up on the last one. By how much may a stage go beyond the average, "
    "so that none has to go further?",
)
EMPTY_STAGE = Mistake(
    "an empty stage",
    "The slowest stage is as fast as can be, and the work is done with fewer stages.",
    "No stage may be empty. Which stages have a layer to give away, at no loss?",
)
EVEN_COSTS = Mistake(
    "the costs as even as can be",
    "Small differences between all stages look like balance.",
    "Only the slowest stage sets the pace. Here the others may differ as they like, if that makes it faster.",
)
SIZES_NOT_CUTS = Mistake(
    "sizes instead of cuts",
    "Sizes say where to cut, too, and the split is a good one.",
    "Asked for is the number of layers *before* each cut. How do you get from sizes to those?",
)
CUTS_WITH_ENDS = Mistake(
    "the ends of the model counted as cuts",
    "With 0 and the number of layers in the list, slicing is easy.",
    "Three stages are made by two cuts.",
)
LAST_LAYERS = Mistake(
    "the last layer of each stage instead of the layers before the cut",
    "Layer 9 is the last of the first ten.",
    "Count the layers before the cut: how many are there when the last is number 9, counted from 0?",
)
MEMORY_IGNORED = Mistake(
    "`memory` is not looked at",
    "The fastest split has been found.",
    "It does not fit. Which of the splits that fit is the fastest?",
)

# --- schedules --------------------------------------------------------------------------------------------------------

ONE_LIST = Mistake(
    "one list instead of one for each stage",
    "Each rank runs one list.",
    "Here the lists of all stages are asked for at once. What is the outer list over?",
)
MICROBATCHES_FROM_ONE = Mistake(
    "microbatches counted from one",
    "The first microbatch is number one in everyday speech.",
    "As indices of a list they are 0 to m−1.",
)
MISSING_BACKWARD = Mistake(
    "a backward is missing",
    "All forwards are there, and most backwards.",
    "The gradient of that microbatch is lost, and nothing says so. How many times does each part of your list go "
    "backward, and is the sum m?",
)
NO_COOL_DOWN = Mistake(
    "no cool-down",
    "When all forwards are done, every turn has been taken.",
    "The warm-up went forward without going backward. Which microbatches have not been backward at the end?",
)
BACKWARD_FIRST = Mistake(
    "backward before forward",
    "A turn has a backward and a forward.",
    "There is nothing to go backward through yet. Which of the two comes first in a turn?",
)
NEWEST_BACKWARD = Mistake(
    "backward of the newest",
    "The last stage goes backward through what it has just been forward through.",
    "The stage behind goes through the oldest first, and its messages come in that order. "
    "Which microbatch's gradient arrives here first?",
)
UNCLAMPED = Mistake(
    "a warm-up longer than there are microbatches",
    "p−1−s forwards fill the pipeline, with many microbatches.",
    "With few of them there is nothing left to go forward with. What is the most that the warm-up can be?",
)
SAME_WARM_UP = Mistake(
    "the same warm-up on all stages",
    "The pipeline has to be filled, and that takes p−1 steps.",
    "The last stage can go backward right after its first forward. How far ahead must the stage before it be?",
)
WARM_UP_GROWS = Mistake(
    "the warm-up grows with the stage",
    "Later stages wait longer for their first microbatch.",
    "The *first* stage waits longest for its first gradient. Who can go backward first?",
)
WARM_UP_TOO_LONG = Mistake(
    "the warm-up is too long",
    "One more microbatch in flight does no harm to the result.",
    "It is held in memory all the time, and nothing gets faster. Does your first turn begin with a forward as well?",
)
WARM_UP_TOO_SHORT = Mistake(
    "the warm-up is too short",
    "A short warm-up holds less.",
    "The stages behind run dry. How many microbatches must be on their way before the first gradient can be back?",
)
ONE_BY_ONE = Mistake(
    "one microbatch at a time",
    "Each microbatch goes forward and backward, and the result is right.",
    "While one stage works all others wait: it is no pipeline. What could stage 0 do while microbatch 0 is on its way?",
)
GPIPE_INSTEAD = Mistake(
    "GPipe instead of 1F1B",
    "It takes exactly as long.",
    "It holds all microbatches at once. When can the last stage go backward for the first time?",
)
ONE_F_INSTEAD = Mistake(
    "1F1B instead of GPipe",
    "It takes exactly as long, and holds less.",
    "Here the simpler schedule is asked for: when does GPipe go backward for the first time?",
)
ORDERS_DIFFER = Mistake(
    "stages go backward in different orders",
    "Each stage does all its backwards.",
    "A gradient that comes first is needed last, and without tags it is taken for another microbatch's. "
    "Let all stages agree.",
)

# --- interleaved ------------------------------------------------------------------------------------------------------

ONE_CHUNK_ONLY = Mistake(
    "only chunk 0 is there",
    "Without a third number an action is one of chunk 0.",
    "Each rank holds `chunks` pieces, and each microbatch has to pass all of them. Where does the chunk come in?",
)
PIECE_NOT_CHUNK = Mistake(
    "the piece of the model instead of the rank's chunk",
    "c·p + r says which piece it is.",
    "An action names the chunk as its rank counts it, from 0 to v−1. The rank is known from the list.",
)
CHUNKS_UPWARD = Mistake(
    "backward goes through the chunks from the first to the last",
    "Forward does.",
    "The loss is behind the last chunk. Which one does its gradient reach first?",
)
CHUNK_BY_CHUNK = Mistake(
    "all microbatches pass one chunk before the next begins",
    "It keeps every rank busy for long.",
    "The first gradient comes only when nearly everything has been forward. How many microbatches does a round have?",
)
THROUGH_ALL_CHUNKS = Mistake(
    "each microbatch passes all chunks before the next begins",
    "That is the way a microbatch goes.",
    "Between chunk 0 and chunk 1 it has to visit all other ranks. What can this rank do meanwhile?",
)
PLAIN_WARM_UP = Mistake(
    "the warm-up of plain 1F1B",
    "It is the same schedule, with more pieces.",
    "Before the first backward a microbatch has to pass all chunks: (v−1)·p forwards come on top, and the way of a "
    "gradient back through a rank's neighbours counts twice. Put the statement's formula in.",
)

# --- bubble -----------------------------------------------------------------------------------------------------------

OF_IDEAL_TIME = Mistake(
    "a share of the ideal time",
    "Papers often give the bubble that way.",
    "The whole step is the ideal time and the idle time together. What stands below the line?",
)
ONE_STEP_LONGER = Mistake(
    "the step one slot too long",
    "m microbatches and p stages make m + p.",
    "The last stage gets its first microbatch after p−1 slots. When is it done with the m-th?",
)
STAGES_NOT_STEPS = Mistake(
    "p idle slots instead of p−1",
    "There are p stages to fill.",
    "The first stage starts at once. How many slots does the last one wait? And a single one?",
)
BUSY_SHARE = Mistake(
    "the busy share",
    "It is what the device is paid for.",
    "Asked for is the share in which it is idle. With one stage, what should come out?",
)
IN_PERCENT = Mistake(
    "in percent",
    "Bubbles are quoted in percent.",
    "A share is between 0 and 1.",
)
CHUNKS_IGNORED = Mistake(
    "`chunks` is not used",
    "It has a default.",
    "With v chunks a slot of filling and draining is only a v-th as long. Which part of the formula changes?",
)
CHUNKS_LENGTHEN = Mistake(
    "chunks make the bubble longer",
    "More pieces make a longer pipeline.",
    "Each rank waits for p−1 pieces as before, but a piece is smaller. Measure everything in pieces.",
)

# --- what is held -----------------------------------------------------------------------------------------------------

NEVER_FREED = Mistake(
    "nothing is ever freed",
    "Every forward stores its activations.",
    "Its backward frees them. What does a B do to your count?",
)
BACKWARDS_COUNTED = Mistake(
    "actions counted",
    "Every action touches activations.",
    "A forward adds to what is held, a backward takes from it.",
)
LEFT_AT_END = Mistake(
    "what is left at the end",
    "Forwards are added, backwards taken away.",
    "At the end everything has been freed. When is the most held?",
)
LONGEST_RUN = Mistake(
    "the longest row of forwards",
    "Forwards in a row pile up.",
    "What was held before that row still is. Carry the count on.",
)
WARM_UP_ONLY = Mistake(
    "only the forwards at the start count",
    "In 1F1B the most is held after the warm-up.",
    "Not every list is one of 1F1B. Look at the whole of it.",
)
COUNTED_TOO_LATE = Mistake(
    "looked at in the wrong moment",
    "A count goes up and down, and one is never far off.",
    "During the last forward of a row its activations are there already, and those that the next backward will free "
    "still are. After which action do you compare?",
)

# --- the step ---------------------------------------------------------------------------------------------------------

SEND_HOLDS_UP = Mistake(
    "a send that waits for its receiver",
    "`dist.send` does what its name says, and with all forwards first it even runs.",
    "The neighbour may be busy, or be sending to you at this very moment. Start the send, keep the handle, go on: "
    "when is the last moment to wait for it?",
)
NO_INPUT_GRADIENT = Mistake(
    "no gradient for what has arrived",
    "The stage's own parameters get their gradients.",
    "A tensor that came by message is plain data. Autograd computes its gradient only if it was asked to, before the "
    "forward.",
)
DETACHED_KEPT = Mistake(
    "kept without its history",
    "What is sent should be detached.",
    "What is kept for backward is another thing: it needs the graph that leads back to x.",
)
LOSS_NOT_DIVIDED = Mistake(
    "the loss is not divided by the number of microbatches",
    "Each microbatch's loss is a mean, and `.grad` adds up by itself.",
    "A sum of m means is m times too large. Where is the one place to divide?",
)
DIVIDED_BY_RANKS = Mistake(
    "divided by the number of ranks",
    "In data parallel that is what makes a mean.",
    "Ranks here hold different layers, not different samples. Over what is the mean taken?",
)
BUFFER_REUSED = Mistake(
    "one buffer for all microbatches",
    "Only one message arrives at a time, and `shape` is always the same.",
    "Backward still needs what came in, and a message under way still reads what goes out. How long must each "
    "tensor stay as it is?",
)
BACKWARD_FORGOTTEN = Mistake(
    "a backward was not run",
    "Most microbatches went through both ways.",
    "Count the backwards of that rank. Which of its actions does your loop pass over?",
)
WRONG_GRADIENT_SENT = Mistake(
    "not the gradient of what was received",
    "Some gradient of the right shape goes back.",
    "The rank before called `y`, its output, what you call x. Whose gradient does it need, and of which microbatch?",
)
GRADIENT_NOT_USED = Mistake(
    "backward without the gradient that came",
    "`y.sum().backward()` runs, and gives every parameter a gradient.",
    "How the loss depends on y is known to the next rank only, and it has sent that. What does `backward` take?",
)
SAME_INPUT = Mistake(
    "every microbatch has the same input",
    "The shapes are right, and the loss falls.",
    "Look at the number in the action: which of `inputs` belongs to it?",
)
OWN_ORDER = Mistake(
    "in an order of its own",
    "The gradients are right in any order.",
    "The order decides who waits and how much is held: that is all a schedule says. Do what `actions` says.",
)
COLLECTIVES_CALLED = Mistake(
    "a collective besides the messages",
    "A barrier keeps the ranks in step.",
    "In a pipeline they are to be out of step: each works on another microbatch. A message is all that has to be "
    "waited for.",
)
LOSS_EVERYWHERE = Mistake(
    "a loss on every rank",
    "A number from each rank does no harm.",
    "Only the last rank knows the loss. What do the others return?",
)
LOSS_OF_ONE = Mistake(
    "the loss of one microbatch",
    "It is a loss, and of the right size.",
    "Asked for is the mean over all of them. Where are they added up?",
)
LOSS_SUMMED = Mistake(
    "losses added, not averaged",
    "All of them are in it.",
    "What turns a sum of m losses into a mean?",
)
GRADIENT_OVERWRITTEN = Mistake(
    "what was in `.grad` is gone",
    "A step usually begins with empty gradients.",
    "The caller may have reasons to add up several steps. Backward adds by itself: which line empties?",
)
