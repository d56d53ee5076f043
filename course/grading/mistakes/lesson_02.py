"""Mistakes of lesson 02: two stages, Amdahl, Gustafson, the fitted share, efficiency."""

from course.grading.mistakes.mistake import Mistake

# --- two stages -------------------------------------------------------------------------------------------------------

IN_TURN = Mistake(
    "one stage at a time",
    "All results are there, in order.",
    "While a frame is consumed, nobody makes the next one, so a frame takes as long as both stages together. What "
    "could the other thread do meanwhile?",
)
ALL_MADE_FIRST = Mistake(
    "all frames are made before the first is consumed",
    "There are two stages, and a queue between them.",
    "The second stage may start as soon as frame 0 is there. Which line waits for the last one?",
)
QUEUE_UNBOUNDED = Mistake(
    "nothing stops the faster stage",
    "Both stages work at the same time, and `produce` never has to wait.",
    "Frames that nobody has looked at pile up in memory, and what is shown is old. How does a queue know its `depth`?",
)
DEPTH_IGNORED = Mistake(
    "`depth` makes no difference",
    "The stages overlap, and not without bounds.",
    "However deep a queue was asked for, as many frames were begun. Where does `depth` come in?",
)
DEPTH_OFF = Mistake(
    "one frame too few or too many waits",
    "It grows with `depth`, so the queue has bounds.",
    "Count, while frame 0 is being consumed: `depth` frames wait, and one more may be in the producer's hands. Does "
    "the frame in work hold a place of those that wait?",
)
SEVERAL_AT_ONCE = Mistake(
    "two frames in one stage at the same time",
    "More threads, more done at once.",
    "Physics needs the state of the frame before, and a screen shows one frame after the other. One thread for each "
    "stage is enough.",
)
OUT_OF_ORDER = Mistake(
    "frames come out of order",
    "Every frame is consumed once.",
    "The first frame made is the first to be shown. Which end of the queue does each side use, and in which order are "
    "the results put together?",
)
FRAMES_RETURNED = Mistake(
    "the frames came back, not the results",
    "Every frame is there, in order, and was consumed.",
    "Who keeps what `consume` returns?",
)
FRAME_TAKEN_FOR_THE_END = Mistake(
    "a frame was taken for a signal",
    "`None`, −1 or an exception is hardly ever a frame.",
    "A frame may be any object. Which object can nobody but you have? Or could both sides count?",
)
NEVER_COMES_BACK = Mistake(
    "it never comes back",
    "All frames are made and consumed.",
    "One thread waits for something that no other will bring. Who tells it that there is no more?",
)
HANGS_ON_ERROR = Mistake(
    "an error leaves the other stage waiting for ever",
    "As long as nobody raises, all is well.",
    "With one stage gone, `get` waits for a frame that nobody makes, or `put` for a place that nobody frees. What "
    "wakes the other one up, and tells it why?",
)
ERROR_LOST = Mistake(
    "the error is lost",
    "The traceback appears on the screen, or the loop just ends early.",
    "An exception ends the thread it is raised in, and no other. Catch it there, keep it, and raise it where the "
    "caller waits.",
)
ERROR_CHANGED = Mistake(
    "another error came out",
    "The caller does learn that something went wrong.",
    "Who handles errors looks for the type that was raised. Keep the exception itself, and `raise` that.",
)
LATER_ERROR_WINS = Mistake(
    "a later error hides the first",
    "An error comes out of the loop.",
    "The second stage failed later, and often only because of the first. Where the first error is kept, nothing may "
    "write over it.",
)
GOES_ON_AFTER_ERROR = Mistake(
    "frames are begun after the error",
    "The error does come out in the end.",
    "A level of many frames is computed for nothing before the player learns that it crashed. What could each side "
    "look at before it begins a frame?",
)
THREAD_LEFT = Mistake(
    "a thread is left",
    "The results are right, and a daemon thread dies with the program.",
    "A notebook's process lives for hours, and each call leaves another one. Wake the thread up and `join` it before "
    "you return or raise.",
)

# --- Amdahl -----------------------------------------------------------------------------------------------------------

AMDAHL_SWAPPED = Mistake(
    "serial and parallel share are swapped",
    "At one half both ways give the same, and so they do for one worker.",
    "More workers must not shorten the serial part. Which of your two terms is divided?",
)
AMDAHL_SERIAL_IGNORED = Mistake(
    "the serial part costs nothing",
    "With little serial work and few workers it is nearly right.",
    "Give it a billion workers: how long does the serial part still take?",
)
AMDAHL_IS_GUSTAFSON = Mistake(
    "this is Gustafson's law",
    "It has the same two shares and the same number of workers.",
    "There the work grows with the workers. Here it stays the same: what gets shorter?",
)
AMDAHL_LIMIT = Mistake(
    "the limit, not the speed-up",
    "With very many workers it comes to the same.",
    "Ten workers do not get there. How long do they take for the part that can be shared?",
)
AMDAHL_EFFICIENCY = Mistake(
    "the efficiency came back",
    "The speed-up is in it.",
    "It was divided by the number of workers once more.",
)
AMDAHL_TIME = Mistake(
    "the time came back, not the speed-up",
    "The time with all workers is the hard part.",
    "A speed-up is the old time over the new one, and grows with the workers.",
)
AMDAHL_SUBTRACTS = Mistake(
    "subtracts the parallel part",
    "What is parallel does seem to go away.",
    "It does not go away, it is shared. What is left of it for each worker, and is that added or taken off?",
)
PERCENT = Mistake(
    "percent in place of a share",
    "A share is often said in percent.",
    "Half is 0.5 here, where it comes in and where it goes out.",
)

