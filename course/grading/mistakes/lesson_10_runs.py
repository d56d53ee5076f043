"""Mistakes of lesson 10 about whole runs: when to save, what it costs, which layout."""

from course.grading.mistakes.mistake import Mistake

# --- when to save -----------------------------------------------------------------------------------------------------

INTERVAL_ONE_GPU = Mistake(
    "the failures of one GPU",
    "One GPU's mean time between failures is what is given.",
    "The run stops when any of them fails. How long does that take with a thousand GPUs?",
)
INTERVAL_TIMES_GPUS = Mistake(
    "more GPUs fail less often",
    "The number of GPUs is in it.",
    "Each of them can stop the run. Is the time between two failures longer with more of them, or shorter?",
)
INTERVAL_NO_TWO = Mistake(
    "a factor of 2 inside the root",
    "The two losses are there, and the root of their product.",
    "A failure comes on average in the middle between two checkpoints, so it costs half an interval. Put your k and "
    "its neighbours into the sum of both losses.",
)
INTERVAL_NO_ROOT = Mistake(
    "the root is missing",
    "All numbers are in it.",
    "One loss falls with k, the other rises. Where their sum is smallest, k times k is known, not k.",
)
INTERVAL_IN_SECONDS = Mistake(
    "seconds or minutes, not steps",
    "Young's formula gives a time.",
    "How many steps does the run do in that time?",
)
INTERVAL_STEP_IN_ROOT = Mistake(
    "`step_seconds` in the wrong place",
    "It turns seconds into steps.",
    "The root gives seconds. Seconds over seconds a step are steps.",
)
INTERVAL_GPUS_OUTSIDE = Mistake(
    "the GPUs stand outside the root",
    "With more of them the interval is shorter.",
    "Divide the time between failures by their number first, then put it into the formula. A hundred times as many "
    "GPUs make the interval ten times shorter.",
)
INTERVAL_MTBF = Mistake(
    "saves as often as it fails",
    "One checkpoint for each failure.",
    "Each failure then costs half of that time. What does a checkpoint cost, next to it? Look at the sum of both "
    "losses.",
)
INTERVAL_DALY = Mistake(
    "another estimate of what is lost",
    "Daly's formula (2006) has more terms, and counts the saving itself as time that can be lost.",
    "The statement names the two losses to add. Which k makes that sum smallest?",
)
INTERVAL_ROUNDED = Mistake(
    "the wrong neighbour",
    "The best interval is hardly ever a whole number of steps, and yours is next to it.",
    "Rounding does not know what is lost. Compare the loss of both neighbours.",
)
INTERVAL_NOT_WHOLE = Mistake(
    "a fraction of a step",
    "It is where the sum is smallest.",
    "A checkpoint is saved after a whole step. Which of the two neighbours loses less?",
)
INTERVAL_ZERO = Mistake(
    "no step between two checkpoints",
    "The best interval is shorter than a step.",
    "Saving after every step is as often as can be.",
)

# --- what it costs ----------------------------------------------------------------------------------------------------

COST_SWAPPED = Mistake(
    "the pair is swapped",
    "Both numbers are right.",
    "Hours first, then money.",
)
COST_GPU_HOURS = Mistake(
    "GPU-hours, not hours",
    "GPU-hours are what is paid.",
    "The GPUs work at the same time. How long does it take by the clock?",
)
COST_GPUS_TWICE = Mistake(
    "the work of all GPUs done by one",
    "The peak and the utilisation are there.",
    "`peak_flops` is that of one GPU. How much do all of them do in a second?",
)
COST_ONE_GPU = Mistake(
    "one GPU is paid",
    "Hours times the price of an hour.",
    "The price is for one GPU. How many are there?",
)
COST_SECONDS = Mistake(
    "seconds or minutes, not hours",
    "FLOPs over FLOP per second are seconds.",
    "The price is for an hour, and so is the first number of the pair.",
)
COST_DAYS = Mistake(
    "days, not hours",
    "Runs take days.",
    "The statement asks for hours.",
)
COST_LOST_TIME_FREE = Mistake(
    "lost time costs nothing",
    "The hours are right, and only useful ones are paid.",
    "Somebody pays for the GPUs while they restart, too.",
)
COST_GOODPUT_IGNORED = Mistake(
    "no time is lost",
    "It is what the run takes while it works.",
    "It works in a share `goodput` of the time. How long does it take with the rest?",
)
COST_GOODPUT_UPSIDE_DOWN = Mistake(
    "lost time makes the run shorter",
    "`goodput` is in it.",
    "Half of the time lost: does the run take half as long, or twice?",
)
COST_GOODPUT_ADDED = Mistake(
    "the lost share is added",
    "A tenth is lost, so the run takes a tenth longer; or both losses are taken off together.",
    "At a goodput of one half the run takes twice as long, not one and a half times. Of which time is it a share?",
)
COST_MFU_IGNORED = Mistake(
    "all GPUs at their peak",
    "The peak is what a GPU can do.",
    "No run gets there. Which share of it does this one reach?",
)
COST_MFU_UPSIDE_DOWN = Mistake(
    "a worse utilisation makes the run shorter",
    "`mfu` is in it.",
    "Half the FLOP per second: does the run take half as long, or twice?",
)
COST_FLOPS_AGAIN = Mistake(
    "forward and backward are counted again",
    "Training takes three times the forward pass, or 6 FLOPs a parameter.",
    "`flops_per_token` has both in it: they are the model's FLOPs of training on one token.",
)
COST_SPARES_FREE = Mistake(
    "who stands by is not paid",
    "They compute nothing.",
    "They are kept, so that nobody else has them. Who pays for that?",
)
COST_SPARES_WORK = Mistake(
    "who stands by also works",
    "They are GPUs like the others.",
    "The run was started on `gpus` of them. What do the others do until one of these fails?",
)

