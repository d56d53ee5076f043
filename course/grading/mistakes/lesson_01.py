"""Mistakes of lesson 01: pixels, rows, kernels, the roofline, lanes."""

from course.grading.mistakes.mistake import Mistake

# --- pixels -----------------------------------------------------------------------------------------------------------

WRAPS_AROUND = Mistake(
    "it wraps around",
    "Small sums come out right, and a clip, a comparison or a cast after the sum looks like the cure.",
    "A uint8 counts modulo 256, so the sum has wrapped before anything can look at it; a cast to uint8 that meets 300 "
    "does the same. In which type is your sum made, and what is the last thing before it becomes uint8?",
)
OUT_OF_BOUNDS = Mistake(
    "an amount that uint8 cannot hold",
    "NumPy adds a Python int to a uint8 array, and with a small positive one it works.",
    "NumPy makes the amount a uint8 too, and refuses what does not fit, as every negative one. Which array has to be "
    "of a wider type before the two meet?",
)
ONE_END_ONLY = Mistake(
    "held at one end only",
    "Bright pixels stop at 255, which is where overflow is usually seen.",
    "A pixel can leave the range at its other end too. What becomes of 10 with amount −20?",
)
STOPS_AT_254 = Mistake(
    "it stops at 254",
    "254 and 255 look the same on a screen.",
    "Which is the largest number that a uint8 holds? White should stay white.",
)
NEGATIVE_AMOUNT = Mistake(
    "a negative amount does not darken",
    "Amounts from 0 to 255 are all right, and as a uint8 a negative amount looks like another one of those.",
    "−20 modulo 256 is 236, and its absolute value is 20: both brighten. Keep the sign until the sum is made.",
)
SCALED = Mistake(
    "multiplied instead of added",
    "Most pixels get brighter, and bright ones more so.",
    "Black stays black under any factor. The statement adds the same amount to every pixel.",
)
WIDE_RESULT = Mistake(
    "the wider type came back",
    "The numbers are right.",
    "An image of another type takes more memory, and the next function expects uint8. What is left to do after the "
    "numbers are within 0 and 255?",
)
SHAPE_LOST = Mistake(
    "another shape came back",
    "The numbers are right, and in the right order.",
    "What took the rows apart has to put them together again: an array keeps its shape in `image.shape`.",
)
CHANGES_IMAGE = Mistake(
    "the image itself was changed",
    "What comes back is right, and no second array is needed.",
    "The caller still needs the old image, and a read-only one cannot be written at all. Which line writes into the "
    "array that was passed in?",
)
RETURNS_IMAGE = Mistake(
    "what came back is the image's own memory",
    "With nothing to add, the image itself holds the right numbers.",
    "Whoever draws on the result would draw on the image. A new array was asked for, whatever the amount.",
)
LAYOUT_ASSUMED = Mistake(
    "the image is taken for one block of memory",
    "A fresh array is one: row after row, nothing between.",
    "A view of another array skips bytes, or runs backwards. Index it as an image, or copy it first: "
    "`np.ascontiguousarray`.",
)
TAIL_FORGOTTEN = Mistake(
    "the last pixels are left out",
    "Whole words, or whole tiles, cover nearly everything, and with a round size all of it.",
    "The size need not divide. What happens to the pixels behind the last full piece?",
)
EMPTY_REFUSED = Mistake(
    "an image without pixels is too much",
    "Nobody brightens nothing by hand.",
    "A thread can get an empty part. Its result is easy: which line needs at least one pixel, and does it have to?",
)

# --- rows -------------------------------------------------------------------------------------------------------------

