"""What a folder of peft says of its base, so that peft's ``AutoPeftModel`` classes load both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from zoo.interfaces import Model

_TASKS = {
    "ForSequenceClassification": "SEQ_CLS",
    "ForTokenClassification": "TOKEN_CLS",
    "ForQuestionAnswering": "QUESTION_ANS",
    "ForCausalLM": "CAUSAL_LM",
    "LMHeadModel": "CAUSAL_LM",
    "ForConditionalGeneration": "SEQ_2_SEQ_LM",
    "MTModel": "SEQ_2_SEQ_LM",
    "Model": "FEATURE_EXTRACTION",
}
"""The task of peft by the end of the name of a class of transformers; the first is used."""

_HEADS = {"SEQ_CLS": ("classifier", "score"), "TOKEN_CLS": ("classifier", "score")}
"""The ends of the names of modules that peft expects in a folder of a task, as a whole."""


def describe_base(
    model: Model, config: Mapping[str, Any], provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the keys of ``adapter_config.json`` that describe the base.

    Args:
        config: the config of the base in transformers.
        provenance: that of the imported base.
    """
    keys: dict[str, Any] = {"base_model_name_or_path": provenance.get("imported")}
    if isinstance(provenance.get("commit"), str):
        keys["revision"] = provenance["commit"]
    names = config.get("architectures") or [""]
    task = next((task for end, task in _TASKS.items() if names[0].endswith(end)), None)
    source = (model.batch_schema() or {}).get("source")
    if task == "SEQ_2_SEQ_LM" and (source is None or source.below is None):
        task = None  # peft's task is that of texts; others have the class of their base
    if task is not None:
        keys["task_type"] = task
    elif names[0]:
        keys["auto_mapping"] = {"base_model_class": names[0], "parent_library": "transformers"}
    return keys


def saved_head(name: str, described: Mapping[str, Any]) -> str | None:
    """Return the module of a tensor of the base that peft expects in the folder; None of others.

    Args:
        described: what `describe_base` returned.
    """
    steps = name.split(".")[:-1]
    ends = _HEADS.get(described.get("task_type", ""), ())
    for count, step in enumerate(steps, 1):
        if ends and step.endswith(ends):
            return ".".join(steps[:count])
    return None


def unused_prefix(names: Iterable[str], described: Mapping[str, Any]) -> str:
    """Return the start of the names of all tensors of a base that its modules do not have in peft.

    Files of a model without a head have the names of one with a head, such as ``bert.encoder``.

    Args:
        names: the names of tensors in the files of the base.
        described: what `describe_base` returned.
    """
    starts = {name.partition(".")[0] for name in names}
    is_bare = described.get("task_type") == "FEATURE_EXTRACTION"
    return f"{starts.pop()}." if is_bare and len(starts) == 1 else ""
