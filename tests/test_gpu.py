"""On a CUDA device: all laws, and all tiny specs in float32, in bfloat16 and compiled.

Tolerances: float32 logits within 1e-4 of the CPU, bfloat16 within 5 % of the largest logit.
"""

import pytest
import torch

import zoo
from zoo.registry.component_registry import default_registry
from zoo.testing import cases

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device"),
]

TINY = sorted(name for name in default_registry().specs if name.endswith(("-tiny", "-reversal")))


@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS, but there was no current CUDA")
@pytest.mark.parametrize("case", cases() if torch.cuda.is_available() else [], ids=str)
def test_component_satisfies_the_law_on_the_gpu(case):
    if case.config.kind == "model":
        case.run()  # compares the devices itself
        return
    with torch.device("cuda"):
        case.run()


def _to_device(batch, device):
    return {key: value.to(device) for key, value in batch.items()}


@pytest.fixture(autouse=True)
def full_float32(monkeypatch):
    """Disable TF32, which rounds the inputs of convolutions."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture(params=TINY)
def pair(request):
    model = zoo.compose(request.param).eval()
    batch = model.example(4, 8, torch.Generator().manual_seed(0))
    with torch.no_grad():
        return model, batch, model(batch).logits


def test_float32_logits_equal_those_of_the_cpu(pair):
    model, batch, expected = pair
    with torch.no_grad():
        actual = model.to("cuda")(_to_device(batch, "cuda")).logits.cpu()
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)


def test_bfloat16_logits_are_close_to_float32(pair, request):
    if "luo-tiny" in request.node.name:
        pytest.skip("a rounded probability can change a decision to emit, and all later states")
    model, batch, expected = pair
    on_gpu = {k: v.to("cuda", torch.bfloat16) if v.is_floating_point() else v.to("cuda")
             for k, v in batch.items()}  # fmt: skip
    with torch.no_grad():
        actual = model.to("cuda", torch.bfloat16)(on_gpu).logits.float().cpu()
    assert (actual - expected).abs().max() <= 0.05 * expected.abs().max()


@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")
@pytest.mark.filterwarnings(r"ignore:\s*Online softmax is disabled:UserWarning")
def test_a_tiny_spec_compiles_without_graph_breaks(pair):
    model, batch, expected = pair
    torch.compiler.reset()
    compiled = torch.compile(model.to("cuda"), fullgraph=True)
    with torch.no_grad():
        actual = compiled(_to_device(batch, "cuda")).logits.cpu()
    torch.testing.assert_close(actual, expected, atol=1e-3, rtol=1e-3)


def test_a_backward_pass_gives_finite_gradients(pair):
    model, batch, _ = pair
    model.to("cuda").train()
    logits = model(_to_device(batch, "cuda")).logits
    logits.float().square().mean().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["draw-tiny", "ram-tiny"])
def test_a_stochastic_model_trains_without_synchronising(name, dtype):
    model = zoo.compose(name).to("cuda", dtype).train()
    objective = zoo.objective(name).to("cuda")
    batch = _to_device(model.example(4, 8, torch.Generator().manual_seed(0)), "cuda")
    losses = []
    try:
        torch.cuda.set_sync_debug_mode("error")
        for _ in range(2):
            torch.manual_seed(4)
            loss = objective(model(batch))
            loss.backward()
            losses.append(loss.detach())
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(*losses)