ROWS_DROPPED = Mistake(
    "the rest is dropped",
    "`rows // parts` rows each is right whenever the parts divide.",
    "Nobody works on the rows that are left over. Who could take one more?",
)
ROWS_REST_ON_ONE = Mistake(
    "one part takes all that is left over",
    "Every row is in one part.",
    "The others wait for the thread with the largest part. How small can the difference be made?",
)
ROWS_ROUNDED_UP = Mistake(
    "parts rounded up",
    "Every row is in one part. `torch.chunk` cuts this way.",
    "The last part gets what is left, sometimes nothing. `torch.tensor_split` cuts another way: look it up.",
)
ROWS_BIGGER_ELSEWHERE = Mistake(
    "the bigger parts are not the first",
    "Sizes differ by at most one, which is what matters for speed.",
    "Whoever else cuts these rows must find the same bounds, so one rule is fixed: which parts does the statement "
    "make bigger?",
)
ROWS_BEYOND = Mistake(
    "a part reaches beyond the last row",
    "A slice that ends too far does no harm in Python, so it shows nowhere.",
    "A kernel or another language would read memory that is not the image's. Where must the last part stop?",
)
STOP_INCLUSIVE = Mistake(
    "`stop` is the last row of the part",
    "The last row of a part is where it ends, in everyday speech.",
    "`image[start:stop]` leaves `stop` out. Which number makes it take the part's last row too?",
)
STOP_IS_LENGTH = Mistake(
    "the length in place of `stop`",
    "Start and length describe a part just as well.",
    "For the first part both are the same. What would `image[start:stop]` hold for the second?",
)
ROWS_FROM_ONE = Mistake(
    "rows numbered from one",
    "The first row is number one in everyday speech.",
    "`image[0]` is the first row. Where does the first part start?",
)
ROWS_SHARED = Mistake(
    "a row in two parts",
    "Every row is in some part.",
    "Two threads would work on it, and with an update in place it would be brightened twice. Where does a part start, "
    "seen from the one before?",
)
EMPTY_PART_SKIPPED = Mistake(
    "empty parts are left out",
    "A part without rows has nothing to do.",
    "There are as many threads as before, and thread k looks for pair k. What pair says: no rows?",
)
ROW_NUMBERS = Mistake(
    "row numbers instead of bounds",
    "They say which part has which rows.",
    "Two numbers say the same of any part, however large. Which two?",
)

# --- the kernel -------------------------------------------------------------------------------------------------------

KERNEL_NO_GUARD = Mistake(
    "no bounds guard",
    "With as many threads as pixels nothing is wrong, and on a GPU often nothing is seen.",
    "Threads beyond the last pixel touch memory that belongs to others. What must a thread ask before it reads?",
)
KERNEL_GUARD_OFF = Mistake(
    "the guard is off by one",
    "All but one thread do the right thing.",
    "The last pixel is number n−1. What does thread n do, and what thread n−1?",
)
KERNEL_SPARE_THREADS = Mistake(
    "threads without a pixel take somebody else's",
    "No thread leaves the image, and the pixel gets the same value twice.",
    "Two threads that write one place are a race: here it ends well, with an update in place it would not. What should "
    "a thread do that has no pixel?",
)
KERNEL_THREAD_ONLY = Mistake(
    "each block starts at pixel 0 again",
    "`threadIdx.x` is the number of the thread, and with one block it is the number of the pixel.",
    "It counts inside a block. How many threads are in the blocks before this one?",
)
KERNEL_BLOCK_ONLY = Mistake(
    "all threads of a block take the same pixel",
    "`blockIdx.x` goes up from one block to the next.",
    "What tells the threads of one block apart?",
)
KERNEL_NO_BLOCK_DIM = Mistake(
    "blocks overlap",
    "Thread number plus block number gives every thread of the first block its pixel.",
    "The second block starts one pixel after the first. How many pixels has the first one already?",
)
KERNEL_EVERYTHING = Mistake(
    "a thread does the work of many",
    "The image comes out right.",
    "A loop over pixels inside the kernel makes each thread do what the whole grid is for. Which one pixel is this "
    "thread's own?",
)
KERNEL_NOTHING_WRITTEN = Mistake(
    "nothing was written into `out`",
    "The value is computed, and a function gives its value back with `return`.",
    "A kernel returns nothing: each thread leaves its value in memory. Where does the statement want it?",
)
KERNEL_WRITES_IMAGE = Mistake(
    "written into the image",
    "The right values are there, in the other array.",
    "`image` is only read. Which of the two arrays does your assignment name?",
)
KERNEL_WRAPS = Mistake(
    "the sum wraps in uint8",
    "`image[i] + amount` is a plain sum, and `min` and `max` hold it.",
    "In the simulator the pixel is a NumPy uint8: it wraps, or refuses the amount, before `min` sees it. Widen first: "
    "`int(image[i])`.",
)
KERNEL_NOT_HELD = Mistake(
    "a value that does not fit was stored",
    "The sum is right.",
    "A pixel of `out` keeps the lowest 8 bits of what is stored, so 300 becomes 44. What has to happen to the sum "
    "before it is stored?",
)

