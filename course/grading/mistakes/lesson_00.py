"""Mistakes of lesson 00: who am I, and how many are we?"""

from course.grading.mistakes.mistake import Mistake

SWAPPED_PAIR = Mistake(
    "the pair is turned round",
    "Both numbers are right, and with the pair's order unsaid either would do.",
    "The statement names the two in an order. Which comes first?",
)
COUNTS_FROM_ONE = Mistake(
    "ranks counted from one",
    "The first of four is number one in everyday speech.",
    "torch.distributed counts as Python does. What is the number of the first rank?",
)
SAME_RANK = Mistake(
    "every rank says the same number",
    "With one process it is right, and in the notebook there seems to be only one.",
    "The function runs once in each process. Where could a process learn which one it is?",
)
FIXED_WORLD_SIZE = Mistake(
    "a fixed number of ranks",
    "It is right as long as nobody starts another number of ranks.",
    "Ask the group how large it is, each time.",
)
LAST_RANK = Mistake(
    "the last rank's number for the number of ranks",
    "The highest rank is near the count, and with counting from 0 one is easily off.",
    "Ranks 0, 1, 2: how many are that?",
)