# --- Gustafson --------------------------------------------------------------------------------------------------------

GUSTAFSON_SWAPPED = Mistake(
    "serial and parallel share are swapped",
    "At one half both ways give the same, and so they do for one worker.",
    "In which part of the run were all workers busy? That is the part that one worker needs so much longer for.",
)
GUSTAFSON_IS_AMDAHL = Mistake(
    "this is Amdahl's law",
    "It has the same two shares and the same number of workers.",
    "Amdahl's share is measured on one worker, for work that stays the same. Here the share is one of the parallel "
    "run: start from that run, and ask what one worker would need.",
)
GUSTAFSON_SERIAL_IGNORED = Mistake(
    "one worker is spared the serial part",
    "For many workers the serial part hardly counts.",
    "One worker alone would have to do the serial part too. How long does it take for that?",
)
GUSTAFSON_ALL_BUSY = Mistake(
    "all workers are counted as busy all the time",
    "The work grows with the workers.",
    "In the serial part one of them worked. What did the others do?",
)
GUSTAFSON_MORE_THAN_ALL = Mistake(
    "more than the workers can give",
    "It grows with the workers, by a straight line.",
    "n workers never do more than n times the work of one. Look at a sign.",
)
GUSTAFSON_EFFICIENCY = Mistake(
    "the efficiency came back",
    "The scaled speed-up is in it.",
    "It was divided by the number of workers once more.",
)

# --- the fitted share -------------------------------------------------------------------------------------------------

FRACTION_IN_SECONDS = Mistake(
    "seconds, not a share",
    "That is the serial time.",
    "A share has no unit. Of which time is it a part?",
)
FRACTION_PARALLEL = Mistake(
    "the share that can be shared",
    "Both shares come from the same line, and a slope often comes first.",
    "Which of the two numbers belongs to 1/n, and so gets smaller with more workers?",
)
FRACTION_RATIO = Mistake(
    "serial over parallel, not over all",
    "For a small share it is nearly the same.",
    "A share is a part of the whole. What does one worker take in all?",
)
FRACTION_LINE_IN_N = Mistake(
    "a line over n, not over 1/n",
    "Least squares draws a line through anything.",
    "Twice the workers halve the shared time. Over which axis is that a straight line?",
)
FRACTION_RELATIVE = Mistake(
    "relative errors",
    "In lesson 03's fit each point counts alike.",
    "This statement asks for the squared errors in seconds. What are your points weighed with?",
)
FRACTION_TWO_POINTS = Mistake(
    "two points instead of all",
    "Through two points there is exactly one line.",
    "The noise of those two is the whole answer. Use all that was measured.",
)
FRACTION_THROUGH_ONE_POINT = Mistake(
    "one measurement is taken for exact",
    "Dividing by the first time turns seconds into shares at once.",
    "The time of one worker is a measurement like the others, with an error of its own. Fit both a and b.",
)
FRACTION_AVERAGED = Mistake(
    "a mean of single estimates",
    "Every point gives a serial share by itself (Karp and Flatt, 1990).",
    "Few workers tell little about it, and their noise counts as much as the rest. Fit one line to all points.",
)
FRACTION_NOT_HELD = Mistake(
    "a share outside 0 and 1",
    "It is what the line says.",
    "Measured times can fall faster than 1/n, or rise. A share below nothing or above all is none.",
)

# --- efficiency -------------------------------------------------------------------------------------------------------

EFFICIENCY_IS_SPEEDUP = Mistake(
    "the speed-up came back",
    "It says how much was gained.",
    "Two workers that are twice as fast are as good as they get, a hundred that are twice as fast are not. What is "
    "missing?",
)
EFFICIENCY_INVERTED = Mistake(
    "upside down",
    "All three numbers are in it.",
    "It should get smaller where `seconds_n` grows. Which time belongs below?",
)
EFFICIENCY_TIMES_N = Mistake(
    "multiplied by n",
    "All three numbers are in it.",
    "More workers for the same gain are worse. Where does n belong?",
)
EFFICIENCY_HELD = Mistake(
    "held at 1",
    "More than all workers cannot be put to use.",
    "It is measured: parts that fit into a cache can be more than n times as fast, and somebody should see that. The "
    "statement wants it as it is.",
)
EFFICIENCY_LOSS = Mistake(
    "the share that was lost",
    "It is one minus the right number.",
    "1 should be the best that there is.",
)
EFFICIENCY_SERIAL = Mistake(
    "the serial share came back",
    "It comes from the same three numbers (Karp and Flatt, 1990).",
    "That explains a loss by a serial part. Efficiency explains nothing: what was gained, over what could be.",
)
EFFICIENCY_OTHERS_ONLY = Mistake(
    "only the added workers count",
    "n−1 workers were added.",
    "All n were there and had to be paid. How many times as fast are they at best?",
)
