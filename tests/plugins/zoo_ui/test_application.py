"""Requests of the page: registry, specs, checks, parts and laws."""

import json
import threading

import pytest


@pytest.fixture(scope="module")
def spec(server):
    return server.call("/api/spec", {"source": "bahdanau-reversal"})["data"]


def _check(server, page, sequence, data):
    return server.call("/api/check", {"page": page, "sequence": sequence, "data": data})


def test_registry_lists_components_specs_and_models(server):
    registry = server.call("/api/registry")
    additive = [c for c in registry["components"] if c["name"] == "additive"]
    assert [(c["kind"], c["plugin"], c["is_third_party"]) for c in additive] == [
        ("scorer", "bahdanau", False)
    ]
    assert "bahdanau-2015" in registry["specs"]
    assert {"name": "g2p-bahdanau", "is_shipped": True}.items() <= next(
        model for model in registry["models"] if model["name"] == "g2p-bahdanau"
    ).items()
    texts = registry["arguments"]
    assert texts["scorer.bahdanau.additive"]["key_dim"] == "width of the keys."
    assert texts["attention"]["heads"]


def test_component_has_formula_parameters_and_shapes(server):
    component = server.call("/api/component?kind=scorer&plugin=bahdanau&name=additive")
    assert {"type": "formula", "text": r"a(q, k) = v^\top \tanh(W q + U k)"} in component["blocks"]
    assert [block["title"] for block in component["blocks"] if "title" in block] == ["Shapes"]
    hidden = next(row for row in component["parameters"] if row["name"] == "hidden")
    assert hidden["text"].startswith("width of the hidden layer; by default 128, and with project")
    missing = server.call("/api/component?kind=scorer&plugin=bahdanau&name=absent")
    assert missing == {"error": "no scorer named 'bahdanau:absent' is installed"}


def test_check_is_that_of_the_command_line(server, spec):
    import zoo

    report = _check(server, "same", 0, spec)
    expected = json.loads(json.dumps(zoo.check("bahdanau-reversal").as_json()))
    assert {key: report[key] for key in expected} == expected


def test_check_names_the_path_of_each_problem(server, spec):
    wrong = json.loads(json.dumps(spec))
    wrong["model"]["encoder"]["hidden"] = -4
    wrong["model"]["encoder"]["hiden"] = 4
    report = _check(server, "wrong", 0, wrong)
    assert not report["ok"]
    assert {problem["path"] for problem in report["errors"]} == {
        "model.encoder.hidden",
        "model.encoder.hiden",
    }


def test_a_newer_check_of_a_page_supersedes_older_ones(server, spec):
    answers = {}

    def check(sequence):
        answers[sequence] = _check(server, "typing", sequence, spec)

    threads = [threading.Thread(target=check, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers[11]["ok"]
    others = [answers[number] for number in range(11)]
    assert all(each.get("ok") or each["superseded"] for each in others)
    assert _check(server, "typing", 3, spec)["superseded"]
    assert _check(server, "another page", 3, spec)["ok"]


def test_parts_are_checked_in_their_slot(server, spec):
    path = ["model", "decoder", "attention", "scorer"]

    def check_part(*values):
        return server.call("/api/part", {"data": spec, "path": path, "values": values})

    additive = check_part({"type": "additive", "hidden": 8}, "additive")
    assert (additive["ok"], additive["value"]) == (True, {"type": "additive", "hidden": 8})
    absent = check_part("absent")
    assert (absent["ok"], absent["reason"][:17]) == (False, "no scorer named '")
    general = check_part({"type": "general", "hidden": 8}, "general")
    assert (general["ok"], general["value"]) == (True, "general")
    assert general["parameters"] != additive["parameters"]


def test_laws_run_one_after_the_other(server):
    body = {"run": "a", "kind": "alignment", "plugin": "alignment", "name": "soft"}
    outcomes, is_complete = [], False
    while not is_complete:
        answer = server.call("/api/laws", body)
        outcomes += answer["outcomes"]
        is_complete = answer["is_complete"]
    assert {outcome["status"] for outcome in outcomes} <= {"passed", "skipped"}
    assert all(outcome["statement"] for outcome in outcomes)
    absent = server.call("/api/laws", body | {"name": "absent"})
    assert absent == {"error": "no alignment named 'alignment:absent' is installed"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "the request should be a JSON object"),
        ({}, "the request has no key 'page'"),
        ({"page": "a"}, "the request has no key 'sequence'"),
        (
            {"page": "a", "sequence": 1, "data": "gat-cora"},
            "'data' should be a mapping",
        ),
    ],
)
def test_malformed_requests_are_errors(server, body, message):
    assert server.call("/api/check", body) == {"error": message}


def test_yaml_with_problems(server):
    answer = server.call("/api/parse", {"text": "a: 1\na: 2\n"})
    assert answer["ok"] is False
    assert answer["errors"][0]["message"] == "duplicate key 'a'; the first is in line 1"
