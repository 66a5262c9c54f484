"""Decoding steps in Triton kernels, compared with the reference path."""

from itertools import product

import pytest
import torch

import zoo
from zoo import recording
from zoo.acceleration.conditions import why_not
from zoo.plugin import Memory
from zoo_fast.generation.state_items import select_items
from zoo_fast.transformer.cached_state import CachedState
from zoo_fast.transformer.fused_step import FusedDecoding
from zoo_transformer.layer_scale import LayerScale
from zoo_transformer.norm import RMSNormPlusOne

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GPT = {"norm": {"place": "pre"}, "position": {"type": "learned", "length": 9}}
LLAMA = {"norm": {"kind": "rms", "place": "pre"}, "position": "rotary"}
CASES = {
    "post-norm": ({"position": "sinusoidal"}, {"bias": "qvo"}, {"activation": "relu"}),
    "llama": (
        LLAMA,
        {"heads": 4, "kv_heads": 2, "bias": False},
        {"gated": True, "activation": "silu", "bias": False},
    ),
    "gpt": (GPT, {"bias": True}, {"activation": "gelu-tanh"}),
    "interleaved": (
        {"norm": {"kind": "rms"}, "position": {"type": "rotary", "layout": "interleaved"}},
        {"heads": 4, "kv_heads": 1, "bias": "qkv"},
        {"activation": "gelu"},
    ),
}
YARN = {"type": "yarn", "factor": 4.0, "original_length": 4}
CASES["yarn"] = (
    {**LLAMA, "position": {"type": "rotary", "scaling": YARN}, "output": {"transform": {}}},
    *CASES["llama"][1:],
)
CASES["llama"][1]["scorer"] = {"type": "scaled-dot", "scale": 0.3}
FIRST = ["post-norm", "llama"]


def with_slow(quick, others):
    """Return cases; the others only run with the slow tests."""
    return [*quick, *(pytest.param(*case, marks=pytest.mark.slow) for case in others)]


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    if DEVICE == "cpu":
        from zoo_fast.transformer.kernels import linear_layers

        # The interpreter takes time for each program.
        def tiles(M, N, K, dtype, half_head=64, paired=False):
            blocks = {"BM": 1 if M == 1 else 16, "BN": half_head, "BK": 64 if N == 128 else 128}
            one_pass = blocks["BK"] >= K
            launch = {"SLICES": 1, "STAGES": 1, "LINES": 0, "num_warps": 4}
            return blocks | {"NORM_BK": 0 if one_pass else 64} | launch

        monkeypatch.setattr(linear_layers, "linear_tiles", tiles)


def make_decoder(case, dim=128, layers=1, hidden=50):
    options, heads, network = CASES[case]
    attention = {"scorer": "scaled-dot", "align": "soft", "heads": 2, "head_dim": 32, **heads}
    embedding = {"type": "token", "vocab": 37, "dim": dim}
    if case == "interleaved":
        embedding["inner_dim"] = 16
    decoder = {"type": "transformer", "layers": layers, "attention": attention, **options}
    decoder["feed_forward"] = {"hidden": hidden, **network}
    if case in ("post-norm", "gpt"):
        encoder = {"type": "transformer", "layers": 1, "attention": attention}
        encoder["feed_forward"] = {"hidden": 8}
        model = {"type": "seq2seq", "source": embedding, "encoder": encoder, "decoder": decoder}
    else:
        model = {"type": "language-model", "embedding": embedding, "decoder": decoder}
    built = zoo.compose({"zoo": 1, "name": "test", "model": model}).eval().decoder.to(DEVICE)
    generator = torch.Generator().manual_seed(0)
    for parameter in built.parameters():
        values = torch.randn(parameter.shape, generator=generator)
        parameter.data.add_(0.1 * values.to(DEVICE))
    return zoo.accelerate(built)


