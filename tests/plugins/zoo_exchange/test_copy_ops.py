"""Maps that copy one tensor to several, merge equal tensors, or fill in the identity."""

import pytest
import torch
from map_kit import assert_problems, metas, metas_of, plan_shapes, run_plan, write_map
from safetensors.torch import load_file, save_file

import zoo
from zoo_exchange.mapping import plan_tensors, read_map

W = torch.arange(6.0).view(2, 3)


@pytest.fixture
def write(tmp_path):
    return lambda text: write_map(tmp_path, text)


def convert(path, tensors, targets):
    return run_plan(plan_tensors(read_map(path), metas_of(tensors), targets), tensors)


def export(path, tensors):
    plan = plan_tensors(read_map(path).inverse(), metas_of(tensors), None)
    return run_plan(plan, tensors)


@pytest.mark.parametrize(
    "text",
    [
        "rename: {'blocks.{n}.bias': shared}",
        "convert: [{theirs: shared, ours: 'blocks.{n}.bias'}]",
        "convert: [{theirs: shared, ours: 'blocks.{n:0..3}.bias', do: [copy]}]",
    ],
)
def test_one_tensor_is_copied_to_each_parameter_that_matches(write, text):
    path = write(text)
    names = [f"blocks.{n}.bias" for n in range(3)]
    ours = convert(
        path, {"shared": W}, metas(**{name.replace(".", "__"): (2, 3) for name in names})
    )
    assert list(ours) == names
    assert all(torch.equal(tensor, W) for tensor in ours.values())
    (back,) = export(path, ours).items()
    assert back[0] == "shared"
    assert torch.equal(back[1], W)


def test_copies_are_made_after_the_operations_of_the_rule_and_per_other_index(write):
    path = write(
        "convert: [{theirs: 'side.{s:a|b}', ours: '{s:x|y}.blocks.{n}.w', do: [transpose]}]"
    )
    targets = metas(x__blocks__0__w=(3, 2), x__blocks__10__w=(3, 2), y__blocks__2__w=(3, 2))
    ours = convert(path, {"side.a": W, "side.b": -W}, targets)
    assert list(ours) == ["x.blocks.0.w", "x.blocks.10.w", "y.blocks.2.w"]
    assert torch.equal(ours["x.blocks.10.w"], W.t())
    assert torch.equal(ours["y.blocks.2.w"], -W.t())
    back = export(path, ours)
    assert torch.equal(back["side.a"], W)
    assert torch.equal(back["side.b"], -W)


def test_copies_that_differ_are_not_exported(write):
    path = write("rename: {'b.{n}': shared}")
    with pytest.raises(
        zoo.ZooError, match=r"2:10: rename.*merge: 'b\.0' and 'b\.1' differ by up to 1;"
    ):
        export(path, {"b.0": W, "b.1": W + 1})


def test_equal_tensors_are_merged(write):
    path = write("convert: [{theirs: 'layers.{n:0..2}.table', ours: table, do: [merge]}]")
    theirs = {"layers.0.table": W, "layers.1.table": W.clone()}
    assert torch.equal(convert(path, theirs, metas(table=(2, 3)))["table"], W)
    assert export(path, {"table": W}).keys() == theirs.keys()
    with pytest.raises(zoo.ZooError, match=r"'layers\.0\.table' and 'layers\.1\.table' differ by"):
        convert(path, theirs | {"layers.1.table": -W}, metas(table=(2, 3)))
    half = theirs | {"layers.1.table": W.half()}
    with pytest.raises(zoo.ZooError, match=r"2:11: .* dtypes torch\.float32 and torch\.float16"):
        plan_tensors(read_map(path), metas_of(half), metas(table=(2, 3)))


def test_merged_tensors_are_compared_by_their_bits(write):
    path = write("convert: [{theirs: 'l.{n:0..2}', ours: t, do: [merge]}]")
    nan = torch.tensor([float("nan"), 1.0])
    assert convert(path, {"l.0": nan, "l.1": nan.clone()}, metas(t=(2,)))["t"].isnan()[0]
    with pytest.raises(zoo.ZooError, match="differ by up to inf"):
        convert(path, {"l.0": nan, "l.1": torch.ones(2)}, metas(t=(2,)))
    with pytest.raises(zoo.ZooError, match="differ by up to 0"):
        convert(path, {"l.0": torch.zeros(2), "l.1": -torch.zeros(2)}, metas(t=(2,)))


