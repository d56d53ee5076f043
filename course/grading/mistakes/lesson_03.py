"""Mistakes of lesson 03: ranks and collectives."""

from course.grading.mistakes.mistake import Mistake

# --- messages ---------------------------------------------------------------------------------------------------------

ALL_SEND_FIRST = Mistake(
    "all send first",
    "On paper every rank sends, then receives, and where messages are buffered it even runs.",
    "`dist.send` comes back when its message is being received, and nobody has come that far. "
    "Who could receive first, or which call sends without waiting?",
)
ALL_RECEIVE_FIRST = Mistake(
    "all receive first",
    "Every message has its receiver waiting for it.",
    "`dist.recv` waits for a message, and every sender is waiting too. Which call receives without waiting, "
    "or who could send first?",
)
UNWAITED = Mistake(
    "a handle without its wait",
    "The message is often through in time, so the numbers are often right.",
    "`isend` and `irecv` come back before anything has travelled. Keep what they return. "
    "At what moment must the message be through?",
)
CHANGED_UNDER_WAY = Mistake(
    "a tensor changed while it is being sent",
    "`isend` has been called, so the message seems to be gone.",
    "It is read from your tensor when the receiver is there, any time before the handle's `wait()`. "
    "Where does your code write into it too early? A buffer of its own for what arrives is safe.",
)
NO_MESSAGE = Mistake(
    "no message was sent",
    "It runs without an error on every rank.",
    "No rank can know the numbers of another unless they are sent. Who sends what to whom?",
)
SENDS_TO_ITSELF = Mistake(
    "a lone rank sends to itself",
    "`(rank + 1) % n` is right for every number of ranks, and with one rank it is the rank itself.",
    "With one rank nothing has to be sent. What is the result then?",
)
BUFFER_SIZE = Mistake(
    "a buffer of another size than the message",
    "With lengths that divide, all chunks have one size, and any of them serves as a buffer.",
    "What arrives is the *sender's* chunk of this step. Which one is it, and how long is it?",
)
BUFFER_DTYPE = Mistake(
    "a buffer of another dtype than the message",
    "`torch.empty(k)` is float32, as most tensors are.",
    "Both ends of a message need one dtype. `torch.empty_like` and `t.new_empty` take it over from a tensor.",
)
IN_FLOAT32 = Mistake(
    "whole numbers or doubles pass through float32",
    "float32 holds small whole numbers exactly.",
    "Above 2^24, about 16 million, it skips some, and of a double it keeps half the digits. "
    "Where does your code leave the dtype of its input?",
)
INPUT_CHANGED = Mistake(
    "the input was changed",
    "The result is right, and adding in place saves a copy.",
    "The caller still needs the input. `reshape`, `flatten` and `tensor_split` give views: which line writes into one?",
)
FOR_TWO_RANKS = Mistake(
    "right for two ranks only",
    "With two ranks the neighbour is everybody else.",
    "Take three ranks: what has to come from the rank that is no neighbour, and by which way?",
)

# --- chunks -----------------------------------------------------------------------------------------------------------

CUT_AS_CHUNK = Mistake(
    "cut as `chunk` cuts",
    "`torch.chunk` cuts a tensor in n parts, as its name says.",
    "It rounds the size up, so the last chunk is small and some may be missing. "
    "Compare it with `torch.tensor_split` for 10 elements in 4.",
)
EQUAL_CHUNKS = Mistake(
    "chunks of one size only",
    "With lengths that divide, all chunks are equal.",
    "10 elements on 4 ranks are cut 3, 3, 2, 2. Which line of yours takes all chunks to be of one size?",
)
PADDING_LEFT = Mistake(
    "the padding is still there",
    "Padding makes all chunks equal, and zeros change no sum.",
    "The caller gets more elements than the statement says. What has to be cut off at the end, and on which ranks?",
)
NO_EMPTY_CHUNK = Mistake(
    "empty chunks are not expected",
    "Tensors usually have more elements than there are ranks.",
    "2 elements on 4 ranks are cut 1, 1, 0, 0. An empty tensor may be sent like any other, or not at all, "
    "as long as both ends agree.",
)
NEIGHBOURS_CHUNK = Mistake(
    "a finished chunk on the wrong rank",
    "All chunks of the sum are there, one a rank.",
    "Rank r owns chunk r. Follow one chunk around the ring: on which rank does its way end? "
    "Let it start one rank earlier or later.",
)

# --- sums around the ring ---------------------------------------------------------------------------------------------

