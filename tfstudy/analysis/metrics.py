"""The names of metrics as people read them."""

NAMES = {  # of metrics, in tables and in configs/published.csv
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
    "oracle_length_exact_match": "exact match, oracle length",
    "teacher_forced_accuracy": "teacher-forced accuracy",
    "bleu": "BLEU",
    "chrf": "chrF",
}
