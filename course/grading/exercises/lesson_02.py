"""Exercises of lesson 02: two stages, and what more workers can gain."""

from course.grading.exercises.exercise import Exercise

TWO_STAGE_LOOP = Exercise(
    id="two_stage_loop",
    lesson="02_tasks_and_amdahl",
    level="practice",
    minutes=40,
    points=13,
    source=None,
    statement=(
        "Write `two_stage_loop(produce, consume, frames, depth=2)`. `produce(k)` makes frame k, for k = 0 to frames−1; "
        "`consume(frame)` works on one. Return the list of consume's results, in the order of the frames. Use threads, "
        "so that both work at the same time; each is called for one frame at a time, in order. `produce` runs ahead "
        "until `depth` finished frames wait, not counting the one that `consume` works on; one more may be finished or "
        "in the making. A frame may be any object, `None` too. If one of the two raises, no more frames are begun and "
        "the first error raised comes out of the loop, unchanged. Whether it returns or raises, no thread of the loop "
        "is left. `frames` below 0 or `depth` below 1 raises `ValueError`."
    ),
    hints=(
        "`queue.Queue(depth)` between two threads: `put` waits while it is full, `get` while it is empty. One stage "
        "can stay in the thread that called you. First write it for functions that never raise.",
        "Nobody has to say that it was the last frame: both sides can count to `frames`. To say that something went "
        "wrong, put an object of your own into the queue and compare with `is`: then no frame can be mistaken for it.",
        "Where `consume` raises, `produce`'s thread may be waiting in `put` for ever. Set a flag that it looks at "
        "before each frame, then empty the queue so that it wakes up, then `join` it. That is what `finally` is for.",
    ),
)

AMDAHL_SPEEDUP = Exercise(
    id="amdahl_speedup",
    lesson="02_tasks_and_amdahl",
    level="practice",
    minutes=5,
    points=6,
    source="course.spec.speedup.amdahl_speedup",
    statement=(
        "Write `amdahl_speedup(*, serial, workers)`. One worker does a piece of work; `serial`, from 0 to 1, is the "
        "share of its time in which other workers could not help. All the rest can be cut into as many equal parts as "
        "there are `workers`. Return how many times as fast that many workers do the same work, by Amdahl's law "
        "(1967). A share outside 0 to 1 or fewer workers than one raise `ValueError`."
    ),
    hints=(
        "Let one worker take 1 second. How much of it is left as it is, and how much gets shorter?",
        "Add the two: that is the time with `workers`. A speed-up is the old time over the new one.",
        "Put in what you know: one worker gains nothing, serial 1 gains nothing, serial 0 gains all.",
    ),
)

GUSTAFSON_SPEEDUP = Exercise(
    id="gustafson_speedup",
    lesson="02_tasks_and_amdahl",
    level="practice",
    minutes=5,
    points=6,
    source="course.spec.speedup.gustafson_speedup",
    statement=(
        "Write `gustafson_speedup(*, serial, workers)`. That many `workers` have done a piece of work together. "
        "`serial`, from 0 to 1, is the share of the time *of this parallel run* in which one worked and the others "
        "could not help; in the rest all of them worked. Return how many times as long one worker alone would have "
        "taken for the same, by Gustafson's law (1988). A share outside 0 to 1 or fewer workers than one raise "
        "`ValueError`."
    ),
    hints=(
        "Let the parallel run take 1 second. What does one worker, alone, need for the serial part of it?",
        "The rest was done by all at once. How long does one worker need for what `workers` did in that time?",
        "Add the two. With 10 workers and serial 0.1 it is a little above 9.",
    ),
)

SERIAL_FRACTION = Exercise(
    id="serial_fraction",
    lesson="02_tasks_and_amdahl",
    level="practice",
    minutes=20,
    points=8,
    source="course.spec.speedup.serial_fraction",
    statement=(
        "Write `serial_fraction(workers, seconds)`. Two lists of the same length: the same work, done by `workers[i]` "
        "workers, took `seconds[i]`. Find a and b for which seconds = a + b/n fits best, n being the number of "
        "workers: the sum of the squared errors, in seconds, is the smallest. Return the serial share of one worker's "
        "time, a/(a + b), held within 0 and 1. Numbers come in any order, may repeat, and 1 need not be among them. "
        "Raise `ValueError` for lists of different lengths, fewer than two different numbers of workers, a number of "
        "workers below 1, and a time that is not above 0."
    ),
    hints=(
        "a is the time that stays however many workers there are, b the time that they share. Draw seconds over 1/n: "
        "what do the points lie on?",
        "A straight line in x = 1/n, with a where x is 0 and slope b. `numpy.polyfit(x, y, 1)` gives the slope first; "
        "by hand it is the mean of products over the mean of squares, both around the means.",
        "With one worker the line says a + b. Check the lists before the fit, and hold the share with `min` and `max` "
        "after it.",
    ),
)

PARALLEL_EFFICIENCY = Exercise(
    id="parallel_efficiency",
    lesson="02_tasks_and_amdahl",
    level="practice",
    minutes=5,
    points=5,
    source="course.spec.speedup.parallel_efficiency",
    statement=(
        "Write `parallel_efficiency(seconds_1, seconds_n, n)`. The same work took `seconds_1` on one worker and "
        "`seconds_n` on n. Return the share of the n workers that was put to use: 1 where they took one n-th of the "
        "time, 0.5 where half as many would have done with perfect sharing. It may come out above 1; it is returned as "
        "it is. A time that is not above 0 or n below 1 raises `ValueError`."
    ),
    hints=(
        "How many times as fast are n workers? How many times as fast would they be at best?",
        "The first over the second. Try 12 s on one worker and 4 s on four: they do the work of three.",
        "seconds_n seconds of n workers were paid for. How many of these seconds did one worker need?",
    ),
)

EXERCISES = (TWO_STAGE_LOOP, AMDAHL_SPEEDUP, GUSTAFSON_SPEEDUP, SERIAL_FRACTION, PARALLEL_EFFICIENCY)