ADDS_THE_SENT = Mistake(
    "adds what it sent",
    "There is a buffer that goes out and one that comes in, and their names are alike.",
    "Each rank then counts its own part again and loses another's. Which of the two buffers is new to this rank?",
)
RUNNING_SUM = Mistake(
    "forwards the running sum",
    "With two ranks it is right: there is only one step.",
    "From the second step on, what goes out holds parts that the receiver has already counted. "
    "What has it not seen yet?",
)
STEP_SHORT = Mistake(
    "one step short",
    "n ranks, and the first step needs no message.",
    "A part has to pass n−1 links to have been everywhere. How many times does your loop run?",
)
OVERWRITES = Mistake(
    "what arrives replaces the chunk",
    "The right chunks travel to the right ranks.",
    "In this half of the way, chunks are added up. What should happen to the number that is already there?",
)
KEEPS_OWN = Mistake(
    "what arrives is not used",
    "All messages are sent and received.",
    "The result holds this rank's own numbers alone. What becomes of the received buffer, and had it arrived "
    "when you read it?",
)
WHOLE_SUM = Mistake(
    "the whole sum instead of one chunk",
    "The sum is right, and the chunk is in it.",
    "Rank r returns chunk r of it alone. And was it necessary to bring all chunks here?",
)
AVERAGED_SUM = Mistake(
    "an average where a sum was asked",
    "Gradients are averaged.",
    "Nothing here says average. Where do you divide?",
)
COPY_SUMMED = Mistake(
    "the sum is in a copy",
    "The sum is right, in a tensor that the caller never sees.",
    "*In place* means that the caller's `t` holds the sum. `flatten`, `clone` and `torch.cat` may give other memory: "
    "what is written back?",
)
ONE_RANK_HAS_IT = Mistake(
    "only one rank has the sum",
    "The sum is right, on that rank.",
    "Every rank needs it. How does it come back to the others?",
)
NO_GATHER = Mistake(
    "the second half is missing",
    "Each rank has one chunk of the sum, and it is right.",
    "Now the finished chunks have to travel once around, without being added. How many steps is that?",
)
GATHER_START = Mistake(
    "the gather starts at the wrong chunk",
    "Its steps look like those of the half that adds, so it starts at the same chunk.",
    "In its first step a rank can only send a chunk that it already has, finished and whole. Which one is that?",
)

# --- the gather -------------------------------------------------------------------------------------------------------

ORDER_OF_ARRIVAL = Mistake(
    "chunks in the order of arrival",
    "Every chunk is there, one after the other.",
    "Each rank's list begins with its own chunk. Where does the chunk that arrives in step s belong?",
)
MISPLACED = Mistake(
    "chunks in each other's places",
    "Every chunk is there, once.",
    "Print, on one rank and for each step, whose chunk arrives and where it is put.",
)
OWN_CHUNKS_ONLY = Mistake(
    "only some chunks have arrived",
    "Some places of the result are right on every rank.",
    "In the first step a neighbour's chunk comes. What must a rank send in the second step, so that the next one "
    "gets something new?",
)

# --- what travels -----------------------------------------------------------------------------------------------------

WHOLE_TENSORS = Mistake(
    "whole tensors go around",
    "The sum is right, and the code is shorter.",
    "Each rank sends n−1 times the whole tensor. Of each message the receiver needs one chunk only: which one?",
)
ONE_MASTER = Mistake(
    "one rank does the sending for all",
    "The bytes of the whole group are no more than those of a ring.",
    "All others wait for that rank's link, and the more ranks, the longer. How can every rank send an equal part?",
)
GROWING_MESSAGES = Mistake(
    "messages grow from step to step",
    "Everything gathered so far goes on to the neighbour, who then surely has it.",
    "The neighbour has most of it already. Which one chunk is new to it?",
)
BUILT_IN = Mistake(
    "torch's own does the work",
    "The result is right, and this is what one calls in practice.",
    "Here it is the very thing to be built. Which smaller steps does it consist of?",
)
BY_OTHER_WAYS = Mistake(
    "too little was sent",
    "Every rank has the result.",
    "Fewer bytes went through `torch.distributed` than are needed, so some came by another way: a file, the store. "
    "That does not work between machines.",
)

# --- shift ------------------------------------------------------------------------------------------------------------

WRONG_WAY = Mistake(
    "around the ring the other way",
    "It is a ring, and everything moves by one.",
    "Rank 1 has to return what rank 0 sent. To which rank do you send, and from which do you receive?",
)
NO_WRAP = Mistake(
    "a line, not a ring",
    "Each rank sends to the next one, and the last has no next.",
    "Rank 0 gets something too: what the last rank sent. `%` closes the ring.",
)
GATHERED_ALL = Mistake(
    "everybody gets everything",
    "The neighbour's tensor is among those that arrive.",
    "One message a rank is enough, since only one is used. Which two calls carry one message?",
)

