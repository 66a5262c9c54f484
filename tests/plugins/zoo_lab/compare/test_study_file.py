"""Studies and swaps as lists of variants."""

import pytest
import yaml

from zoo import SpecError
from zoo_lab.compare.study_file import BASELINE, StudySettings, is_study, make_study, read_study

PATH = "decoder.attention.scorer"


def test_the_base_is_one_variant_of_all_groups(study):
    plan = read_study(str(study), StudySettings())
    assert list(plan.variants) == [BASELINE, "scorer-general", "align-monotonic", "align-wide"]
    assert plan.groups == {
        "scorer": {"scaled-dot (baseline)": BASELINE, "general": "scorer-general"},
        "align": {
            "soft (baseline)": BASELINE,
            "monotonic": "align-monotonic",
            "wide": "align-wide",
        },
    }
    general = plan.variants["scorer-general"]
    assert general.changes == ('model.decoder.attention.scorer={"type": "general"}',)
    assert general.recipe.spec.data["train"]["steps"] == 2
    assert general.recipe.overrides == ("train.steps=2", *general.changes)
    assert plan.seeds == (0, 1)


def test_options_change_all_variants_and_their_fingerprints(study):
    plan = read_study(str(study), StudySettings())
    changed = read_study(str(study), StudySettings(("train.steps=3",), (5,), 9.0, 4))
    assert changed.base.spec.data["train"]["steps"] == 3
    assert (changed.seeds, changed.max_seconds, changed.examples) == ((5,), 9.0, 4)
    assert not _fingerprints(plan) & _fingerprints(changed)
    assert _fingerprints(plan) == _fingerprints(
        read_study(str(study), StudySettings(max_seconds=9.0))
    )


def test_results_do_not_depend_on_values_of_the_base_that_the_study_replaces(study):
    before = _fingerprints(read_study(str(study), StudySettings()))
    base = study.parent / "letters.yaml"
    recipe = yaml.safe_load(base.read_text())

    recipe["spec"]["train"]["steps"] += 100
    base.write_text(yaml.safe_dump(recipe))
    assert _fingerprints(read_study(str(study), StudySettings())) == before

    recipe["evaluate"]["test"]["max_length"] = 3
    base.write_text(yaml.safe_dump(recipe))
    assert not _fingerprints(read_study(str(study), StudySettings())) & before


def _fingerprints(plan):
    return {variant.recipe.fingerprint for variant in plan.variants.values()}


def test_swaps_of_a_recipe_are_groups_or_a_product(study):
    source = str(study.parent / "letters.yaml")
    swaps = [(PATH, ["dot", "scaled-dot"]), ("decoder.attention.align", ["entmax", "soft"])]
    plan = make_study(source, swaps, StudySettings())
    assert list(plan.variants) == [BASELINE, "scorer-dot", "align-entmax"]
    product = make_study(source, swaps, StudySettings(), product=True)
    assert list(product.groups["product"]) == [
        "baseline",
        "scorer dot, align entmax",
        "scorer dot, align soft",
        "scorer scaled-dot, align entmax",
    ]


def test_a_spec_is_compared_by_its_validation_result(study):
    recipe = yaml.safe_load((study.parent / "letters.yaml").read_text())
    spec = study.parent / "spec.yaml"
    spec.write_text(yaml.safe_dump({**recipe["spec"], "name": "Letters_2"}))
    plan = make_study(str(spec), [(PATH, ["dot"])], StudySettings())
    assert plan.name == "letters-2"
    assert [figure.value for figure in plan.base.recipe.figures] == ["validation/loss"]
    with pytest.raises(SpecError, match="'transformer-tiny' has no section 'train'"):
        make_study("transformer-tiny", [(PATH, ["dot"])], StudySettings())


def test_a_wrong_path_is_reported_with_its_line(study):
    text = study.read_text()
    study.write_text(text.replace("decoder.attention.align", "decoder.attention.aling"))
    line = next(i for i, t in enumerate(study.read_text().splitlines(), 1) if "aling" in t)
    message = rf"study.yaml:{line}:7: decoder.attention.aling: 'model.decoder.attention' has no key"
    with pytest.raises(SpecError, match=message):
        read_study(str(study), StudySettings())
    with pytest.raises(SpecError, match=r"--swap decodr.align: decodr.align: the spec has no key"):
        make_study(str(study.parent / "letters.yaml"), [("decodr.align", ["x"])], StudySettings())


def test_studies_are_recognised(study):
    assert is_study(str(study))
    assert not is_study(str(study.parent / "letters.yaml"))
    assert not is_study("transformer-tiny")
