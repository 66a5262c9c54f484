"""Benchmark 'greedy-generation-cpu'."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field

from zoo_lab.bench.benchmark import Bound
from zoo_lab.benchmarks.transformer.seq2seq_generation import Seq2SeqGeneration, TransformerSize


class GreedyGenerationCpu(Seq2SeqGeneration):
    """Greedy generation on the CPU in float32, compared with transformers and CTranslate2.

    The target is 1.0 against CTranslate2 and 1.5 against `generate` of transformers, with all
    cores.

    Args:
        batch: number of items.
        length: number of generated tokens.
        source_length: length of the sources.
        layers: number of blocks of encoder and decoder.
        dim: width of the states.
        hidden: width of the feed-forward networks.
        heads: number of heads.
        vocab: vocabulary size.
    """

    name: ClassVar[str] = "greedy-generation-cpu"
    device_type: ClassVar[str] = "cpu"
    target: ClassVar[float | None] = 1.0
    peer_targets: ClassVar[Mapping[str, float]] = {"transformers": 1.5, "ctranslate2": 1.0}
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"batch": (1, 8, 32)}
    sampler_spec: ClassVar[Mapping[str, Any]] = {"type": "greedy"}
    packages: ClassVar[Sequence[str]] = ("transformers", "ctranslate2")

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 8,
        length: Annotated[int, Field(ge=1)] = 64,
        size: TransformerSize,
    ) -> None:
        super().__init__(batch=batch, length=length, size=size)

    def bound(self) -> Bound:
        half_precision = super().bound()
        return half_precision._replace(bytes=2 * half_precision.bytes)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"transformers": lambda: self._peer({}), "ctranslate2": self._ctranslate2}

    def _ctranslate2(self) -> Callable[[], Any]:
        """Convert the model of transformers and translate with it, with as many threads as ours."""
        import ctranslate2
        from ctranslate2.converters.transformers import BartLoader, MarianMTLoader

        model, _ = self._build_peer()
        model.config.normalize_before = model.config.normalize_embedding = False
        # The method of BartLoader keeps the padding token, which Marian's vocabularies have last.
        spec = BartLoader.get_model_spec(MarianMTLoader(), model)
        names = ["<pad>", "</s>", "<unk>", *(f"t{i}" for i in range(3, self.size.vocab))]
        spec.register_source_vocabulary(names)
        spec.register_target_vocabulary(names)
        spec.config.eos_token, spec.config.unk_token = "</s>", "<unk>"
        spec.config.decoder_start_token = "</s>"
        spec.validate()
        spec.optimize()
        folder = tempfile.TemporaryDirectory()
        spec.save(folder.name)
        translator = ctranslate2.Translator(
            folder.name,
            device="cpu",
            compute_type="float32",
            inter_threads=1,
            intra_threads=torch.get_num_threads(),
        )
        folder.cleanup()
        sources = [[names[token] for token in row] for row in self.inputs["source"].tolist()]

        def run() -> Any:
            return translator.translate_batch(
                sources,
                beam_size=1,
                min_decoding_length=self.length,
                max_decoding_length=self.length,
            )

        return run
