"""Exercises of lesson 00: who am I, and how many are we?"""

from course.grading.exercises.exercise import Exercise

HELLO_RANK = Exercise(
    id="hello_rank",
    lesson="00_start_here",
    level="core",
    minutes=5,
    points=3,
    source=None,
    statement=(
        "Write `hello_rank()`. It runs on every rank and returns the pair `(rank, world_size)`: the number of the "
        "rank it runs on, counted from 0, and how many ranks there are. Ask `torch.distributed` for both; it is "
        "imported as `dist`. The function has to be right for any number of ranks, one included."
    ),
    hints=(
        "The same function runs in every process. Nothing in its text may depend on which process that is: "
        "it has to ask.",
        "`dist` is set up before your function is called. It knows this process's number and the size of the group. "
        "Type `dist.get_` and press Tab.",
        "Two calls, one for each number, and one `return` with both, rank first.",
    ),
)

EXERCISES = (HELLO_RANK,)