def make_memory(decoder, batch):
    if not decoder.memory_dim:
        return Memory.empty(batch, device=DEVICE)
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(batch, 5, decoder.memory_dim, generator=generator).to(DEVICE)
    mask = torch.ones(batch, 5, dtype=torch.bool, device=DEVICE)
    mask[-1, 2:] = False
    return Memory(states, mask, states[:, 0])


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("case", with_slow([*FIRST, "yarn"], [("gpt",), ("interleaved",)]))
def test_steps_after_a_prompt_equal_the_forward_pass(case, batch):
    compare_steps(case, batch)


@torch.no_grad()
def compare_steps(case, batch, **sizes):
    decoder = make_decoder(case, **sizes)
    memory = make_memory(decoder, batch)
    tokens = torch.randint(1, 37, (batch, 5), generator=torch.Generator().manual_seed(2)).to(DEVICE)
    expected = decoder(tokens, memory)
    state, found = decoder.start(memory, steps=5), []
    assert isinstance(state, CachedState)
    for part in tokens.split([3, 1, 1], dim=1):
        logits, state = decoder.step(part, state)
        found.append(logits)
    torch.testing.assert_close(torch.cat(found, dim=1), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("case", ["post-norm", "llama"])
def test_a_norm_in_a_separate_kernel_gives_the_same_logits(case, monkeypatch):
    from zoo_fast.transformer.kernels import decode_step, linear_layers

    for module in (decode_step, linear_layers):
        monkeypatch.setattr(module, "norm_first", lambda M, K, dtype: True)
    compare_steps(case, 2)


@pytest.mark.parametrize("case", ["post-norm", "llama", "gpt"])
def test_products_in_parts_that_the_norm_adds_give_the_same_logits(case, monkeypatch):
    from zoo_fast.transformer.kernels import decode_step, linear_layers

    added = []
    monkeypatch.setattr(linear_layers, "input_parts", lambda M, N, K, dtype: 2 if M > 1 else 1)
    add = decode_step.add_and_norm
    monkeypatch.setattr(decode_step, "add_and_norm", lambda *given: added.append(1) or add(*given))
    compare_steps(case, 2, layers=2, hidden=300)  # a part is larger than a block
    assert len(added) == 2 * (3 if case == "llama" else 5)  # in two steps, not after the last layer


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="torch finds no CUDA device")
@pytest.mark.parametrize("rows", [2, 16, 17])
@pytest.mark.parametrize("case", ["post-norm", "llama", "gpt"])
@torch.no_grad()
def test_steps_in_bfloat16_are_as_near_to_float32_as_the_reference_path(case, rows, monkeypatch):
    decoder = make_decoder(case, dim=640, layers=2, hidden=1024)
    memory = make_memory(decoder, rows)
    tokens = torch.randint(1, 37, (rows, 4), generator=torch.Generator().manual_seed(2)).to(DEVICE)

    def logits(dtype):
        states, summary = memory.states.to(dtype), memory.summary.to(dtype)
        state, found = decoder.to(dtype).start(Memory(states, memory.mask, summary), steps=4), []
        for part in tokens.split(1, dim=1):
            result, state = decoder.step(part, state)
            found.append(result)
        return torch.cat(found, dim=1).float()

    found = logits(torch.bfloat16)
    monkeypatch.setenv("ZOO_TRITON", "off")
    reference, exact = logits(torch.bfloat16), logits(torch.float32)
    assert (found - exact).norm() <= 1.5 * (reference - exact).norm()


@pytest.mark.parametrize("case", with_slow(FIRST, [("yarn",), ("gpt",), ("interleaved",)]))
def test_products_of_the_library_give_the_same_logits(case, monkeypatch):
    from zoo_fast.transformer.kernels import linear_layers

    monkeypatch.setattr(linear_layers, "uses_library", lambda M, N, dtype, paired: M > 1)
    monkeypatch.delattr(linear_layers.decoding_linear_triton, "project_heads")
    test_a_norm_in_a_separate_kernel_gives_the_same_logits(case, monkeypatch)


