"""Number of parameters of each published spec compared with that of its reference.

A reference is the authors' weights, the library that distributes them, or the figure in the paper.
Where the numbers differ, the difference is explained; a test checks it exactly.

    python lab/benchmarks/parameters.py
"""

from dataclasses import dataclass

import zoo
from zoo.registry.component_registry import default_registry


@dataclass(frozen=True)
class Reference:
    """Parameters of a reference; the spec has ``difference`` more of them, for the ``reason``."""

    parameters: int
    source: str
    difference: int = 0
    reason: str = ""


REFERENCES = {
    "bert-base": Reference(109_514_298, "transformers, BertForMaskedLM"),
    "elmo-2018": Reference(
        93_600_864,
        "released weights",
        793_471 * (512 + 1),
        "the softmax over 793,471 words is not part of the released weights",
    ),
    "gat-cora": Reference(92_391, "authors' weights"),
    "gat-ppi": Reference(
        2_899_521 + 1024,
        "authors' code",
        -1024,
        "the linear residual has no bias, because the layer has one",
    ),
    "gpt2-small": Reference(124_439_808, "transformers, GPT2LMHeadModel"),
    "llama-7b": Reference(6_738_415_616, "transformers, LlamaForCausalLM"),
    "minilm-l6": Reference(
        22_713_216, "transformers, BertModel", -(384 * 384 + 384), "mean pooling needs no pooler"
    ),
    "skip-gram-2013": Reference(2 * 3_000_000 * 300, "released vectors, input and output tables"),
    "stories260k": Reference(260_032, "llama2.c, stories260K"),
    "sutskever-2014": Reference(
        384_000_000, "paper, section 3.4", 144_000, "biases, which the figure leaves out"
    ),
    "transformer-base": Reference(
        65_000_000,
        "paper, table 3",
        37_000 * 512 + 44_138_496 - 65_000_000,
        "37,000 entries as in section 5.1; table 3 agrees with 41,000, which give 65.1 M",
    ),
    "transformer-big": Reference(
        213_000_000,
        "paper, table 3",
        37_000 * 1024 + 176_357_376 - 213_000_000,
        "37,000 entries as in section 5.1; 213 M is the size with 35,800",
    ),
    "vit-base": Reference(86_567_656, "transformers, ViTForImageClassification"),
    "wav2vec2-base": Reference(
        94_396_320,
        "transformers, Wav2Vec2ForCTC",
        -768,
        "no vector for masked frames, which only pretraining uses",
    ),
}


def main() -> None:
    print(f"{'spec':<24}{'zoo':>15}{'reference':>15}{'difference':>13}  source and reason")
    for name in sorted(default_registry().specs):
        if name.endswith(("-tiny", "-reversal")):
            continue
        parameters = zoo.check(name).parameters
        reference = REFERENCES.get(name)
        if reference is None:
            print(f"{name:<24}{parameters:>15,}{'':>15}{'':>13}  no reference")
            continue
        why = "; ".join(filter(None, (reference.source, reference.reason)))
        difference = parameters - reference.parameters
        print(f"{name:<24}{parameters:>15,}{reference.parameters:>15,}{difference:>+13,}  {why}")


if __name__ == "__main__":
    main()
