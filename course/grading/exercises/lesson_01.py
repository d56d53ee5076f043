"""Exercises of lesson 01: SIMD brightening."""

from course.grading.exercises.exercise import Exercise

BRIGHTEN = Exercise(
    id="brighten",
    lesson="01_simd_brightening",
    level="core",
    minutes=15,
    points=8,
    source=None,
    statement=(
        "Write `brighten(image, amount)`. `image` is a NumPy array of uint8: grey, of shape `(H, W)`, or RGB, of shape "
        "`(H, W, 3)`. `amount` is an int from −255 to 255. Return a new uint8 array of the same shape in which every "
        "value is the old one plus `amount`, held at 255 where it would go above and at 0 where it would go below. "
        "The result shares no memory with the image, for amount 0 neither, and the image stays as it was. "
        "Any such array may come: of odd size, empty, read-only, or a view that skips, turns or reverses rows and "
        "columns of another array. It is called some hundred times on small images; speed does not count otherwise."
    ),
    hints=(
        "A uint8 holds 0 to 255. Before you write anything, try `np.uint8(200) + np.uint8(100)`, and take 20 from an "
        "array that holds 10. What would each have to be?",
        "Once the sum has been made in uint8, it is too late to look at it. Between −255 and 510 lies everything that "
        "can come out: which NumPy type has room for that, and for little more?",
        "Three steps: to a wider type, add and hold the result within 0 and 255, back to uint8. `astype` makes a new "
        "array of any layout; `np.clip` holds.",
    ),
)

SPLIT_ROWS = Exercise(
    id="split_rows",
    lesson="01_simd_brightening",
    level="core",
    minutes=15,
    points=7,
    source="course.pixels.rows.split_rows",
    statement=(
        "Write `split_rows(rows, parts)`. It cuts the rows 0 to rows−1 of an image into parts for as many threads, and "
        "returns a list of `parts` pairs of ints `(start, stop)`: part k holds the rows `start` to `stop`−1, as in "
        "`image[start:stop]`. The parts follow one another from row 0 to the last row, so that each row is in exactly "
        "one. Sizes go as with `torch.tensor_split`: they differ by at most one, and the first parts are the bigger "
        "ones. With more parts than rows the last parts are empty: `start` equals `stop`. Negative `rows`, or fewer "
        "parts than one, raise `ValueError`."
    ),
    hints=(
        "Cut 11 rows into 4 parts by hand and write down the pairs. Which parts are bigger, and how many of them?",
        "`divmod(rows, parts)` gives the size of a small part, and how many parts get one row more.",
        "Each part starts where the one before stops. Before part k lie k small parts, and one row more for each "
        "bigger part among them. How many of the first k parts are bigger?",
    ),
)

BRIGHTEN_KERNEL = Exercise(
    id="brighten_kernel",
    lesson="01_simd_brightening",
    level="practice",
    minutes=20,
    points=8,
    source=None,
    statement=(
        "Write `brighten_kernel(out, image, amount)`, the body of a CUDA kernel, without decorator: the grader hands "
        "it to `cuda.jit` and launches it. `out` and `image` are flat uint8 arrays of n pixels, `amount` is an int "
        "from −255 to 255. The grid is one-dimensional and has at least n threads, often more. Each thread works on "
        "at most one pixel, and each pixel belongs to exactly one thread, which sets it in `out` to its value in "
        "`image` plus `amount`, held within 0 and 255. Threads without a pixel read and write nothing. `image` stays "
        "as it was; nothing is returned. `cuda` is imported above. The kernel runs in numba's simulator, also where "
        "there is a GPU. There a pixel is a NumPy uint8 and wraps around, so widen it first: `int(image[i])`."
    ),
    hints=(
        "The same body runs once in each thread. What tells a thread which pixel is its own? In lesson 01 it was one "
        "line.",
        "The thread's place in the whole grid counts the threads of all blocks before its own: `cuda.grid(1)`, or "
        "`cuda.blockIdx.x`, `cuda.blockDim.x` and `cuda.threadIdx.x` put together.",
        "Blocks all have the same size, so the last one may reach beyond the image: ask `image.size` before anything "
        "is read. Then widen, add, `min`, `max`, write.",
    ),
)

ATTAINABLE = Exercise(
    id="attainable",
    lesson="01_simd_brightening",
    level="practice",
    minutes=10,
    points=6,
    source="course.pixels.roofline.attainable",
    statement=(
        "Write `attainable(intensity, peak_flops, bandwidth)`, the roofline of Williams, Waterman and Patterson "
        "(2009). A program does `intensity` FLOP for each byte that it moves to or from memory. The machine does at "
        "most `peak_flops` FLOP per second, and its memory moves at most `bandwidth` bytes per second, both at the "
        "same time. Return the most FLOP per second that the program can reach, as a number. It is 0 for intensity 0. "
        "A negative argument raises `ValueError`."
    ),
    hints=(
        "There are two limits. What is each of them, in FLOP per second, if the other were not there?",
        "Look at the units: FLOP per byte, bytes per second. How do the two make FLOP per second?",
        "Both limits hold at once, and memory and arithmetic work side by side. Which of the two stops the program?",
    ),
)

BRIGHTEN_SWAR = Exercise(
    id="brighten_swar",
    lesson="01_simd_brightening",
    level="challenge",
    minutes=60,
    points=12,
    source=None,
    statement=(
        "Write `brighten_swar(word, amount)`. `word` is an int from 0 to 2⁶⁴−1 that holds eight pixels, one in each "
        "byte. `amount` is an int from −255 to 255. Return an int in the same range whose bytes are the pixels plus "
        "`amount`, each held within 0 and 255. To whatever comes from `word` apply only `+`, `-`, `*`, `&`, `|`, `^`, "
        "`~`, `<<` and `>>`, and at most 20 of them in one call, each counted every time it runs. What is made of "
        "`amount` and constants alone is free, whatever it is, and so is a branch on `amount`. These are Python ints: "
        "they do not stop at 64 bits, and `~word` is negative, so mask what could outgrow the word."
    ),
    hints=(
        "`amount * 0x0101010101010101` puts the amount into each byte. Add it to a word of which one byte overflows, "
        "print both with `hex`, and see where the carry goes. Where could it go without doing harm?",
        "Two ways. Take every second byte out, so that each has 8 free bits above it, and treat the two halves alike. "
        "Or add the low 7 bits of each byte, which cannot overflow it, and put the highest bits right with `^`.",
        "Then one bit a byte says that it has overflowed. Moved to the bottom of its byte, times 255, it is eight ones "
        "there: what does `|` with it do?",
        "Darkening: 255 − x brightens when x darkens, and 255 − x in all bytes at once is one `^`.",
    ),
)

EXERCISES = (BRIGHTEN, SPLIT_ROWS, BRIGHTEN_KERNEL, ATTAINABLE, BRIGHTEN_SWAR)