# --- tree -------------------------------------------------------------------------------------------------------------

TREE_FROM_ZERO = Mistake(
    "the tree is drawn for rank 0",
    "With `src=0` everything arrives.",
    "Number the ranks as `src` sees them: it is 0 in its own count. How do you get from such a number back to a rank?",
)
POWERS_OF_TWO = Mistake(
    "for powers of two only",
    "With 2 and 4 ranks every round finds its partners.",
    "With 3 or 5 ranks the last round is not full: some partners do not exist. Who sends, and who does not?",
)
FORWARDS_EARLY = Mistake(
    "sent on before it has arrived",
    "Every rank sends to the right ranks.",
    "Some send what they had before. What has to come first on a rank that is not `src`?",
)
STAR = Mistake(
    "the root sends to everybody",
    "n−1 messages, and nobody gets anything twice.",
    "They leave one after the other, so that is n−1 rounds. Who else has the numbers after the first round "
    "and could help?",
)
CHAIN = Mistake(
    "a chain from rank to rank",
    "n−1 messages, and each rank sends only one.",
    "The last rank waits for n−1 rounds. After the first round two ranks have the numbers: "
    "what could both do in the second?",
)
LATE_BRANCH = Mistake(
    "the longest branch starts last",
    "It is a tree, and every rank gets one message.",
    "A branch with many ranks still needs many rounds. Which child should a rank send to first?",
)
MESSAGES_TWICE = Mistake(
    "some ranks get it more than once",
    "Afterwards all ranks hold the right numbers.",
    "n−1 ranks lack the tensor, so n−1 messages are enough. Who sends to somebody who has it?",
)

# --- cost -------------------------------------------------------------------------------------------------------------

ALPHA_ONCE = Mistake(
    "alpha once for all messages",
    "Alpha is a constant, added in front.",
    "Each message pays it. How many messages follow one after the other?",
)
ONE_HALF_ONLY = Mistake(
    "half of the ring",
    "n−1 steps add up everything.",
    "After those each rank has one chunk. What do the other n−1 steps do?",
)
WHOLE_MESSAGES = Mistake(
    "whole tensors in every step",
    "nbytes is what is to be reduced.",
    "In each step of the ring a rank sends one chunk. How large is that?",
)
TREE_COST = Mistake(
    "the cost of a tree",
    "A logarithm is what parallel algorithms usually cost.",
    "A ring has a step for each rank it passes. How many, and how large is the message in each?",
)
SENT_AT_ONCE = Mistake(
    "n steps instead of n−1",
    "There are n chunks and n ranks.",
    "A chunk starts on one rank and has to pass all others. How many links are that? And with one rank?",
)
BITS = Mistake(
    "bits instead of bytes",
    "Links are sold in bits per second.",
    "Here the bandwidth is in bytes per second, and nbytes is in bytes. What is the factor 8 for?",
)
TIMES_BANDWIDTH = Mistake(
    "multiplied by the bandwidth",
    "It is a product of what is sent and how fast.",
    "Check the units: bytes, and bytes per second. Which combination gives seconds?",
)

# --- fit --------------------------------------------------------------------------------------------------------------

ABSOLUTE_SQUARES = Mistake(
    "absolute instead of relative squares",
    "It is least squares, and `polyfit` does it in one line.",
    "The largest message decides everything, and alpha is lost in its noise. Divide each error by what was measured: "
    "what does that make of the two columns?",
)
OTHER_WEIGHTS = Mistake(
    "weighted, but not relative",
    "Small messages count for more than without weights.",
    "An error of one percent has to weigh the same at every size. By what is each *error* divided, before it is "
    "squared?",
)
BETA_RETURNED = Mistake(
    "seconds per byte instead of bytes per second",
    "It is the slope of the line.",
    "A bandwidth is in bytes per second. What is the slope in?",
)
SWAPPED = Mistake(
    "the pair is swapped",
    "Both numbers are right.",
    "alpha comes first, then the bandwidth. In which order does your fit return its coefficients?",
)
LOG_FIT = Mistake(
    "a straight line through logarithms",
    "In a log-log plot both ends look straight, and relative errors become absolute ones.",
    "alpha + nbytes/bandwidth is no power of nbytes: its logarithm is bent. Fit the line itself, and weigh its errors.",
)
TWO_POINTS = Mistake(
    "a line through two points",
    "Two points fix a line.",
    "The noise of those two goes into the result, and the others say nothing. Which line is nearest to all of them?",
)
SMALLEST_IS_ALPHA = Mistake(
    "alpha is the time of the smallest message",
    "A small message costs hardly more than alpha.",
    "Its bytes take time too, and it is one noisy measurement. Let the fit find both numbers.",
)
