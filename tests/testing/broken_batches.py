"""Models and embeddings with a wrong declaration of their inputs, and the valid ones."""

from zoo import Batch
from zoo.plugin import BatchSchema, TensorSchema
from zoo_seq2seq.seq2seq import Seq2Seq
from zoo_tokens.token import Token
from zoo_vision.classifier import Classifier


class DeclaresNoBatch(Seq2Seq):
    def batch_schema(self, *, inference: bool = False) -> BatchSchema | None:
        return None


class ExampleDoesNotFit(Seq2Seq):
    def batch_schema(self, *, inference: bool = False) -> BatchSchema | None:
        return {**super().batch_schema(inference=inference), "target": TensorSchema(("B",))}


class ChecksNothing(Seq2Seq):
    def check_batch(self, batch: Batch, *, inference: bool = False) -> None: ...


class PadsWithUnknownToken(Seq2Seq):
    def batch_schema(self, *, inference: bool = False) -> BatchSchema | None:
        schema = super().batch_schema(inference=inference)
        return {**schema, "target": schema["target"]._replace(pad=-1)}


class PadsWithValidToken(Seq2Seq):
    def batch_schema(self, *, inference: bool = False) -> BatchSchema | None:
        schema = super().batch_schema(inference=inference)
        return {**schema, "source": schema["source"]._replace(pad=3)}


class RequiresTargets(Classifier):
    loss_only = ()


class DependsOnItsTargets(Seq2Seq):
    loss_only = ("target",)


class ThreeDimensionalTokens(Token):
    def input_schema(self) -> TensorSchema:
        return TensorSchema(("B", "S", 4), "integer", below=self.vocab)


# (law, broken component, valid component)
BROKEN = [
    ("batch-schema", DeclaresNoBatch, Seq2Seq),
    ("batch-schema", ExampleDoesNotFit, Seq2Seq),
    ("batch-schema", ChecksNothing, Seq2Seq),
    ("batch-schema", PadsWithUnknownToken, Seq2Seq),
    ("calls-without-targets", RequiresTargets, Classifier),
    ("calls-without-targets", DependsOnItsTargets, Classifier),
    ("padding-invariance", PadsWithValidToken, Seq2Seq),
    ("input-schema", ThreeDimensionalTokens, Token),
]