@pytest.mark.parametrize("case", with_slow(FIRST, [("yarn",), ("gpt",), ("interleaved",)]))
@pytest.mark.skipif(DEVICE == "cuda", reason="on a GPU all tests have the tiles of float32")
def test_summed_products_give_the_same_logits(case, monkeypatch):
    from zoo_fast.transformer.kernels import linear_layers

    def tiles(M, N, K, dtype, half_head=64, paired=False):
        blocks = {"BM": 2, "BN": half_head, "BK": 64}
        launch = {"SLICES": 1, "STAGES": 1, "LINES": 0, "num_warps": 4}
        return blocks | {"NORM_BK": 0 if K <= 64 else 64} | launch

    monkeypatch.setattr(linear_layers, "linear_tiles", tiles)
    compare_steps(case, 2)


@pytest.mark.parametrize("case", with_slow(FIRST, [("yarn",), ("gpt",), ("interleaved",)]))
def test_sliced_products_give_the_same_logits(case, monkeypatch):
    from zoo_fast.transformer.kernels import linear_layers

    def tiles(M, N, K, dtype, half_head=64, paired=False):
        blocks = {"BM": 16, "BN": half_head, "BK": 64, "SLICES": 2}
        return blocks | {"NORM_BK": 64, "STAGES": 2, "LINES": 0, "num_warps": 2}

    monkeypatch.setattr(linear_layers, "linear_tiles", tiles)
    test_a_norm_in_a_separate_kernel_gives_the_same_logits(case, monkeypatch)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="torch finds no CUDA device")
@pytest.mark.parametrize("rows", [8, 12, 20, 40])
@pytest.mark.parametrize("case", CASES)
def test_steps_of_many_rows_equal_the_forward_pass(case, rows):
    compare_steps(case, rows)


@pytest.mark.parametrize(
    ("case", "split"),
    with_slow(
        [("post-norm", 0), ("llama", 256)],
        [
            ("post-norm", 256),
            ("llama", 0),
            *product(("yarn", "gpt", "interleaved"), (0, 256)),
        ],
    ),
)
@torch.no_grad()
def test_the_tokens_of_a_prompt_are_rows(case, split, monkeypatch):
    if split == 0:
        monkeypatch.setattr("zoo_fast.transformer.kernels.tiles.PROGRAMS", 0)  # as with many rows
    decoder = make_decoder(case)
    memory, fused = make_memory(decoder, 2), FusedDecoding()
    tokens = torch.randint(1, 37, (2, 8), generator=torch.Generator().manual_seed(2)).to(DEVICE)
    expected = decoder(tokens, memory)
    state, length = decoder.start(memory, steps=8), 0
    for part in tokens.split([4, 1, 3], dim=1):
        logits, state = fused.process_prompt(decoder, part, state)
        length += part.shape[1]
        torch.testing.assert_close(logits[:, 0], expected[:, length - 1], atol=1e-4, rtol=1e-4)
        assert state.rows["at"].tolist() == [length, length]


@torch.no_grad()
def test_long_prompts_and_several_hypotheses_are_declined():
    decoder = make_decoder("llama")
    state = decoder.start(make_memory(decoder, 2), steps=17)
    tokens = torch.ones(2, 17, dtype=torch.long, device=DEVICE)
    fused = FusedDecoding()
    assert fused.process_prompt(decoder, tokens, state).reason == "there are 34 tokens"
    assert fused.step(decoder, tokens[:, :2], state).reason == "there are 2 tokens"
    reason = fused.process_prompt(decoder, tokens[:, :2].repeat(2, 1), state.repeat(2)).reason
    assert reason == "there are several hypotheses of a source"
    assert fused.process_prompt(decoder, tokens[:, :0], state).reason == "there are no tokens"


