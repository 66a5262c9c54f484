"""Tiles of the decoding kernels, and linear layers computed with them."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

pytest.importorskip("triton")

from zoo_fast.transformer.cached_state import SLOTS
from zoo_fast.transformer.kernels.linear_layers import LayerInput, linear, project_heads
from zoo_fast.transformer.kernels.tiles import (
    PROGRAMS,
    SPLIT,
    attention_tiles,
    fit_attention,
    fit_stages,
    input_parts,
    linear_tiles,
    norm_first,
    uses_library,
)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ROWS = [2, 16, 17, 33, 65, 128, 200]
CASES = {  # outputs, inputs, whether there is a gate
    "narrow": (48, 520, False),
    "narrow, long rows": (32, 1040, False),
    "wide": (1056, 520, False),
    "gated": (96, 520, True),
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("width", [768, 2048, 8192])
def test_stages_fit_the_shared_memory(rows, width):
    tiles = linear_tiles(rows, 2048, width, dtype=torch.bfloat16, paired=True)
    for available in (99_000, 160_000, 226_000):
        fitted = fit_stages(tiles, 2, torch.bfloat16, available)
        stage = 2 * (fitted["BM"] + 2 * fitted["BN"]) * fitted["BK"]
        assert fitted["STAGES"] * stage <= available or fitted["STAGES"] == 1
        assert stage <= available


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("outputs", [1280, 2048, 3072, 4096, 8192])
def test_programs_run_at_the_same_time(rows, outputs):
    tiles = linear_tiles(rows, outputs, 2048, dtype=torch.bfloat16)
    programs = -(-rows // tiles["BM"]) * -(-outputs // tiles["BN"])
    assert programs <= PROGRAMS // 2 or tiles["BN"] == 64


@pytest.mark.parametrize("rows", [1, 4, 8, 32, 128])
@pytest.mark.parametrize(("groups", "heads", "width"), [(12, 1, 64), (8, 4, 64), (2, 7, 96)])
@pytest.mark.parametrize("cached", [True, False])
def test_programs_of_attention_read_all_keys(rows, groups, heads, width, cached):
    for keys in (1, 64, 256, 257, 512, 513, 2048, 16_384):
        tiles = attention_tiles(
            rows, groups, heads, keys, width, dtype=torch.bfloat16, cached=cached
        )
        assert tiles["G"] * tiles["SHARE"] == heads
        assert tiles["SPLITS"] == 1 or (keys > SPLIT and tiles["SPLITS"] <= 64)
        assert tiles["BS"] * tiles["SPLITS"] >= keys or not tiles["STATIC"]
        for name in ("BS", "BG", "num_warps"):
            assert tiles[name].bit_count() == 1, name


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="torch finds no CUDA device")
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    ("outputs", "inputs", "gated"),
    [(768, 768, False), (3072, 768, False), (2048, 8192, False), (8192, 2048, True)],
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_products_of_published_sizes(rows, outputs, inputs, gated, dtype):
    check_linear(rows, outputs, inputs, gated, dtype)


@pytest.mark.parametrize("rows", [5, 17, 65])
@pytest.mark.parametrize("case", CASES)
def test_products_with_the_tiles_of_wide_layers(case, rows, monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    # The interpreter does not compute products of bfloat16.
    check_linear(rows, *CASES[case], torch.float16)


@pytest.mark.parametrize(
    "rows", [3, 11, 17, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 8))]
)
@pytest.mark.parametrize("case", [*CASES, "short rows"])
def test_products_of_float32(case, rows, monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    check_linear(rows, *CASES.get(case, (36, 100, True)), torch.float32)


@pytest.mark.parametrize("matrices", [1, 2])
@pytest.mark.parametrize(("outputs", "inputs"), [(512, 512), (3072, 768), (128_256, 2048)])
def test_a_thread_sums_few_products_of_float32(outputs, inputs, matrices):
    for rows in range(2, 9):
        tiles = linear_tiles(rows, outputs, inputs, dtype=torch.float32, paired=matrices == 2)
        assert tiles["BM"] <= 8
        sums = tiles["BM"] * tiles["BN"] * tiles["BK"] * matrices
        assert sums <= 128 * 32 * tiles["num_warps"]  # of 255 registers


@pytest.mark.parametrize(
    ("outputs", "inputs", "parts"),
    [
        (768, 3072, 6),
        (768, 768, 3),
        (1024, 4096, 8),
        (1024, 8192, 4),
        (1024, 1000, 1),
        (1280, 5120, 2),
        (2048, 8192, 2),
        (4096, 4096, 1),  # enough programs
        (512, 2048, 1),  # no kernel of a norm follows
    ],
)
def test_inputs_of_narrow_layers_are_divided(outputs, inputs, parts):
    for rows in range(2, 17):
        assert input_parts(rows, outputs, inputs, torch.bfloat16) == parts
    for rows, dtype in ((1, torch.bfloat16), (17, torch.bfloat16), (4, torch.float32)):
        assert input_parts(rows, outputs, inputs, dtype) == 1


@pytest.mark.parametrize(
    ("outputs", "inputs", "form", "first"),
    [
        (768, 3072, {}, 17),
        (4096, 14_336, {}, 9),
        (4096, 768, {"paired": True}, 9),
        (32_768, 512, {"paired": True}, 9),
        (3072, 768, {"half_head": 32}, 9),
        (3072, 768, {"half_head": 12}, None),  # not a multiple of eight
        (3072, 60, {}, None),  # loaded at once
        (32_768, 512, {}, None),  # enough programs
    ],
)
def test_each_warp_has_a_slice_of_the_inputs(outputs, inputs, form, first):
    sliced = []
    for rows in range(2, 200):
        if uses_library(rows, outputs, torch.float32, paired=bool(form)):
            continue
        tiles = linear_tiles(rows, outputs, inputs, dtype=torch.float32, **form)
        if tiles["SLICES"] > 1:
            sliced.append(rows)
            assert norm_first(rows, inputs, torch.float32)  # which these products do not compute
            assert tiles["SLICES"] == tiles["num_warps"]
            assert tiles["BK"] // tiles["SLICES"] >= 32
            assert tiles["BM"] >= 16
            assert tiles["BN"] >= 8
    assert sliced == ([] if first is None else list(range(first, 33)))


@pytest.mark.parametrize(("width", "needed"), [(64, 81_920), (128, 155_648), (256, 303_104)])
def test_grouped_attention_fits_the_shared_memory(width, needed):
    """Triton 3.6 allocates the needed bytes for these tiles, on a device of capability 9.0."""
    tiles = attention_tiles(1, 8, 4, 1024, width, dtype=torch.float32, cached=True)
    assert fit_attention(tiles, width, torch.float32, needed) == tiles
    fitted = fit_attention(tiles, width, torch.float32, needed - 1)
    assert fitted == tiles | {"num_stages": tiles["num_stages"] - 1}
    small = fit_attention(tiles, width, torch.float32, 70_000)
    # 90,112 bytes with a width of 128, 64 keys and two stages; 67,584 with 256, 16 and two
    assert (small["BS"], small["num_stages"]) == ({64: 64, 128: 32, 256: 16}[width], 2)


@pytest.mark.parametrize(("heads", "rows"), [(33, 12), (4, 20)])
@torch.no_grad()
def test_heads_with_sliced_inputs(heads, rows, monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    torch.manual_seed(0)
    D, K = 32, 300
    layers = {
        name: nn.Linear(K, count * D, device=DEVICE)
        for name, count in (("query", heads), ("key", 1), ("value", 1))
    }
    tiles = linear_tiles(rows, (heads + 2) * D, K, dtype=torch.float32, half_head=D // 2)
    assert tiles["SLICES"] > 1
    caches = {f"0.{name}": torch.zeros(rows, 1, 1, D, device=DEVICE) for name in ("keys", "values")}
    at = torch.zeros(rows, dtype=torch.long, device=DEVICE)
    state = SimpleNamespace(rows={"at": at, SLOTS: at[:, None]}, tables={}, history=caches)
    attention = SimpleNamespace(heads=heads, kv_heads=1, head_dim=D, **layers)
    x = torch.randn(rows, K, device=DEVICE)
    found = project_heads(LayerInput(x, None, None), state, attention, 0, interleaved=False)
    for actual, name in zip((found, *caches.values()), layers, strict=True):
        torch.testing.assert_close(actual.flatten(1), layers[name](x), atol=1e-5, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="torch finds no CUDA device")
@pytest.mark.parametrize(("heads", "rows"), [(33, 12), (4, 20)])
def test_heads_with_sliced_inputs_on_a_gpu(heads, rows, monkeypatch):
    test_heads_with_sliced_inputs(heads, rows, monkeypatch)


@torch.no_grad()
def check_linear(rows, outputs, inputs, gated, dtype):
    """Compare with float32 products of the same numbers."""
    torch.manual_seed(0)
    options = {"device": DEVICE, "dtype": dtype}
    layer, gate = (nn.Linear(inputs, outputs, **options) for _ in range(2))
    x, residual = torch.randn(rows, inputs, **options), torch.randn(rows, outputs, **options)
    found = linear(
        LayerInput(x, None, None), layer, residual, activation=2, gate=gate if gated else None
    )
    layer, gate = layer.float(), gate.float()
    y = layer(x.float())
    expected = nn.functional.silu(gate(x.float())) * y if gated else nn.functional.silu(y)
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(
        found.float(), expected + residual.float(), atol=tolerance, rtol=tolerance
    )
