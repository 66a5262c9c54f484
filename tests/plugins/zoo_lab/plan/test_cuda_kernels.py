"""Models of CUDA kernels: shapes and dtypes of torch, and the bytes saved for the backward pass."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from zoo_lab.plan.cuda_kernels import CudaKernels
from zoo_lab.plan.memory_tracker import MemoryTracker

B, H, T, S, D = 2, 4, 8, 16, 32


def _saved(function, *shapes):
    """Return the bytes that are live after a function of leaves, without them, and its output."""
    with FakeTensorMode(), MemoryTracker() as tracker:
        leaves = [torch.empty(shape, requires_grad=True) for shape in shapes]
        before = sum(tracker.live.values())
        with CudaKernels():
            output = function(*leaves)
        return sum(tracker.live.values()) - before, output


def test_attention_saves_its_output_and_a_number_per_query():
    saved, output = _saved(F.scaled_dot_product_attention, (B, H, T, D), (B, H, S, D), (B, H, S, D))
    assert output.shape == (B, H, T, D)
    assert saved == 4 * B * H * T * D + max(512, 4 * B * H * T)


def test_a_mask_of_attention_is_converted_to_the_dtype_of_the_query():
    mask_shape = (B, 1, T, S)

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=torch.empty(mask_shape).bool())

    saved, _ = _saved(attend, (B, H, T, D), (B, H, S, D), (B, H, S, D))
    assert saved == 4 * (B * H * T * D + B * T * S) + 512


def test_dropout_saves_a_mask_of_bytes():
    saved, _ = _saved(lambda x: F.dropout(x, 0.1), (1024,))
    assert saved == 4 * 1024 + 1024
    assert _saved(lambda x: F.dropout(x, 0.1, training=False), (1024,))[0] == 0


def test_a_fused_lstm_cell_saves_one_buffer():
    def run(x, h, c, *weights):
        return torch.lstm_cell(x, (h, c), *weights)

    states, weights = [(B, 128)] * 3, [(512, 128)] * 2 + [(512,)] * 2
    saved, (h, c) = _saved(run, *states, *weights)
    assert h.shape == c.shape == (B, 128)
    assert saved == 4 * B * 128 * (2 * 4 + 2 + 4)  # gates of input and state, h and c, buffer


def test_a_fused_gru_cell_saves_one_buffer():
    weights = [(384, 128)] * 2 + [(384,)] * 2
    saved, h = _saved(torch.gru_cell, (B, 128), (B, 128), *weights)
    assert h.shape == (B, 128)
    assert saved == 4 * B * 128 * (2 * 3 + 1 + 5)


@pytest.mark.parametrize(("kernel", "gates"), [(torch.gru, 3), (torch.lstm, 4)])
def test_packed_layers_have_the_shapes_of_torch(kernel, gates):
    def run(inputs, *weights):
        packed = pack_padded_sequence(
            inputs, torch.empty(B).long(), batch_first=True, enforce_sorted=False
        )
        zeros = torch.empty(2, B, 8)
        state = (zeros, zeros) if kernel is torch.lstm else zeros
        outputs, *ends = kernel(
            packed.data, packed.batch_sizes, state, [*weights], True, 1, 0.0, True, True
        )
        padded, lengths = pad_packed_sequence(packed._replace(data=outputs), batch_first=True)
        padded.sum().backward()
        assert inputs.grad.shape == inputs.shape
        assert lengths.shape == (B,)
        return padded, ends

    weights = [(gates * 8, D), (gates * 8, 8), (gates * 8,), (gates * 8,)] * 2
    _, (padded, ends) = _saved(run, (B, T, D), *weights)
    assert padded.shape == (B, T, 16)
    assert [end.shape for end in ends] == [(2, B, 8)] * len(ends)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("kernel", "gates"), [(torch.gru, 3), (torch.lstm, 4)])
def test_layers_of_a_batch_have_the_shapes_of_torch(kernel, gates, batch_first):
    def run(inputs, *weights):
        zeros = torch.empty(1, B, 8)
        state = (zeros, zeros) if kernel is torch.lstm else zeros
        return kernel(inputs, state, [*weights], True, 1, 0.0, True, False, batch_first)

    shape = (B, T, D) if batch_first else (T, B, D)
    shapes = [shape, (gates * 8, D), (gates * 8, 8), (gates * 8,), (gates * 8,)]
    expected = [each.shape for each in run(*map(torch.zeros, shapes))]
    assert [each.shape for each in _saved(run, *shapes)[1]] == expected


@pytest.mark.parametrize("packed", [True, False])
def test_a_layer_of_cudnn_saves_buffers_and_a_copy_of_its_weights(packed):
    def run(data, *weights):
        sizes, state = torch.empty(T).long(), torch.empty(1, B, 128)
        if packed:
            return torch.gru(data, sizes, state, [*weights], True, 1, 0.0, True, False)
        return torch.gru(data, state, [*weights], True, 1, 0.0, True, False, True)

    shape = (T * B, 128) if packed else (B, T, 128)
    saved, (outputs, _) = _saved(run, shape, (384, 128), (384, 128), (384,), (384,))
    weights = 2 * 384 * 128 + 2 * 384
    assert outputs.shape == shape
    ends = 0 if packed else B * 128  # without a call that packs the batch is not known
    assert saved == 4 * (T * B * 128 * (1 + 6) + weights + ends)


def test_autocast_computes_norms_in_float32_as_on_cuda():
    with FakeTensorMode(), CudaKernels(), torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = nn.Linear(D, D)(torch.empty(B, D))
        assert hidden.dtype is torch.bfloat16
        assert F.layer_norm(hidden, (D,)).dtype is torch.float32
        assert hidden.softmax(dim=-1).dtype is torch.float32
        assert F.relu(hidden).dtype is torch.bfloat16
        heads = hidden.view(B, 1, 1, D).float()
        attended = F.scaled_dot_product_attention(heads, heads, heads)
        assert attended.dtype is torch.bfloat16
