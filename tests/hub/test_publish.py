"""Pushed repositories: files, model card, branches and conflicts."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch
import yaml
from artifact_kit import rewrite
from hub_kit import NAME, WEIGHTS
from hub_server import TOKEN, Hub, Response
from huggingface_hub import EvalResultEntry, ModelCard
from huggingface_hub.utils import disable_progress_bars
from torch import nn

import zoo
from zoo.errors import HubError
from zoo.hub.card import GENERATED_MARK, OLD_GENERATED_MARK

disable_progress_bars()
TOKENIZER = json.dumps(
    {
        "version": "1.0",
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "WordLevel",
            "vocab": {f"w{n}": n for n in range(16)},
            "unk_token": "w3",
        },
    }
)
RESULTS = """
zoo: 1
models:
  - name: bahdanau-reversal
    spec: bahdanau-reversal
    paper: Bahdanau, Cho and Bengio 2015
    licence: Apache-2.0
    results:
      - {metric: accuracy, value: 0.996, dataset: Reversal, split: unseen}
      - {metric: bleu, value: 28.4, dataset: org/bench, task: default, source: https://example.org}
"""


@pytest.fixture(autouse=True)
def token(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)


def read_text(hub: Hub, name: str, branch: str = "main") -> str:
    repo = hub.repo(NAME)
    return repo.commits[repo.branches[branch]][name].body.decode()


def test_pushed_files(hub: Hub, saved: Path) -> None:
    pushed = zoo.push(saved, NAME, licence="apache-2.0")
    assert set(pushed.files) == {WEIGHTS, "config.json", "README.md", "tree.svg"}
    assert pushed.url == f"{hub.url}/{NAME}"
    config = json.loads(read_text(hub, "config.json"))
    assert config == {
        "library_name": "attention-zoo",
        "library_version": config["library_version"],
        "zoo_spec": "bahdanau-reversal",
        "architecture": "seq2seq",
    }
    card = ModelCard(read_text(hub, "README.md"))
    assert card.data.library_name == "attention-zoo"
    assert card.data.license == "apache-2.0"
    assert card.data.tags == ["attention-zoo", "bahdanau-reversal", "seq2seq"]
    for text in (
        "68,048 parameters",
        "(tree.svg)",
        f'zoo.load("{NAME}")',
        "type: bahdanau:additive",
        "## Citation\n\n- ",
        "- Bahdanau",
    ):
        assert text in card.text
    diagram = ElementTree.fromstring(read_text(hub, "tree.svg"))
    texts = [text.text for text in diagram.iter("{http://www.w3.org/2000/svg}text")]
    assert "scorer: additive" in texts
    assert "68,048" in texts


def test_code_and_spec_of_the_card_run(hub: Hub, saved: Path, tmp_path: Path) -> None:
    model = zoo.load(saved)
    for tokenizer in (None, TOKENIZER):  # only models with a tokenizer show text generation
        model.tokenizer = tokenizer and {"source": tokenizer, "target": tokenizer}
        zoo.push(model, NAME)
        text = read_text(hub, "README.md")
        code = re.search(r"````python\n(.*?)````", text, re.S)
        assert code
        assert ("zoo.generate" in code[1]) == bool(tokenizer)
        found: dict[str, zoo.Model] = {}
        exec(code[1], {}, found)
        assert found["model"].spec == model.spec
    spec = re.search(r"````yaml\n(.*?)````", text, re.S)
    assert spec
    (tmp_path / "spec.yaml").write_text(spec[1])
    assert zoo.check(tmp_path / "spec.yaml").parameters == 68_048


def test_results_of_the_catalogue_are_in_card_and_eval_results(
    hub: Hub, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "registry.yaml").write_text(RESULTS)
    monkeypatch.setattr("zoo.hub.catalogue.builtin_file", lambda: tmp_path / "registry.yaml")
    zoo.push(saved, NAME)
    card = ModelCard(read_text(hub, "README.md"))
    assert card.data.license == "apache-2.0"
    assert card.data.eval_results is not None
    first, second = card.data.eval_results
    assert (first.metric_type, first.metric_value, first.dataset_split) == (
        "accuracy",
        0.996,
        "unseen",
    )
    assert (second.dataset_type, second.metric_value) == ("org/bench", 28.4)
    assert "| accuracy | 0.996 | Reversal unseen |" in card.text
    assert "Bahdanau, Cho and Bengio 2015" in card.text
    (row,) = yaml.safe_load(read_text(hub, ".eval_results/zoo.yaml"))
    entry = EvalResultEntry(row["dataset"]["id"], row["dataset"]["task_id"], row["value"])
    assert (entry.dataset_id, entry.task_id, entry.value) == ("org/bench", "default", 28.4)


def test_provenance_is_in_the_card(hub: Hub, tmp_path: Path) -> None:
    provenance = {
        "metrics": {"bleu": 12.5, "text": "not a number"},
        "datasets": ["multi30k"],
        "seed": 3,
        "licence": "mit",
        "note": "a | b\n<script>",
    }
    model = zoo.compose("gpt2-tiny")
    zoo.push(zoo.save(model, tmp_path / "m.safetensors", provenance=provenance), NAME)
    card = ModelCard(read_text(hub, "README.md"))
    assert card.data.datasets == ["multi30k"]
    assert card.data.pipeline_tag == "text-generation"
    assert card.data.license == "mit"
    assert "| bleu | 12.5 | reported by the author |" in card.text
    assert "not a number" not in card.text
    block = card.text.split("## Provenance", 1)[1].split("````")[1]
    shown = yaml.safe_load(block.removeprefix("yaml"))
    assert shown["note"] == provenance["note"]  # in a block of code, which has no markup
    assert "metrics" not in shown


@pytest.mark.parametrize(
    ("licence", "front"),
    [
        ("Apache-2.0", {"license": "apache-2.0"}),
        ("CC BY-NC 4.0", {"license": "cc-by-nc-4.0"}),
        ("My own: ask me", {"license": "other", "license_name": "my-own-ask-me"}),
    ],
)
def test_unknown_licence_is_other(
    hub: Hub, saved: Path, licence: str, front: dict[str, str]
) -> None:
    zoo.push(saved, NAME, licence=licence)
    card = ModelCard(read_text(hub, "README.md"))
    assert {key: card.data.get(key) for key in front} == front
    assert f"## Licence\n\n{licence}\n" in card.text


def test_card_rejected_by_the_hub_is_not_committed(hub: Hub, saved: Path) -> None:
    zoo.push(saved, NAME)
    before = hub.repo(NAME).branches["main"]
    rejection = {"errors": [{"message": "base_model is not a model"}], "warnings": []}
    hub.fault("/api/validate-yaml", lambda a: Response.of(rejection, 400))
    with pytest.raises(HubError, match=f"{NAME} was not pushed to {hub.url}: "):
        zoo.push(zoo.compose("bahdanau-reversal", seed=8), NAME)
    assert hub.repo(NAME).branches["main"] == before


def test_generated_cards_are_replaced_and_others_kept(hub: Hub, saved: Path) -> None:
    zoo.push(saved, NAME)
    assert GENERATED_MARK in read_text(hub, "README.md")
    for mark in (GENERATED_MARK, OLD_GENERATED_MARK):
        hub.repo(NAME).add({"README.md": f"{mark}\nold".encode()})
        zoo.push(saved, NAME)
        assert "# bahdanau-reversal" in read_text(hub, "README.md")
    hub.repo(NAME).add({"README.md": b"# Mine"})
    assert "README.md" not in zoo.push(saved, NAME).files
    assert read_text(hub, "README.md") == "# Mine"


def test_new_branch_does_not_change_main(hub: Hub, saved: Path) -> None:
    zoo.push(saved, NAME)
    before = hub.repo(NAME).branches["main"]
    for seed in (1, 2):
        zoo.push(zoo.compose("bahdanau-reversal", seed=seed), NAME, revision="try", message="Try")
    assert hub.repo(NAME).branches["main"] == before
    assert zoo.load(f"{NAME}@try").spec == zoo.load(NAME).spec
    pushed = zoo.push(saved, f"hub:{NAME}@other")
    assert hub.repo(NAME).branches == {**hub.repo(NAME).branches, "other": pushed.commit}
    assert hub.repo(NAME).branches["main"] == before


def test_private_applies_to_new_repositories(hub: Hub, saved: Path) -> None:
    zoo.push(saved, NAME, private=True)
    assert hub.repo(NAME).private
    zoo.push(saved, NAME, private=False)
    assert hub.repo(NAME).private


def test_concurrent_push_is_not_overwritten(hub: Hub, saved: Path) -> None:
    zoo.push(saved, NAME)
    hub.fault("/preupload/", lambda a: (hub.repo(NAME).add({"new.txt": b"1"}), a)[1], times=1)
    with pytest.raises(HubError, match="was changed by another commit"):
        zoo.push(zoo.compose("bahdanau-reversal", seed=8), NAME)
    assert read_text(hub, "new.txt") == "1"


@pytest.mark.parametrize("path", ["/preupload/", "/objects/batch", "/commit/", "/api/repos/create"])
@pytest.mark.parametrize("body", [b"<html>", b"[]"])
def test_invalid_response_to_a_push_raises(hub: Hub, path: str, body: bytes, saved: Path) -> None:
    hub.fault(path, lambda a: Response(200, body, {"Content-Type": "application/json"}))
    with pytest.raises(HubError, match=f"{NAME} was not pushed to {hub.url}: "):
        zoo.push(saved, NAME)


def test_invalid_commit_raises(hub: Hub, saved: Path) -> None:
    hub.fault(
        "/commit/",
        lambda a: Response.of({"commitOid": "../x", "commitUrl": f"{hub.url}/{NAME}/commit/x"}),
    )
    with pytest.raises(HubError, match=r"after the push: '../x' is not a commit"):
        zoo.push(saved, NAME)


def test_invalid_files_are_not_pushed(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"not a model")
    for path, message in (
        (tmp_path / "x.safetensors", "is not a valid safetensors file"),
        (tmp_path / "nothing.safetensors", "no such file"),
        (tmp_path, "directory without a model"),
    ):
        with pytest.raises(zoo.ArtifactError, match=message):
            zoo.push(path, NAME)
    assert hub.requests == []


def test_models_that_cannot_be_loaded_are_not_pushed(hub: Hub, saved: Path, tmp_path: Path) -> None:
    changed = zoo.compose("bahdanau-reversal")
    changed.extra = nn.Linear(3, 3)
    file = Path(shutil.copy(saved, tmp_path / "x.safetensors"))
    rewrite(file, lambda tensors: tensors.update({"extra.weight": torch.ones(3)}))
    for model in (changed, file):
        with pytest.raises(zoo.ArtifactError, match=r"unexpected: extra\.weight"):
            zoo.push(model, NAME)
    assert hub.requests == []


def test_compiled_model_is_pushed_as_the_model(hub: Hub) -> None:
    model = zoo.compose("bahdanau-reversal", seed=5)
    zoo.push(torch.compile(model, backend="eager"), NAME)
    again = zoo.load(NAME).state_dict()
    assert again.keys() == model.state_dict().keys()
    assert all(torch.equal(again[name], value) for name, value in model.state_dict().items())
