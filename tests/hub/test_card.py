"""Model cards and diagrams of shipped specs."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest
import yaml

import zoo
from zoo.hub.card import CardData, config_json, eval_results, model_card, tree_svg
from zoo.registry.component_registry import default_registry
from zoo.spec.report import Report, ReportNode

SVG = "{http://www.w3.org/2000/svg}"
SPECS = ["bahdanau-2015", "transformer-base", "hierarchical-2015", "vit-base", "ngram-lm"]


@pytest.mark.parametrize("name", SPECS)
def test_diagram_has_one_box_for_each_part(name: str) -> None:
    report = zoo.check(name)
    picture = ElementTree.fromstring(tree_svg(report))
    boxes = [b for b in picture.iter(f"{SVG}rect") if "x" in b.attrib]
    parts = list(report.tree.walk())
    assert len(boxes) == len(parts)
    texts = [text.text or "" for text in picture.iter(f"{SVG}text")]
    assert f"{report.parameters:,}" in texts
    for part in parts:
        assert any(part.type in text for text in texts)
    shapes = min(float(t.attrib["x"]) for t in picture.iter(f"{SVG}text") if "class" in t.attrib)
    for box in boxes:
        assert float(box.attrib["x"]) + float(box.attrib["width"]) < shapes
    assert len({box.attrib["y"] for box in boxes}) == len(boxes)


def test_names_are_escaped_in_the_diagram() -> None:
    node = ReportNode("model.<b>&", "model", '"><script>', None, "[<B>]", 3, 12)
    text = tree_svg(Report("<x>", 3, 12, node))
    ElementTree.fromstring(text)
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("name", SPECS)
def test_card_of_a_shipped_spec_has_paper_and_licence(name: str) -> None:
    from zoo.hub.catalogue import load_catalogue

    published = load_catalogue().get(name)
    spec = zoo.load_spec(name, registry=default_registry())
    card_data = CardData(
        "org/name",
        zoo.check(name),
        spec.resolve(),
        spec.providers(),
        licence=published.licence,
        published=published,
    )
    _, front, text = model_card(card_data).split("---\n", 2)
    assert yaml.safe_load(front)["license"] == "apache-2.0"
    assert published.paper in text
    assert f"{card_data.report.parameters:,} parameters" in text
    assert json.loads(config_json(card_data))["zoo_spec"] == name
    assert eval_results(card_data) is None


def test_a_card_has_tables_and_the_provenance_as_yaml() -> None:
    from markdown_it import MarkdownIt

    spec = zoo.load_spec("bahdanau-small")
    report, providers = zoo.check("bahdanau-small"), spec.providers()
    stored = {"train": {"steps": 3, "data": {"file": "a|b"}}, "metrics": {"bleu": 1.5}}
    card = model_card(CardData("org/name", report, spec.resolve(), providers, provenance=stored))
    tokens = MarkdownIt().enable("table").parse(card.split("---\n", 2)[2])
    assert sum(token.type == "table_open" for token in tokens) == 2  # results and parts
    blocks = [token for token in tokens if token.type == "fence" and token.info == "yaml"]
    assert yaml.safe_load(blocks[-1].content) == {"train": stored["train"]}


def test_results_are_shown_by_their_label() -> None:
    from zoo.hub.catalogue import load_catalogue

    published = load_catalogue().get("g2p-bahdanau")
    spec = zoo.load_spec("bahdanau-small")
    card_data = CardData(
        "org/name",
        zoo.check("bahdanau-small"),
        spec.resolve(),
        spec.providers(),
        published=published,
    )
    _, front, text = model_card(card_data).split("---\n", 2)
    (index,) = yaml.safe_load(front)["model-index"]
    metrics = [row["metrics"] for row in index["results"]]
    assert metrics[0] == [{"type": "wer", "value": 0.0596, "name": "phoneme error rate"}]
    assert metrics[1] == [{"type": "exact-match", "value": 0.7467}]
    assert "| phoneme error rate | 0.0596 | cmudict test |" in text
    assert "| wer |" not in text