# --- the roofline -----------------------------------------------------------------------------------------------------

ROOF_LARGER = Mistake(
    "the larger of the two limits",
    "Both limits are computed, and a roof is what is on top.",
    "No program exceeds either limit. Which of the two does it meet first?",
)
ROOF_DIVIDES = Mistake(
    "bandwidth divided by intensity",
    "The more FLOP a byte needs, the slower each byte is used up.",
    "Bytes per second over FLOP per byte is no FLOP per second. Do the units by hand.",
)
ROOF_FLAT = Mistake(
    "always the peak",
    "It is what the data sheet promises.",
    "A program with little to do for each byte waits for memory. Where does your function use `bandwidth`?",
)
ROOF_SLOPE_ONLY = Mistake(
    "no peak",
    "With little work a byte, memory is the only limit.",
    "With more and more FLOP a byte, something else stops the program. Where does your function use `peak_flops`?",
)
ROOF_SUM = Mistake(
    "the limits are added",
    "Memory and arithmetic work at the same time.",
    "They work on the same program: it cannot be quicker than either of them alone.",
)
ROOF_NO_OVERLAP = Mistake(
    "first memory, then arithmetic",
    "Seconds for the bytes and seconds for the FLOP are both right.",
    "Adding them says that one waits for the other. The statement has both at the same time: which of the two takes "
    "longer?",
)
ROOF_RIDGE = Mistake(
    "an intensity came back",
    "Peak over bandwidth is where the two limits meet.",
    "That is a place on the axis, in FLOP per byte. The height of the roof above the program was asked for.",
)
ROOF_FRACTION = Mistake(
    "a share of the peak came back",
    "A number from 0 to 1 says how well the machine is used.",
    "The statement asks for FLOP per second.",
)
ROOF_BITS = Mistake(
    "bits for bytes",
    "Links are sold in bits per second.",
    "Everything here is in bytes. What is the 8 for?",
)

# --- lanes ------------------------------------------------------------------------------------------------------------

LANES_SPILL = Mistake(
    "a carry spills into the next byte",
    "As long as no byte overflows, one addition does eight pixels.",
    "A sum above 255 goes on into its neighbour. Keep a free bit above each byte, or add without the highest bits.",
)
LANES_WRAP = Mistake(
    "each byte wraps around",
    "No byte disturbs its neighbour.",
    "You have kept the carry from the neighbour. It is what says that this byte has overflowed: catch it.",
)
LANES_HALF = Mistake(
    "every second byte only",
    "Four bytes with room above them come out right.",
    "The word holds eight. The others can be brought to the same places with one shift, and back with another.",
)
LANES_ONE_FOR_ALL = Mistake(
    "one byte decides for all",
    "A word with a byte too bright is handled.",
    "The other seven keep their own values. One bit a byte is needed, not one a word.",
)
LANES_DARKER = Mistake(
    "a negative amount does not darken",
    "Amounts from 0 to 255 are all right.",
    "A negative amount spread over the word borrows from the neighbours. What does a picture's negative do when it is "
    "brightened?",
)
LANES_BELOW_ZERO = Mistake(
    "bytes that go below 0 come out wrong",
    "Pixels that are bright enough get darker as they should.",
    "A byte that would go below 0 borrows from its neighbour. Which bit tells that it has, and what must become of the "
    "byte?",
)
LANES_OUTGROWN = Mistake(
    "more than 64 bits came back",
    "The lowest eight bytes are right, and in a register the rest would be gone.",
    "A Python int keeps every carry, and `~` makes it negative. Mask the result.",
)
LANES_LOOP = Mistake(
    "one byte at a time",
    "Each pixel comes out right, with these operators alone.",
    "Eight times the work is what lanes were to save. Which step could be done to all bytes of the word at once?",
)
LANES_TOO_MANY = Mistake(
    "more than 20 operations",
    "All bytes are worked on at once.",
    "Count them: what depends on `amount` alone is free, a mask may be applied once to a result instead of twice to "
    "its parts, and a flag becomes eight ones with a shift and a `*` or `-`.",
)
LANES_FORBIDDEN = Mistake(
    "an operator that was not allowed",
    "The result is right.",
    "A register has adders, shifts and bitwise logic. How would you do this step with those?",
)
