"""The objective `joint-ctc` compared with `torch.nn.CTCLoss` and `cross_entropy` of torch.

Kim et al. 2017 mix two log-probabilities of the whole utterance. The reference sums torch's losses
per utterance, mixes them with the same weight and averages over the batch.
"""

import torch

import zoo
from zoo import Outputs

B, S, T, V = 8, 60, 20, 12
WEIGHTS = (0.1, 0.2, 0.3, 0.5, 0.9)


def make_outputs() -> Outputs:
    """Return random outputs of a model with two heads; utterances have unequal lengths."""
    torch.manual_seed(0)
    lengths, frames = torch.randint(5, T + 1, (B, 1)), torch.randint(2 * T, S + 1, (B, 1))
    mask = torch.arange(T) < lengths
    targets = torch.randint(1, V, (B, T)).where(mask, 0)
    frame_mask = torch.arange(S) < frames
    ctc = Outputs(torch.randn(B, S, V), targets, frame_mask, target_mask=mask)
    return Outputs(torch.randn(B, T, V), targets, mask, auxiliary={"ctc": ctc})


def reference(outputs: Outputs, weight: float) -> float:
    """Compute the loss with torch alone."""
    part = outputs.auxiliary["ctc"]
    ctc = torch.nn.CTCLoss(reduction="none")(
        part.logits.log_softmax(dim=-1).transpose(0, 1),
        part.targets,
        part.mask.sum(dim=1),
        outputs.mask.sum(dim=1),
    )
    attention = torch.nn.functional.cross_entropy(
        outputs.logits.transpose(1, 2), outputs.targets, ignore_index=0, reduction="none"
    ).sum(dim=1)
    return float((weight * ctc + (1 - weight) * attention).mean())


def main() -> None:
    outputs = make_outputs()
    print(f"{'weight':>8}{'joint-ctc':>12}{'torch':>12}")
    for weight in WEIGHTS:
        objective = zoo.objective(
            {
                "zoo": 1,
                "name": "joint",
                "extends": "ctc-attention-tiny",
                "objective": {"weight": weight},
            }
        )
        print(f"{weight:>8}{objective(outputs):>12.5f}{reference(outputs, weight):>12.5f}")


if __name__ == "__main__":
    main()