@pytest.mark.parametrize("case", with_slow(FIRST, [("yarn",), ("gpt",), ("interleaved",)]))
@torch.no_grad()
def test_reordered_hypotheses_continue_their_parents(case, monkeypatch):
    monkeypatch.setattr("zoo_fast.transformer.kernels.tiles.PROGRAMS", 0)  # as with many rows
    decoder = make_decoder(case)
    memory, W = make_memory(decoder, 2), 3
    repeated = make_memory(decoder, 2)
    repeated = Memory(*(part.repeat_interleave(W, dim=0) for part in
                        (repeated.states, repeated.mask, repeated.summary)))  # fmt: skip
    state, tokens = decoder.start(memory, steps=4).repeat(W), None
    generator = torch.Generator().manual_seed(3)
    for parents in ([2, 0, 0, 5, 5, 3], [1, 1, 2, 4, 3, 5], [0, 2, 1, 3, 3, 3]):
        new = torch.randint(1, 37, (2 * W, 1), generator=generator).to(DEVICE)
        tokens = new if tokens is None else torch.cat([tokens, new], dim=1)
        logits, state = decoder.step(new, state)
        expected = decoder(tokens, repeated)[:, -1:]
        torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)
        parents = torch.tensor(parents, device=DEVICE)
        state, tokens = state.reorder(parents), tokens[parents]


