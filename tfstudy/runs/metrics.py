"""The names of metrics as people read them."""

METRIC_NAMES = {  # in tables and in configs/published.csv
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact match, oracle length",
    "teacher_forced_accuracy": "teacher-forced accuracy",
    "bleu": "BLEU",
    "chrf": "chrF",
}


def metric_name(metric: str) -> str:
    """Return the name of a metric as people read it."""
    return METRIC_NAMES.get(metric, metric.replace("_", " "))
