"""On the page: the few helpers of lesson pages. They ask, compare and measure; what is taught stands in the cells.

`predict` keeps a guess, `compare` tells how far two results are apart, `checksum` whether replicas are equal to the
bit, `time_step` how long a training step takes, `TrackMemory` what it holds, `shards` deals a batch to the ranks.
"""

from course.lesson.comparing import Comparison, checksum, compare
from course.lesson.memory import TrackMemory
from course.lesson.predicting import Prediction, predict
from course.lesson.stepping import shards, time_step

__all__ = ["Comparison", "Prediction", "TrackMemory", "checksum", "compare", "predict", "shards", "time_step"]
