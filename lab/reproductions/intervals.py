"""Intervals of figures that are proportions of test items, and why the others have none."""

from zoo_lab.reproduce.figures import format_interval
from zoo_lab.reproduce.recipe_file import RecipeFile
from zoo_lab.reproduce.result import FigureResult

ITEMS = {
    **dict.fromkeys(("captions-digits-hard", "captions-digits-soft"), 5_000),  # scenes
    "ctc-captcha": 104,  # images
    **dict.fromkeys(("g2p-bahdanau", "g2p-bahdanau-large", "g2p-transformer"), 11_994),  # words
    **dict.fromkeys(("gat-cora", "gat-citeseer", "gat-pubmed"), 1_000),  # nodes
    **dict.fromkeys(
        ("minilm-reviews", "minilm-reviews-probe", "minilm-reviews-scratch"), 8_568
    ),  # sentences
    **dict.fromkeys(("memn2n-babi-1k", "memn2n-babi-10k"), 1_000),  # questions of each task
    **dict.fromkeys(("ram-mnist", "ram-mnist-7", "ram-translated"), 10_000),  # images
}
"""Number of test items of recipes, as in the README of the data or in the spec."""
PROPORTIONS = ("accuracy", "exact-match")
"""Metrics that are proportions of test items."""
NO_INTERVAL = {
    "wer": "word and phoneme error rates are edits per reference token, of dependent tokens",
    "cer": "character error rates are edits per reference character, of dependent characters",
    "hamming-loss": "the bits of one sequence depend on each other",
    "bleu": "BLEU is computed from counts of the whole test data",
    "chrf": "chrF is computed from counts of the whole test data",
    "cider": "CIDEr-D is a mean of scores, not a proportion",
    "meteor": "METEOR is a mean of scores, not a proportion",
    "perplexity": "perplexities are computed from a mean of log-probabilities",
    "macro-f1": "F1 is computed from counts of the whole test data",
    "loss": "losses are means of log-probabilities",
    "bound": "bounds on the log-likelihood are means over images",
    "EN-": "word similarities are rank correlations",
}
"""Why figures have no interval, by the first letters of their metrics."""


def count_items(recipe: RecipeFile, value: str) -> int | None:
    """Return the number of test items that a figure is a proportion of, or None.

    Figures on the validation data are not proportions of test items. A mean over several
    test sets of equal size is a proportion of all their items.
    """
    name, metric = value.split("/", 1)
    if name == "validation" or metric not in PROPORTIONS or recipe.name not in ITEMS:
        return None
    evaluation = recipe.recipe.evaluate.get(name)
    return ITEMS[recipe.name] * max(1, len(evaluation.each) if evaluation else 1)


def interval(recipe: RecipeFile, figure: FigureResult) -> str:
    """Return the interval of the mean over the seeds as text, empty if there is none."""
    items = count_items(recipe, figure.value)
    return format_interval(figure.mean, items) if items else ""


def explain_missing() -> str:
    """Return why other figures have no interval, as a nested list."""
    return "\n".join(f"  - {reason}" for reason in NO_INTERVAL.values())
