"""What we say before anything runs: frozen records of models and links, and schedules as plain lists.

Standard library only.
"""

from course.spec.cluster import LINKS, Link
from course.spec.collective import Send, after_round, all_reduce_rounds, start_holdings
from course.spec.model import LESSON_GPT, ModelSpec

__all__ = [
    "LESSON_GPT",
    "LINKS",
    "Link",
    "ModelSpec",
    "Send",
    "after_round",
    "all_reduce_rounds",
    "start_holdings",
]
