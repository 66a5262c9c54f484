from zoo.testing.tiny import TinyAlignment
from zoo_alignment.soft import Soft
from zoo_fast.attention.softmax_dropout import softmax_dropout, why_not_softmax


class Sharpened(Soft):
    """A softmax of other scores."""

    name = "sharpened"

    def forward(self, scores, mask=None, context=None):
        return super().forward(2 * scores, mask, context)


def test_soft_has_dropout_in_training_only():
    soft = Soft(dropout=0.25)

    assert why_not_softmax(soft) is None
    assert softmax_dropout(soft) == 0.25
    assert softmax_dropout(soft.eval()) == 0.0
    soft.dropout.train()  # Monte Carlo dropout
    assert softmax_dropout(soft) == 0.25


def test_subclasses_and_other_classes_use_the_reference_path():
    for align in (Sharpened(), TinyAlignment()):
        assert softmax_dropout(align) is None
        assert why_not_softmax(align) == f"alignment '{align.name}' is not known as a softmax"


def test_a_softmax_with_a_sink_uses_the_reference_path():
    assert softmax_dropout(Soft(sink=True)) is None
    assert why_not_softmax(Soft(sink=True)) == "the softmax has a sink"