@pytest.mark.parametrize(
    ("case", "programs"),
    with_slow(
        [("post-norm", 0), ("llama", 264)],
        [("llama", 0), ("gpt", 264), ("interleaved", 264)],
    ),
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # of NumPy: log(0) is -inf
@torch.no_grad()
def test_rows_at_different_positions_equal_the_forward_pass(case, programs, monkeypatch):
    monkeypatch.setattr("zoo_fast.transformer.kernels.tiles.PROGRAMS", programs)
    short = {"SPLIT": 4, "BLOCK": 4, "SPLITS": {False: (4, 768), True: (4, 528)}}
    for name, value in short.items():  # some splits have no keys
        monkeypatch.setattr(f"zoo_fast.transformer.kernels.tiles.{name}", value)
    decoder, W = make_decoder(case), 2
    memory, lengths = make_memory(decoder, 3), torch.tensor([4, 1, 6], device=DEVICE)
    generator = torch.Generator().manual_seed(4)
    prompts = torch.randint(1, 37, (3, 6), generator=generator).to(DEVICE)
    state = decoder.start(memory, steps=8)
    logits, state = FusedDecoding().process_padded(decoder, prompts, lengths, state, ragged=True)
    last = decoder(prompts, memory)[torch.arange(3), lengths - 1]
    torch.testing.assert_close(logits[:, 0], last, atol=1e-5, rtol=1e-5)

    repeated = Memory(*(part.repeat_interleave(W, dim=0) for part in
                        (memory.states, memory.mask, memory.summary)))  # fmt: skip
    state, rows = state.repeat(W), torch.arange(3 * W)
    tokens = torch.nn.functional.pad(prompts.repeat_interleave(W, dim=0), (0, 2))
    lengths = lengths.repeat_interleave(W)
    for parents in ([1, 0, 2, 2, 5, 4], [0, 0, 3, 2, 4, 5]):
        new = torch.randint(1, 37, (3 * W, 1), generator=generator).to(DEVICE)
        tokens[rows, lengths] = new[:, 0]
        lengths = lengths + 1
        logits, state = decoder.step(new, state)
        expected = decoder(tokens, repeated)[rows, lengths - 1]
        torch.testing.assert_close(logits[:, 0], expected, atol=1e-4, rtol=1e-4)
        parents = torch.tensor(parents, device=DEVICE)
        state, tokens = state.reorder(parents), tokens[parents]


@torch.no_grad()
def test_other_paths_continue_a_fused_state():
    decoder = make_decoder("llama")
    memory = make_memory(decoder, 2)
    tokens = torch.tensor([[1, 5, 7, 2], [3, 9, 4, 4]], device=DEVICE)
    expected = decoder(tokens, memory)
    state = decoder.start(memory, steps=4)
    _, state = decoder.step(tokens[:, :2], state)
    with recording(decoder):
        logits, state = decoder.step(tokens[:, 2:3], state)
    torch.testing.assert_close(logits, expected[:, 2:3], atol=1e-4, rtol=1e-4)
    logits, _ = decoder.step(tokens[:, 3:], state)
    torch.testing.assert_close(logits, expected[:, 3:], atol=1e-4, rtol=1e-4)


def test_reasons_for_the_reference_path(monkeypatch):
    decoder = make_decoder("llama")

    def reason():
        return why_not(FusedDecoding(), decoder, torch.device(DEVICE))

    assert reason() == "gradients are enabled"
    with torch.no_grad():
        assert reason() is None
        handle = decoder.blocks[0].register_forward_hook(lambda *_: None)
        assert reason() == "a part has module hooks or another forward method"
        handle.remove()
        decoder.double()
        assert "the dtype is not" in reason()
        decoder.float()
        decoder.blocks[0].attention.scorers.first.cap = 5.0
        assert reason() == "the scores have a cap"
        decoder.blocks[0].attention.scorers.first.cap = None
        decoder.blocks[0].attention.score_bias = torch.nn.Identity()
        assert reason() == "the attention has a bias that depends on its queries or keys"
        decoder.blocks[0].attention.score_bias = None
        decoder.position.dim = 16
        assert reason() == "position 'rotary' rotates a part of each head only"
        decoder.position.dim = 32
        for dropout in (decoder.dropout, decoder.blocks[0].dropout):
            dropout.p = 0.5
            assert reason() is None
            dropout.train()  # Monte Carlo dropout
            assert "is in training mode" in reason()
            assert not isinstance(decoder.start(make_memory(decoder, 1), steps=2), CachedState)
            dropout.eval()
        decoder.blocks[0].attention.align.dropout.p = 0.5
        decoder.blocks[0].attention.align.dropout.train()
        assert reason() == "a dropout layer is in training mode"
        decoder.blocks[0].attention.align.dropout.eval()
        decoder.blocks[0].attention_scale = LayerScale(8, 1.0).to(DEVICE)
        assert reason() == "the sublayers have a layer scale"
        decoder.blocks[0].attention_scale = None
        decoder.blocks[0].attention.head_dim = 48
        assert reason() == "the width of a head is 48, not a multiple of 32"
        decoder.blocks[0].attention.query_norm = torch.nn.RMSNorm(32, device=DEVICE)
        assert reason() == "queries and keys have a norm"
        decoder.blocks[0].no_position = True
        assert reason() == "the layers differ in their positions"
        activation = decoder.blocks[0].feed_forward.activation
        decoder.blocks[0].feed_forward.activation = "quick-gelu"
        assert reason() == "the kernels do not compute the activation 'quick-gelu'"
        decoder.blocks[0].feed_forward.activation = activation
        norm = decoder.blocks[0].attention_norm
        decoder.blocks[0].attention_norm = RMSNormPlusOne(norm.width, norm.eps).to(DEVICE)
        assert reason() == "the norm is neither RMSNorm nor LayerNorm with weight and bias"
        decoder.blocks[0].attention_norm = norm
        decoder.blocks[0].window = 2
        assert reason() == "a layer has a window"
        decoder.blocks[0].sublayers = "parallel"
        assert reason() == "the sublayers are 'parallel', not 'sequential'"
        decoder.blocks[0].place = "output"
        assert reason() == "the place of the norms is 'output', not 'pre' or 'post'"
        monkeypatch.setenv("ZOO_TRITON", "off")
        assert reason() == "ZOO_TRITON is 'off'"


@torch.no_grad()
def test_a_state_can_be_selected_and_has_the_layout_of_the_reference():
    decoder = make_decoder("post-norm")
    state = decoder.start(make_memory(decoder, 2), steps=4).repeat(2)
    tokens = torch.tensor([[1], [5], [7], [2]], device=DEVICE)
    _, state = decoder.step(tokens, state)
    parents = torch.tensor([1, 1, 3, 2], device=DEVICE)
    keys = state.per_hypothesis["0.keys"]
    state = state.reorder(parents)
    assert torch.equal(state.per_hypothesis["0.keys"], keys[parents])
    items, rows = torch.tensor([1], device=DEVICE), torch.tensor([2, 3], device=DEVICE)
    chosen = select_items(state, items, rows)
    assert torch.equal(chosen.per_hypothesis["0.keys"], keys[parents][2:])
    assert torch.equal(chosen.per_source["mask"], state.per_source["mask"][2:])
    assert chosen.per_hypothesis["at"].tolist() == [1, 1]
