"""Labels of several questions in one table."""

from annotruth.labels.questions.rows import (
    QUESTION,
    QuestionsFoundError,
    concat_questions,
    find_question_column,
    no_questions_error,
    question_names,
    rows_of_question,
    without_question_column,
)

__all__ = [
    "QUESTION",
    "QuestionsFoundError",
    "concat_questions",
    "find_question_column",
    "no_questions_error",
    "question_names",
    "rows_of_question",
    "without_question_column",
]