# --- which layout -----------------------------------------------------------------------------------------------------

LAYOUT_MEMORY_IGNORED = Mistake(
    "a layout that does not fit",
    "It is the fastest of all.",
    "It runs out of memory in the first step. Where does `nbytes` come in?",
)
LAYOUT_NOT_DIVIDED = Mistake(
    "something does not divide",
    "It uses all GPUs, and it fits.",
    "dp has to divide `batch`, tp `heads` and pp `layers`. Which of the three do you check, and which number with "
    "which?",
)
LAYOUT_BY_BOUND = Mistake(
    "the least bound, not the least seconds",
    "The bound is cheap, and it comes close.",
    "It leaves out messages, and these are what tells layouts apart. How can it still save you some calls of "
    "`seconds`?",
)
LAYOUT_STOPS_EARLY = Mistake(
    "stops as soon as a layout is slower than the one before",
    "The layouts are sorted, so it seems that they can only get worse.",
    "They are sorted by what a step takes at least, not by what it takes. When can you be sure of all that follow?",
)
LAYOUT_LEAST_MEMORY = Mistake(
    "the layout with the most room left",
    "It fits for certain.",
    "Memory is a limit. Of all that keep to it, the fastest is asked for.",
)
LAYOUT_SLOWEST = Mistake(
    "the slowest layout",
    "All that fit are compared.",
    "Is it `max` or `min` that is asked for?",
)
LAYOUT_POWERS_OF_TWO = Mistake(
    "only powers of two are tried",
    "Most clusters and models are made of them.",
    "96 GPUs can also be split by 3. Try every number that divides.",
)
LAYOUT_STOPS_AT_EIGHT = Mistake(
    "sizes above 8 are not tried",
    "A node often has eight GPUs.",
    "Nodes are not in the statement: what a large tp costs is in `seconds`. Try every number that divides.",
)
LAYOUT_NO_ONES = Mistake(
    "axes of size 1 are not tried",
    "The three are there to be used.",
    "Not to split along an axis is a layout too, and often the best.",
)
LAYOUT_FULL_NOT_TAKEN = Mistake(
    "a GPU filled to the last byte does not count",
    "Something should stay free.",
    "The statement says at most `memory`: equal fits.",
)
LAYOUT_FIRST_THAT_FITS = Mistake(
    "a rule in place of the times",
    "As little splitting as fits, or as much: rules of thumb say so.",
    "Two clusters with other links want other layouts. Which arguments does your answer depend on?",
)
LAYOUT_OTHER_ORDER = Mistake(
    "the right sizes in another order",
    "All three numbers are right.",
    "Return (dp, tp, pp), in this order, and hand them to the three functions so.",
)
LAYOUT_FEWER_GPUS = Mistake(
    "some GPUs are left over",
    "It divides and fits.",
    "dp · tp · pp has to be `gpus`. Two of the three give the third.",
)
LAYOUT_ASKED_UNFIT = Mistake(
    "asks for the time of what cannot run",
    "It is not chosen in the end.",
    "`nbytes` and a remainder are cheap. Ask them first.",
)
LAYOUT_ASKED_TWICE = Mistake(
    "asks for the same time twice",
    "It is the same number each time.",
    "Keep it, in a variable or a dict. A `key` function is asked again wherever the result is compared once more.",
)
LAYOUT_ASKED_ALL = Mistake(
    "asks for every time",
    "Only so one can be sure to have the best.",
    "Once you have some time, what does a `bound` above it tell? And in which order does one meet the best early?",
)
LAYOUT_ASKED_OUT_OF_ORDER = Mistake(
    "some times need not have been asked",
    "Those with a bound above the best so far are passed over.",
    "The best so far may be a bad one. In which order do you go through the layouts, so that the first to be passed "
    "over is the end?",
)
