"""Messages about batches that do not fit the schema of a model."""

import pytest
import torch

import zoo
import zoo_tokens.token
from zoo.interfaces.batch_schema import check_batch
from zoo.plugin import TensorSchema
from zoo_seq2seq.seq2seq import Seq2Seq

SOURCE, TARGET = torch.tensor([[3, 4, 5], [6, 7, 3]]), torch.tensor([[1, 5, 3, 2], [1, 4, 2, 0]])
BATCH = {"source": SOURCE, "target": TARGET}


@pytest.fixture(scope="module")
def model():
    return zoo.compose("bahdanau-reversal").eval()


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (
            {"source": SOURCE},
            (
                "'target' is missing; expected a tensor [B, T] with B = 2 as in 'source', and the "
                "batch has 'source'"
            ),
        ),
        ({**BATCH, "source": SOURCE + 10}, "'source' contains 17, but expected IDs from 0 to 15"),
        ({**BATCH, "target": -TARGET}, "'target' contains -5, but expected IDs from 0 to 15"),
        (
            {**BATCH, "target": TARGET[:1]},
            "'target' has shape [1, 4], but expected [B, T] with B = 2 as in 'source'",
        ),
        (
            {**BATCH, "source": SOURCE.float()},
            "'source' has dtype torch.float32 and shape [2, 3], but expected integer values",
        ),
        (
            {**BATCH, "source": SOURCE.to(torch.complex64)},
            "'source' has dtype torch.complex64 and shape [2, 3], but expected integer values",
        ),
        (
            {**BATCH, "source": SOURCE.to(torch.uint8)},
            "'source' has dtype torch.uint8, but expected torch.int64 or torch.int32",
        ),
        (
            {**BATCH, "source": SOURCE.to_sparse()},
            "'source' has layout torch.sparse_coo, but expected a dense tensor",
        ),
        (
            SOURCE,
            (
                "model 'seq2seq' takes a batch, a mapping of names to tensors ('source' [B, S], "
                "'target' [B, T]), but got a tensor [2, 3]"
            ),
        ),
        (
            {**BATCH, "sorce": SOURCE},
            (
                "'sorce' [2, 3] is not one of its keys: 'source' [B, S], 'target' [B, T]; did you "
                "mean 'source'? (available: source, target)"
            ),
        ),
        (
            {**BATCH, "source": SOURCE.tolist()},
            (
                "'source' is list, not a tensor; expected a tensor [B, S], and the batch has "
                "'source', 'target'"
            ),
        ),
    ],
)
def test_a_wrong_batch_is_reported_in_one_sentence(model, batch, message):
    with pytest.raises(zoo.ZooError) as caught:
        model(batch)
    text = str(caught.value)
    assert "model 'seq2seq'" in text
    shape = f" (shape {list(SOURCE.shape)})" if "'source' contains" in message else ""
    assert text.replace(" in the batch of model 'seq2seq'", "").startswith(message + shape)


def test_generation_needs_the_source_only(model):
    sampler = zoo.load_spec("bahdanau-reversal").sections.sampler.build()
    assert model.generate({"source": SOURCE}, sampler, max_length=3).tokens.shape[0] == 2
    with pytest.raises(zoo.ZooError, match=r"'source' in the batch.*is missing"):
        model.generate({"target": TARGET}, sampler, max_length=3)


def test_values_on_other_devices_are_not_read():
    schema = {"source": TensorSchema(("B", "S"), "integer", below=4)}
    check_batch(schema, {"source": SOURCE.to("meta")}, "model")
    with pytest.raises(zoo.ZooError, match="contains 7"):
        check_batch(schema, {"source": SOURCE}, "model")


def test_a_compiled_model_has_no_check_in_its_graph(model):
    torch.compiler.reset()
    graphs = []

    def record(graph, inputs):
        graphs.append(str(graph.code))
        return graph

    compiled = torch.compile(model, backend=record, fullgraph=True)
    torch.testing.assert_close(compiled(BATCH).logits, model(BATCH).logits)
    assert len(graphs) == 1
    assert "aminmax" not in graphs[0]


def test_token_and_segment_ids_have_limits_of_their_own():
    embedding = zoo_tokens.token.Token(vocab=9, dim=4, segments=2)
    schema = {"source": embedding.input_schema()}
    pairs = torch.stack([SOURCE, SOURCE % 2], dim=-1)
    check_batch(schema, {"source": pairs}, "model")
    with pytest.raises(zoo.ZooError, match="contains 7, but expected IDs from 0 to 1"):
        check_batch(schema, {"source": pairs.flip(-1)}, "model")
    with pytest.raises(zoo.ZooError, match=r"\[2, 3, 3\], but expected \[B, S\]"):
        check_batch(schema, {"source": torch.zeros(2, 3, 3).long()}, "model")


class UndeclaredModel(Seq2Seq):
    def batch_schema(self, *, inference=False):
        return None


def test_what_is_not_declared_is_not_checked():
    check_batch({"source": TensorSchema()}, {"source": SOURCE + 99}, "model")
    with pytest.raises(zoo.ZooError, match=r"'target'.*with B = 2 as in 'source'"):
        check_batch(
            {"source": TensorSchema(), "target": TensorSchema()},
            {"source": SOURCE, "target": SOURCE[0]},
            "model",
        )
    UndeclaredModel.check_batch(object.__new__(UndeclaredModel), SOURCE)