def test_merged_tensors_without_listed_indices_are_imported_only(write):
    path = write("rename: {table: 'layers.{n}.table'}")
    theirs = {"layers.0.table": W, "layers.5.table": W.clone()}
    assert torch.equal(convert(path, theirs, metas(table=(2, 3)))["table"], W)
    assert_problems(
        lambda: export(path, {"table": W}),
        path,
        [("2:10: rename.table", "'n'", "{n:0..8}", "merge")],
    )


def test_problems_of_copies_have_their_line(write):
    path = write(
        """
        rename:
          b.{n}: shared
          c.{n}: other
          d: many.{n}
        """
    )
    theirs = {"other": (2,), "many__0": (2,), "many__1": (3,)}
    assert_problems(
        lambda: plan_shapes(path, theirs, {"b__0": (2,), "d": (2,)}),
        path,
        [
            ("4:3: rename.b.{n}", "'b.0' needs 'shared', which is not in the file"),
            ("6:3: rename.d", "tensors 0 and 1 have shapes [2] and [3]"),
            ("5:3: rename.c.{n}", "'other' is in the file", "'c.{n}'"),
        ],
    )


def test_a_fill_may_be_the_identity(write):
    path = write("fill: {'map.{n}': identity, gain: ones}")
    ours = convert(path, {}, metas(map__0=(3, 3), map__1=(2, 2), gain=(2,)))
    assert torch.equal(ours["map.0"], torch.eye(3))
    assert torch.equal(ours["map.1"], torch.eye(2))
    assert_problems(
        lambda: plan_shapes(path, {}, {"map__0": (2, 3), "gain": (2,)}),
        path,
        [("2:8: fill.map.{n}", "'map.0'", "identity needs a square matrix", "[2, 3]")],
    )


def test_a_dropped_identity_is_written_by_an_export(write):
    path = write("drop: [{name: eye, export: identity, shape: [2, 2]}]\nrename: {w: v}")
    assert torch.equal(export(path, {"w": W})["eye"], torch.eye(2))


SPEC = {
    "zoo": 1,
    "name": "small",
    "model": {
        "type": "language-model",
        "embedding": {"type": "token", "vocab": 5, "dim": 4},
        "decoder": {"type": "plain-rnn", "hidden": 4, "cell": "gru", "layers": 2, "init": "zeros"},
    },
}
MAP = {
    "zoo": 1,
    "rename": {
        "embedding.table.weight": "emb",
        "decoder.cells.cells.{n}.{p:weight|bias}_{s:ih|hh}": "{p:w|b}_{s:i|h}",
        "decoder.out.bias": "bias",
    },
    "fill": {"decoder.out.weight": 0.0},
}


def test_a_file_with_shared_layers_is_imported_and_exported(tmp_path):
    torch.manual_seed(0)
    theirs = {"emb": torch.randn(5, 4), "w_i": torch.randn(12, 4), "w_h": torch.randn(12, 4)}
    theirs |= {"b_i": torch.randn(12), "b_h": torch.randn(12), "bias": torch.randn(5)}
    save_file(theirs, tmp_path / "theirs.safetensors")
    file = zoo.import_model(
        tmp_path / "theirs.safetensors", tmp_path / "m.safetensors", spec=SPEC, map=MAP
    )
    state = zoo.load(file).state_dict()
    assert torch.equal(state["decoder.cells.cells.1.weight_ih"], theirs["w_i"])
    assert torch.equal(state["decoder.cells.cells.0.bias_hh"], theirs["b_h"])
    folder = zoo.export_model(file, tmp_path / "back", map=MAP)
    back = load_file(folder / "model.safetensors")
    assert back.keys() == theirs.keys()
    assert all(torch.equal(back[name], theirs[name]) for name in theirs)


def test_a_filled_identity_must_be_unchanged_on_export(tmp_path):
    spec = {**SPEC, "model": SPEC["model"] | {"embedding": {"type": "token", "vocab": 4, "dim": 4}}}
    tensor_map = {**MAP, "fill": {"decoder.out.weight": "identity"}}
    model = zoo.compose(spec)
    with torch.no_grad():
        cells = model.decoder.cells.cells
        for name, parameter in cells[1].named_parameters():
            parameter.copy_(cells[0].get_parameter(name))
        model.decoder.out.weight.copy_(torch.eye(4))
    file = zoo.save(model, tmp_path / "m.safetensors")
    zoo.export_model(file, tmp_path / "back", map=tensor_map)
    with torch.no_grad():
        model.decoder.out.weight[0, 1] = 1.0
    file = zoo.save(model, tmp_path / "m.safetensors")
    with pytest.raises(zoo.ZooError, match=r"'decoder\.out\.weight' .*is not the identity"):
        zoo.export_model(file, tmp_path / "again", map=tensor_map)
