"""What we say before anything runs: frozen records of models (later layouts, schedules, clusters). Standard library only."""

from course.spec.model import LESSON_GPT, ModelSpec

__all__ = ["LESSON_GPT", "ModelSpec"]
