"""What we say before anything runs: frozen records, of models so far. Standard library only."""

from course.spec.model import LESSON_GPT, ModelSpec

__all__ = ["LESSON_GPT", "ModelSpec"]
