"""Training of adapters: only they change, and a resumed run equals an uninterrupted one."""

import json

import pytest
import torch
from training_kit import (
    ROOT,
    assert_equal_weights,
    make_spec,
    read_log,
    torchrun,
    weights,
    write_files,
)

import zoo
from zoo.errors import format_bytes

ADAPTERS = {
    "style": {"type": "lora", "rank": 2, "dropout": 0.1, "targets": ["*.{query,value}"]},
    "size": {"type": "dora", "rank": 2, "targets": ["*.feed_forward.up"]},
    "head": {"type": "module-copy", "targets": ["*.feed_forward_norm"]},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("texts"))


def _spec(files, adapters=ADAPTERS, **train):
    return {**make_spec(files, **{"steps": 6, "log": {"every": 1}, **train}), "adapters": adapters}


def test_only_adapters_are_trained_and_in_the_state_of_the_optimiser(files, tmp_path):
    spec = _spec(files)
    zoo.train(spec, output=tmp_path, device="cpu")
    before = zoo.compose(spec).state_dict()
    trained = weights(tmp_path / "model.safetensors")
    changed = {name for name in trained if not torch.equal(trained[name], before[name])}
    assert changed
    assert changed <= {name for name in trained if name.startswith("adapters.")}
    (checkpoint,) = (tmp_path / "checkpoints").iterdir()
    state = weights(checkpoint / "optimiser.safetensors")
    moments = [name for name in state if name.startswith("optimiser/exp_avg/")]
    assert moments
    assert all(name.startswith("optimiser/exp_avg/adapters.") for name in moments)


def test_a_resumed_run_equals_an_uninterrupted_one(files, tmp_path):
    zoo.train(_spec(files), output=tmp_path / "whole", device="cpu")
    zoo.train(_spec(files, steps=3), output=tmp_path / "resumed", device="cpu")
    zoo.train(_spec(files), output=tmp_path / "resumed", device="cpu", resume=True)
    assert_equal_weights(*(tmp_path / run / "model.safetensors" for run in ("whole", "resumed")))


@pytest.fixture(scope="module")
def base(files, tmp_path_factory):
    """The file of a model whose decoder has another width than that of the specs."""
    spec = make_spec(files)
    spec["model"]["decoder"]["feed_forward"] = {"hidden": 20}
    model = {key: value for key, value in spec.items() if key != "train"}
    return zoo.save(zoo.compose(model), tmp_path_factory.mktemp("base") / "base.safetensors")


def _start(base):
    return {"weights": str(base), "parts": {"source": "source", "encoder": "encoder"}}


def _started(files, base, steps):
    return _spec(files, steps=steps, start=_start(base))


def test_a_run_that_starts_from_a_base_trains_adapters_and_what_is_fresh(files, base, tmp_path):
    zoo.train(_started(files, base, 4), output=tmp_path / "whole", device="cpu")
    zoo.train(_started(files, base, 2), output=tmp_path / "resumed", device="cpu")
    zoo.train(_started(files, base, 4), output=tmp_path / "resumed", device="cpu", resume=True)
    runs = [tmp_path / run / "model.safetensors" for run in ("whole", "resumed")]
    assert_equal_weights(*runs)
    names = set(weights(runs[0]))
    assert {name.partition(".")[0] for name in names} == {"adapters", "decoder"}
    model, expected = zoo.load(runs[0]), weights(base)
    tensors = model.state_dict()
    assert all(torch.equal(tensors[n], t) for n, t in expected.items() if n.startswith("encoder."))
    fresh = zoo.compose(_spec(files)).state_dict()["decoder.blocks.0.feed_forward.up.weight"]
    assert not torch.equal(tensors["decoder.blocks.0.feed_forward.up.weight"], fresh)


def test_the_memory_of_fresh_parts_is_checked_with_their_gradients(
    files, base, tmp_path, monkeypatch
):
    spec = _started(files, base, 1)
    named = list(zoo.compose(spec).named_parameters())
    monkeypatch.setenv("ZOO_MEMORY", str(sum(4 * weight.numel() for _, weight in named)))
    frozen = ("source.", "encoder.")  # also the table of the target, which is that of the source
    trained = sum(4 * weight.numel() for name, weight in named if not name.startswith(frozen))
    with pytest.raises(zoo.ZooError, match=f"gradients {format_bytes(trained)}"):
        zoo.train(spec, output=tmp_path, device="cpu")


def test_magnitudes_start_from_the_weights_of_the_base(files, base, tmp_path):
    spec = _started(files, base, 1)
    spec["train"]["optimiser"] = {"type": "sgd", "lr": 1e-12}
    zoo.train(spec, output=tmp_path, device="cpu")
    path = "encoder.blocks.0.feed_forward.up"
    magnitude = weights(tmp_path / "model.safetensors")[f"adapters.size.layers.{path}.magnitude"]
    torch.testing.assert_close(magnitude, weights(base)[f"{path}.weight"].norm(dim=1))


def test_a_training_does_not_start_from_an_adapter_without_its_base(files, base, tmp_path):
    model = zoo.load(base)
    zoo.adapt(model, ADAPTERS["style"])
    file = zoo.save_adapter(model, tmp_path / "style.safetensors")
    with pytest.raises(zoo.SpecError, match=r"train\.start: .*has an adapter only.*zoo merge"):
        zoo.train(_spec(files, start={"weights": str(file)}), output=tmp_path / "run")


@pytest.mark.slow
def test_two_processes_follow_the_losses_of_one(files, base, tmp_path):
    settings = {"steps": 6, "log": {"every": 1}, "batch": {"items": 7}, "start": _start(base)}
    adapters = {name: {**part, "dropout": 0.0} for name, part in ADAPTERS.items() if name != "head"}
    text = json.dumps({"train": settings, "adapters": adapters})
    (tmp_path / "settings.json").write_text(text)
    job = torchrun(ROOT / "tests" / "kits" / "adapter_worker.py", files, tmp_path)
    output, _ = job.communicate(timeout=300)
    zoo.train(_spec(files, adapters, **settings), output=tmp_path / "one", device="cpu")
    expected = [entry["loss"] for entry in read_log(tmp_path / "one") if "loss" in entry]
    for name in ("ddp", "fsdp"):
        assert (tmp_path / name / "model.safetensors").exists(), output
        losses = [entry["loss"] for entry in read_log(tmp_path / name) if "loss" in entry]
        assert losses == pytest.approx(expected, rel=1e-6)
        (checkpoint,) = (tmp_path / name / "checkpoints").iterdir()
        names = weights(checkpoint / "model.safetensors")
        assert {path.partition(".")[0] for path in names} == {"adapters", "decoder"}
