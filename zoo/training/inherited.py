"""What a spec takes from the base of its training besides weights: preprocessing and tokenizers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from zoo.data.preprocessing import infer_preprocessors
from zoo.errors import DataError, Problem, SpecError, ZooError
from zoo.hub.base_model import find_base
from zoo.interfaces import Model
from zoo.interfaces.signature import parameters
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import build_on_meta, validate_spec
from zoo.spec.data_contract import build_preprocessor, fits, infer_preprocessing
from zoo.spec.document import Document
from zoo.spec.extending import Source, merge_source
from zoo.spec.fine_tuning import Start
from zoo.spec.spec import Spec, draft_spec
from zoo.training.start import OpenBase, StartPlan, open_base, plan_start


@dataclass(frozen=True)
class StartedSpec:
    """A checked spec, and what its training starts from.

    Attributes:
        document: the spec as plain data, with the preprocessing of the base.
        plan: what is taken from the base; None without a base, and for a resumed run.
        record: the base as provenance, log and checkpoints contain it; None without a base.
        tokenizers: the tokenizers that are not read from files, by key of the batch.
    """

    spec: Spec
    document: Document = field(repr=False)
    plan: StartPlan | None = None
    record: Mapping[str, Any] | None = None
    tokenizers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Resumed:
    """What a checkpoint has of the base of its run.

    Attributes:
        record: the base, as `StartPlan.record` returned it.
        spec: the spec of the run.
        tokenizers: the tokenizers of the model.
    """

    record: Mapping[str, Any]
    spec: Mapping[str, Any]
    tokenizers: Mapping[str, str]


def read_started(
    source: Source,
    overrides: Iterable[str] = (),
    *,
    registry: ComponentRegistry | None = None,
    resumed: Resumed | None = None,
) -> StartedSpec:
    """Check a spec together with the base that its training starts from.

    Preprocessing and tokenizers that the spec does not set are those of the base.

    Args:
        resumed: the checkpoint of a run with a base, which is not read again.

    Raises:
        SpecError: if the spec is not valid, or the base is missing or does not fit.
    """
    registry = registry or default_registry()
    document = merge_source(source, overrides, registry)
    if resumed is not None:
        section = resumed.spec.get("preprocessing") or {}
        keys = resumed.record.get("preprocessing", ())
        document = _add_preprocessing(document, {key: section[key] for key in keys})
        kept = resumed.record.get("tokenizers", ())
        tokenizers = {key: text for key, text in resumed.tokenizers.items() if key in kept}
        spec = validate_spec(document, registry=registry)
        record = _moved_record(resumed.record, _start(spec), document)
        return StartedSpec(spec, document, None, record, tokenizers)
    draft = draft_spec(document, registry=registry).spec
    start = _start(draft)
    if draft is None or start is None:
        return StartedSpec(validate_spec(document, registry=registry), document)
    opened = _open(start, document, registry)
    added = _missing_preprocessing(document, draft, opened, registry)
    document = _add_preprocessing(document, added)
    try:
        spec = validate_spec(document, registry=registry)
    except SpecError as error:
        raise SpecError([*_fit_problems(draft, opened), *error.problems]) from None
    model: Model = build_on_meta(spec.model_only()).part
    inherited = {*added, *_extended_keys(document, start)}
    texts = _own_texts(spec, model, inherited, opened.tokenizers, registry)
    plan = plan_start(spec, model, opened, texts, preprocessing=list(added))
    return StartedSpec(spec, document, plan, plan.record(), plan.tokenizers)


def _start(spec: Spec | None) -> Start | None:
    if spec is None or spec.sections.train is None:
        return None
    blueprint = spec.sections.train.params.get("start")
    return None if blueprint is None else blueprint.build()


def _moved_record(
    record: Mapping[str, Any], start: Start | None, document: Document
) -> Mapping[str, Any]:
    """Return the record of a base with the name in the spec, if this is another place of the same
    model; the base is not read if the names are equal."""
    if start is None or start.weights == record.get("name"):
        return record
    with _report_start(document):
        base = find_base(start.weights)
    return {**record, "name": base.name} if base.sha256 == record.get("sha256") else record


def _open(start: Start, document: Document, registry: ComponentRegistry) -> OpenBase:
    with _report_start(document):
        return open_base(start, registry)


@contextmanager
def _report_start(document: Document) -> Iterator[None]:
    """Raise SpecError, with the line of the base, for an error in the block."""
    try:
        yield
    except ZooError as error:
        place = document.place(("train", "start"))
        raise SpecError([Problem(str(error), "train.start", place)]) from None


def _fit_problems(spec: Spec, opened: OpenBase) -> list[Problem]:
    """Return why a base does not fit a spec that has other problems, such as preprocessing that it
    could not take from this base. Tables of another length are not compared."""
    try:
        model: Model = build_on_meta(spec.model_only()).part
        plan_start(spec, model, opened, {}, any_length=True)
    except SpecError as error:
        return error.problems
    return []


def _add_preprocessing(document: Document, added: Mapping[str, Any]) -> Document:
    if not added:
        return document
    section = {**added, **(document.data.get("preprocessing") or {})}
    return replace(document, data={**document.data, "preprocessing": section})


def _missing_preprocessing(
    document: Document, spec: Spec, opened: OpenBase, registry: ComponentRegistry
) -> dict[str, Any]:
    """Return the preprocessing of the base for keys that the spec does not set, and for which both
    models take the same tensors.

    For a key of which the base has only a tokenizer, such as an imported language model, it is the
    preprocessor that fits the data.
    """
    own = document.data.get("preprocessing") or {}
    if not isinstance(own, dict):
        return {}
    try:
        model: Model = build_on_meta(spec.model_only()).part
    except SpecError:  # reported with all other problems
        return {}
    ours, theirs = model.batch_schema() or {}, opened.model.batch_schema() or {}
    shared = {
        key
        for key in ours.keys() & theirs.keys() - own.keys()
        if fits(theirs[key], ours[key])
        and (ours[key].below == theirs[key].below or key in opened.tokenizers)
    }
    found = {k: v for k, v in opened.spec.sections.preprocessing.items() if k in shared}
    assert spec.sections.train is not None
    fields = spec.sections.train.build().data.build().fields()
    stored = shared & opened.tokenizers.keys()
    known = {*own, *found, *(fields.keys() - stored)}
    found |= infer_preprocessing(fields, known, ours, registry, stored)
    return {key: blueprint.resolve() for key, blueprint in found.items()}


def _extended_keys(document: Document, start: Start) -> set[str]:
    """Return the keys whose preprocessing is, as a whole, that of the model the spec extends."""
    if document.base is None or document.base != start.weights:
        return set()
    files: dict[Any, set[str]] = {}
    for path, place in document.values.items():
        if path[:1] == ("preprocessing",) and len(path) > 1:
            files.setdefault(path[1], set()).add(place.file)
    return {key for key, found in files.items() if found == {document.base}}


def _own_texts(
    spec: Spec,
    model: Model,
    inherited: Collection[str],
    stored: Mapping[str, str],
    registry: ComponentRegistry,
) -> dict[str, str | None]:
    """Return the texts that preprocessors read from files, by key; None for those of the base.

    A preprocessor without a file takes the text of the base.
    """
    texts: dict[str, str | None] = {}
    schema = model.batch_schema() or {}
    blueprints = {**spec.sections.preprocessing, **infer_preprocessors(spec, model, registry)}
    for key, blueprint in blueprints.items():
        if not any(each.name == "stored" for each in parameters(blueprint.cls)):
            continue
        if key in inherited and key in stored:
            texts[key] = None
            continue
        built = build_preprocessor(blueprint, key, schema, f"model '{model.name}'")
        try:
            texts[key] = built.stored()
        except DataError as error:  # the file does not exist
            raise SpecError([Problem(str(error), blueprint.path, blueprint.place)]) from None
        except ZooError:
            if key in stored:
                texts[key] = None
    return texts
