"""Mistakes of lesson 10 about a step: its pipeline, its chunks, and the messages that do not hide."""

from course.grading.mistakes.mistake import Mistake

STEP_NO_BUBBLE = Mistake(
    "the pipeline never fills or drains",
    "Every stage does its microbatches one after the other.",
    "The last stage can start when the first microbatch has passed all others. How long is that?",
)
STEP_BUBBLE_OF_ONE_PASS = Mistake(
    "idle for one direction only",
    "The pipeline fills with forwards.",
    "It also drains, with backwards. For both, how long does each of the other stages keep this one waiting?",
)
STEP_ONE_STAGE_MORE = Mistake(
    "a stage waits for too many others",
    "There are `stages` of them.",
    "With one stage nobody waits. For how many others does a stage wait, for filling and draining together?",
)
STEP_STAGES_IN_TURN = Mistake(
    "the stages work one after the other",
    "A microbatch does pass one stage after the other.",
    "While stage 1 has the first microbatch, stage 0 already has the second. What is the length of one stage's row?",
)
STEP_SPLIT_AGAIN = Mistake(
    "divided by the number of stages",
    "The work is shared by all stages.",
    "`forward` and `backward` are the times of one stage, so they are shared out already.",
)
STEP_SHARE_OF_WHOLE = Mistake(
    "one bubble fraction in place of the other",
    "Both are called the bubble.",
    "Idle over busy is (p−1)/m, idle over the whole step is (p−1)/(m+p−1). To which time did you add yours, or from "
    "which did you take it off?",
)
STEP_ONE_MICROBATCH = Mistake(
    "one microbatch through the pipeline",
    "It passes all stages.",
    "The others follow it. When does the last stage see the last of them?",
)
STEP_CHUNKS_IGNORED = Mistake(
    "`chunks` makes no difference",
    "All the work is the same.",
    "Filling and draining go in smaller pieces. What is that for the idle time?",
)
STEP_CHUNKS_SHORTEN_ALL = Mistake(
    "chunks shorten the work too",
    "The pieces are smaller.",
    "There are more of them. What does a stage have to compute for all microbatches, whatever the number of chunks?",
)
STEP_CHUNKS_LENGTHEN = Mistake(
    "chunks make the step longer",
    "There are more pieces for a microbatch to pass.",
    "Each piece takes 1/chunks of a stage's time. In the bubble only stages−1 of these short pieces count.",
)
STEP_TENSOR_LEFT_OUT = Mistake(
    "the all-reduces of tensor parallelism are free",
    "They run on the network, not on the chip.",
    "The next product needs their sum, so the stage waits for each of them.",
)
STEP_TENSOR_NOT_IN_BUBBLE = Mistake(
    "the bubble knows nothing of the all-reduces",
    "They are there for every microbatch.",
    "A stage that fills or drains waits for whole passes of others, and these have their all-reduces in them.",
)
STEP_TENSOR_ONCE_A_STEP = Mistake(
    "all-reduces of one microbatch for the whole step",
    "Each layer has its four.",
    "The second microbatch needs sums of its own.",
)
STEP_TENSOR_ONE_DIRECTION = Mistake(
    "too few all-reduces in a layer",
    "Attention and MLP each end in one.",
    "Each of the two has one in forward and one in backward.",
)
STEP_TENSOR_TOO_MANY = Mistake(
    "too many all-reduces in a layer",
    "Attention and MLP both have them, in both directions.",
    "Two in forward and two in backward: how many are that for one microbatch and one layer?",
)
STEP_TENSOR_ONE_LAYER = Mistake(
    "the all-reduces of one layer",
    "Forward and backward are there.",
    "A stage has `layers` layers, and each of them waits for its own.",
)
STEP_TENSOR_ALL_STAGES = Mistake(
    "layers of all stages, or a part of one's",
    "`layers` and `stages` are both given.",
    "`layers` is the number on one stage, and the other stages work at the same time.",
)
STEP_DATA_LEFT_OUT = Mistake(
    "the gradients' all-reduce is free",
    "It runs beside backward.",
    "There is only so much of backward to hide behind. What if the all-reduce takes longer?",
)
STEP_DATA_ALL_EXPOSED = Mistake(
    "nothing of the gradients' all-reduce is hidden",
    "All gradients are there when backward is done.",
    "A layer's gradients are there earlier, and go out while the others are computed. How much of it does that hide?",
)
STEP_DATA_BELOW_ZERO = Mistake(
    "a short all-reduce makes the step shorter",
    "What is hidden is taken off.",
    "An all-reduce of no time at all would save time. What is the least that can be left?",
)
STEP_DATA_HIDDEN_PART = Mistake(
    "the hidden part is added",
    "It is the part that overlaps.",
    "What runs beside computing costs nothing more. The other part does.",
)
STEP_DATA_BESIDE_ALL = Mistake(
    "hidden behind the whole step",
    "There is a lot of computing to hide behind.",
    "A gradient is complete when the last microbatch has added its part. Which backward is still to come then?",
)
STEP_DATA_BESIDE_MORE = Mistake(
    "hidden behind more than computing backward",
    "Forward, or the messages of tensor parallelism, take time as well.",
    "The statement names what it runs beside: computing the last microbatch's backward, `backward` seconds.",
)
STEP_DATA_EACH_MICROBATCH = Mistake(
    "gradients are summed after each microbatch",
    "Every microbatch makes gradients.",
    "They are added up on the rank first, and sent once a step.",
)
