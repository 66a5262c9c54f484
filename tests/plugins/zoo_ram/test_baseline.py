import torch

from zoo_ram.baseline import Baseline


def test_the_relu_keeps_the_baseline_nonnegative():
    linear, rectified = Baseline(1, "linear"), Baseline(1, "relu")
    state = {"weight": torch.tensor([[2.0]]), "bias": torch.tensor([-1.0])}
    states = torch.tensor([[0.0], [1.0]])
    for baseline, expected in ((linear, [-1.0, 1.0]), (rectified, [0.0, 1.0])):
        baseline.load_state_dict(state)
        assert baseline(states).tolist() == expected


def test_the_bias_of_the_relu_starts_between_the_rewards():
    assert Baseline(3, "relu").bias.item() == 0.5
    torch.manual_seed(0)
    ours = Baseline(3, "linear")
    torch.manual_seed(0)
    assert torch.equal(ours.bias, torch.nn.Linear(3, 1).bias)
