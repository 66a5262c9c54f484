"""Attention of one query per row to a cache, for each way in which the keys are split."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

pytest.importorskip("triton")

from zoo_fast.transformer.cached_state import SLOTS, CachedState
from zoo_fast.transformer.kernels.decode_step import _attend
from zoo_fast.transformer.kernels.tiles import attention_tiles

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CASES = {  # rows, heads of keys, query heads of each, width of a head, keys
    "one program": (2, 1, 1, 32, 40),
    "splits of few programs": (2, 1, 2, 32, 300),
    "splits of one head": (2, 1, 1, 32, 530),
    "splits of several heads": (1, 2, 2, 32, 530),
}
ROWS = [1, 16]
HEADS = [(12, 1, 64), (8, 4, 64), (2, 4, 128), (2, 1, 128), (3, 7, 96)]
LENGTHS = [257, 513, 5000]


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # of NumPy: log(0) is -inf
@pytest.mark.parametrize("case", CASES)
def test_attention_to_a_cache(case, monkeypatch):
    monkeypatch.setenv("ZOO_TRITON", "interpret")
    check_attention(*CASES[case], torch.float32)


def test_cases_have_different_tiles():
    found = {
        (tiles["STATIC"], tiles["SPLITS"] > 1, tiles["G"] > 1)
        for R, groups, G, D, S in CASES.values()
        for tiles in [attention_tiles(R, groups, G, S, D, dtype=torch.float32, cached=True)]
    }
    assert len(found) == len(CASES)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="torch finds no CUDA device")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("groups", "heads", "width"), HEADS)
@pytest.mark.parametrize("rows", ROWS)
def test_attention_of_published_sizes(rows, groups, heads, width, dtype):
    for keys in LENGTHS:
        check_attention(rows, groups, heads, width, keys, dtype)


@torch.no_grad()
def check_attention(R, groups, G, D, S, dtype):
    """Compare with torch's attention to the keys up to the position of each row."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape):
        return torch.randn(*shape, generator=generator).to(DEVICE, dtype)

    queries, keys, values = (
        random(R, groups * G, D),
        random(R, groups, S, D),
        random(R, groups, S, D),
    )
    at = torch.randint(S // 2, S, (R,), generator=generator).to(DEVICE)
    at[0] = S - 1
    slots = torch.zeros(R, S, dtype=torch.int16, device=DEVICE)
    mask = torch.ones(R, 1, dtype=torch.bool, device=DEVICE)
    state = CachedState(rows={"at": at, SLOTS: slots}, shared={"mask": mask})
    attention = SimpleNamespace(scorers=SimpleNamespace(first=SimpleNamespace(scale=D**-0.5)))
    found = _attend(attention, queries, keys, values, state, cached=True)
    attended = torch.arange(S, device=DEVICE) <= at[:, None]
    expected = scaled_dot_product_attention(
        queries[:, :, None].float(),
        keys.repeat_interleave(G, dim=1).float(),
        values.repeat_interleave(G, dim=1).float(),
        attn_mask=attended[:, None, None],
    )
    tolerance = 1e-2 if dtype == torch.bfloat16 else 1e-4
    torch.testing.assert_close(
        found.float(),
        expected.flatten(1),
        atol=tolerance,
        rtol=tolerance,
        msg=lambda m: f"{S}: {m}",
    )
