"""Attention models composed of interchangeable parts.

This module is the interface for users of models; ``zoo.plugin`` is the interface for authors of
plugins. Names are imported on first use, so ``import zoo`` does not import torch.
"""

from typing import TYPE_CHECKING

from zoo import plugin as plugin
from zoo.lazy import lazy_exports

if TYPE_CHECKING:
    from zoo.acceleration import accelerate as accelerate
    from zoo.adapters import (
        use_adapters as use_adapters,
        without_adapters as without_adapters,
    )
    from zoo.artifact import save as save, verify as verify
    from zoo.artifact.merging import merge_adapters as merge_adapters
    from zoo.attention import record_samples as record_samples, recording as recording
    from zoo.data.spec_batches import batches as batches
    from zoo.data.tokenizer_training import train_tokenizer as train_tokenizer
    from zoo.errors import (
        ArtifactError as ArtifactError,
        DataError as DataError,
        HubError as HubError,
        SpecError as SpecError,
        ZooError as ZooError,
        ZooWarning as ZooWarning,
    )
    from zoo.evaluation.evaluating import evaluate as evaluate
    from zoo.generation.embedding import embed as embed
    from zoo.generation.pipeline import generate as generate, stream as stream
    from zoo.generation.prediction import (
        Prediction as Prediction,
        predict as predict,
        predict_positions as predict_positions,
    )
    from zoo.hub.adapters import adapt as adapt, save_adapter as save_adapter
    from zoo.hub.base_model import model_spec as model_spec
    from zoo.hub.models import load as load, pull as pull
    from zoo.hub.publish import push as push, save_folder as save_folder
    from zoo.interfaces import (
        Batch as Batch,
        GenerationOutput as GenerationOutput,
        Model as Model,
        Outputs as Outputs,
    )
    from zoo.spec.composition import components as components
    from zoo.spec.sections import (
        metrics as metrics,
        objective as objective,
        optimiser as optimiser,
        schedule as schedule,
    )
    from zoo.spec.spec import Spec as Spec, load_spec as load_spec
    from zoo.spec.trainability import freeze as freeze
    from zoo.training.callback import Callback as Callback
    from zoo.training.checkpoint import (
        load_checkpoint as load_checkpoint,
        save_checkpoint as save_checkpoint,
    )
    from zoo.training.composing import check as check, compose as compose
    from zoo.training.local_step import (
        LocalStep as LocalStep,
        LossModule as LossModule,
        training_step as training_step,
    )
    from zoo.training.run import train as train
    from zoo.training.start import start_from as start_from
    from zoo_exchange.adapter_exchange import (
        export_adapter as export_adapter,
        import_adapter as import_adapter,
    )
    from zoo_exchange.export_plan import export_model as export_model
    from zoo_exchange.importing import import_model as import_model
    from zoo_inspect.attending import attend as attend
else:
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
