"""On a CUDA device: batches are sent while the device still works."""

import pytest
import torch
from memory_kit import limited_memory

from zoo_fast.training.early_transfer import MIN_BYTES, EarlyTransfer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device"),
]
DEVICE = torch.device("cuda")


def test_each_step_reads_its_own_batch():
    transfer, numbers = EarlyTransfer(DEVICE), MIN_BYTES // 4
    generator = torch.Generator().manual_seed(0)
    expected, found = [], []
    for step in range(12):
        sizes = numbers * (1 + step // 4), numbers + step  # buffers grow
        batch = {
            "a": torch.randint(0, 99, (sizes[0],), generator=generator, dtype=torch.int32),
            "b": torch.randn(sizes[1], generator=generator),
            "flags": torch.tensor([True, False]),
        }
        expected.append(torch.stack([batch["a"].double().sum(), batch["b"].double().sum()]))
        sent = transfer.start({key: tensor.pin_memory() for key, tensor in batch.items()})
        assert list(sent) == list(batch)
        assert [tensor.device.type for tensor in sent.values()] == ["cuda", "cuda", "cpu"]
        torch.cuda._sleep(3_000_000)  # later batches arrive before the step reads its own
        found.append(torch.stack([sent["a"].double().sum(), sent["b"].double().sum()]))
        sent["a"].zero_()
        transfer.end()
    torch.testing.assert_close(torch.stack(found).cpu(), torch.stack(expected))


def test_other_tensors_stay_where_they_are():
    batch = {
        "small": torch.zeros(4).pin_memory(),
        "not pinned": torch.zeros(MIN_BYTES),
        "turned": torch.zeros(MIN_BYTES // 4, 2).pin_memory().T,
        "on the device": torch.zeros(MIN_BYTES, device=DEVICE),
    }
    sent = EarlyTransfer(DEVICE).start(batch)
    assert all(sent[key] is tensor for key, tensor in batch.items())


def test_without_memory_for_buffers_the_step_copies():
    batch = {"a": torch.zeros(2**28, dtype=torch.uint8).pin_memory()}
    transfer = EarlyTransfer(DEVICE)
    with limited_memory(2**20):
        for _ in range(2):
            assert transfer.start(batch)["a"] is batch["a"]
            transfer.end()
