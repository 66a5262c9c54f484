"""The keys of a recipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field

from zoo.data.tokenizer_types import TokenizerType
from zoo.errors import InvalidParameter, ZooError
from zoo.files import MAX_NAME, is_file_name
from zoo.interfaces import Metric, Program, Sampler
from zoo.registry.blueprint import Blueprint

FORMAT = 1
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=96)]
Positive = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class TokenizerRecipe:
    """A tokenizer that is trained on the training data.

    Its vocabulary size and special tokens are those of the model.

    Args:
        keys: fields of the training data whose texts it is trained on. The tokenizer is set for
            each of them in the section ``preprocessing`` of the spec.
        method: a type of ``zoo tokenizer train``.
        min_count: tokens that occur less often are left out.
        lowercase: convert texts to lower case.
        limit: use the first examples only, this many.
    """

    def __init__(
        self,
        *,
        keys: Annotated[list[str], Field(min_length=1)],
        method: TokenizerType = "bpe",
        min_count: Positive = 1,
        lowercase: bool = False,
        limit: Positive | None = None,
    ) -> None:
        self.keys = keys
        self.method = method
        self.min_count = min_count
        self.lowercase = lowercase
        self.limit = limit


class EvaluationRecipe:
    """An evaluation of the best checkpoint.

    Args:
        part: the data of the section ``train``: ``test`` or ``validation``.
        data: parameters that replace those of its dataset.
        each: evaluate once for each of these parameters, by label. The values are means over the
            labels; those of a label are named after it.
        metrics: default: those of the spec.
        sampler: default: that of the spec.
        max_length: maximum number of generated tokens.
        batch: number of examples in a batch.
        block: tokens of a block, for language models; default: that of the training.
    """

    def __init__(
        self,
        *,
        part: Literal["test", "validation"] = "test",
        data: dict[str, Any] | None = None,
        each: dict[str, dict[str, Any]] | None = None,
        metrics: Sequence[Blueprint[Metric]] = (),
        sampler: Blueprint[Sampler] | None = None,
        max_length: Positive = 128,
        batch: Positive = 64,
        block: Positive | None = None,
    ) -> None:
        self.part = part
        self.data = data or {}
        self.each = each or {}
        self.metrics = metrics
        self.sampler = sampler
        self.max_length = max_length
        self.batch = batch
        self.block = block


class Figure:
    """A figure of the results, beside the published one.

    Args:
        value: evaluation and metric, such as ``test/bleu``; ``validation/NAME`` is the value of
            the best checkpoint during the training.
        label: the figure in words; default: ``value``.
        metric_label: displayed name of the value in catalogue, validation and plots, for example
            "phoneme error rate" for the metric ``wer`` over phonemes.
        unit: ``%``: the value is a fraction, shown in percent; ``% error``: one minus the fraction,
            in percent. The limits are in this unit.
        at_least: the target, if higher is better.
        at_most: the target, if lower is better.
        spread_at_most: largest standard deviation over the seeds.
        published: the figure of the paper, with its source if it is not that of the recipe.
    """

    def __init__(
        self,
        *,
        value: Annotated[str, Field(pattern=r"^[^/]+/.+$")],
        label: str | None = None,
        metric_label: str | None = None,
        unit: Literal["", "%", "% error"] = "",
        at_least: float | None = None,
        at_most: float | None = None,
        spread_at_most: float | None = None,
        published: str = "",
    ) -> None:
        if at_least is not None and at_most is not None:
            raise ZooError("set 'at_least' or 'at_most', not both")
        self.value = value
        self.label = label or value
        self.metric_label = metric_label
        self.unit = unit
        self.at_least = at_least
        self.at_most = at_most
        self.spread_at_most = spread_at_most
        self.published = published


def _check_names(parameter: str, names: Iterable[str]) -> None:
    """Raise InvalidParameter for a name that could not be that of a file or folder."""
    for name in names:
        if not is_file_name(name):
            raise InvalidParameter(
                parameter,
                f"'{name}' in '{parameter}' is not a valid name: expected at most {MAX_NAME} "
                "letters, digits, '.', '_' and '-'",
            )


@dataclass(frozen=True, kw_only=True)
class FileHeading:
    """Format and name of a recipe or study."""

    zoo: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    name: Name


@dataclass(frozen=True, kw_only=True)
class RecipeHeading(FileHeading):
    """What a recipe reproduces."""

    description: str
    paper: str


class Recipe:
    """How a published result is reproduced.

    Args:
        zoo: version of the format.
        name: name of the recipe, that of its file.
        description: one line.
        paper: the publication.
        data: folders of data sets that it needs; none if the data is made.
        spec: the model and its training, as in a spec; ``name`` is that of the recipe.
        tokenizers: tokenizers that are trained first, by name.
        evaluate: evaluations of the best checkpoint, by name.
        program: further figures, or all if there is no ``spec``.
        figures: the figures to report, with their targets.
        seeds: random seeds; there is one run for each.
        differences: what differs from the paper.
    """

    def __init__(
        self,
        *,
        heading: RecipeHeading,
        figures: Sequence[Blueprint[Figure]],
        data: list[str] | None = None,
        spec: dict[str, Any] | None = None,
        tokenizers: Mapping[str, Blueprint[TokenizerRecipe]] = MappingProxyType({}),
        evaluate: Mapping[str, Blueprint[EvaluationRecipe]] = MappingProxyType({}),
        program: Blueprint[Program] | None = None,
        seeds: Annotated[list[Seed], Field(min_length=1)] | None = None,
        differences: list[str] | None = None,
    ) -> None:
        if spec is None and program is None:
            raise ZooError("set 'spec', 'program' or both")
        if spec is None and (evaluate or tokenizers):
            raise ZooError("'evaluate' and 'tokenizers' need 'spec'")
        _check_names("data", data or ())
        _check_names("tokenizers", tokenizers)
        self.name = heading.name
        self.description = heading.description
        self.paper = heading.paper
        self.figures = [figure.build() for figure in figures]
        self.data = data or []
        self.tokenizers = {key: item.build() for key, item in tokenizers.items()}
        self.evaluate = {key: item.build() for key, item in evaluate.items()}
        self.program = program
        self.seeds = seeds or [0]
        self.differences = differences or []
