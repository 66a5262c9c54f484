"""Importers and exporters for models of Hugging Face transformers."""

from collections.abc import Sequence

from zoo.plugin import Importer, hookimpl
from zoo_huggingface.causal.bloom import Bloom
from zoo_huggingface.causal.falcon import Falcon
from zoo_huggingface.causal.gemma import Gemma
from zoo_huggingface.causal.gemma2 import Gemma2
from zoo_huggingface.causal.gemma3 import Gemma3
from zoo_huggingface.causal.gpt2 import Gpt2
from zoo_huggingface.causal.gpt_neo import GptNeo
from zoo_huggingface.causal.gpt_neox import GptNeoX
from zoo_huggingface.causal.gpt_oss import GptOss
from zoo_huggingface.causal.gptj import GptJ
from zoo_huggingface.causal.llama import Llama
from zoo_huggingface.causal.mistral import Mistral
from zoo_huggingface.causal.mixtral import Mixtral
from zoo_huggingface.causal.olmo2 import Olmo2
from zoo_huggingface.causal.opt import Opt
from zoo_huggingface.causal.phi import Phi
from zoo_huggingface.causal.phi3 import Phi3
from zoo_huggingface.causal.qwen2 import Qwen2
from zoo_huggingface.causal.qwen2_moe import Qwen2Moe
from zoo_huggingface.causal.qwen3 import Qwen3
from zoo_huggingface.causal.qwen3_moe import Qwen3Moe
from zoo_huggingface.causal.smollm3 import SmolLM3
from zoo_huggingface.causal.starcoder2 import Starcoder2
from zoo_huggingface.encoders.albert import Albert
from zoo_huggingface.encoders.bert import Bert
from zoo_huggingface.encoders.camembert import Camembert
from zoo_huggingface.encoders.deberta_v2 import DebertaV2
from zoo_huggingface.encoders.distilbert import DistilBert
from zoo_huggingface.encoders.electra import Electra
from zoo_huggingface.encoders.modernbert import ModernBert
from zoo_huggingface.encoders.mpnet import MPNet
from zoo_huggingface.encoders.nomic_bert import NomicBert
from zoo_huggingface.encoders.roberta import Roberta
from zoo_huggingface.encoders.xlm_roberta import XLMRoberta
from zoo_huggingface.seq2seq.bart import Bart
from zoo_huggingface.seq2seq.m2m_100 import M2M100
from zoo_huggingface.seq2seq.marian import Marian
from zoo_huggingface.seq2seq.mbart import MBart
from zoo_huggingface.seq2seq.mt5 import MT5
from zoo_huggingface.seq2seq.pegasus import Pegasus
from zoo_huggingface.seq2seq.t5 import T5
from zoo_huggingface.speech.hubert import Hubert
from zoo_huggingface.speech.speech_to_text import Speech2Text
from zoo_huggingface.speech.wav2vec2 import Wav2Vec2
from zoo_huggingface.speech.wavlm import WavLM
from zoo_huggingface.speech.whisper import Whisper
from zoo_huggingface.vision.beit import Beit
from zoo_huggingface.vision.blip import Blip
from zoo_huggingface.vision.clip import CLIP
from zoo_huggingface.vision.clip_towers import CLIPText, CLIPVision
from zoo_huggingface.vision.deit import DeiT
from zoo_huggingface.vision.dinov2 import Dinov2
from zoo_huggingface.vision.siglip import Siglip
from zoo_huggingface.vision.siglip_towers import SiglipText, SiglipVision
from zoo_huggingface.vision.vision_encoder_decoder import VisionEncoderDecoder
from zoo_huggingface.vision.vit import ViT


@hookimpl
def zoo_importers() -> Sequence[Importer]:
    return [
        Bert(),
        Roberta(),
        XLMRoberta(),
        Camembert(),
        DistilBert(),
        Electra(),
        Albert(),
        MPNet(),
        NomicBert(),
        DebertaV2(),
        ModernBert(),
        Gpt2(),
        Marian(),
        Bart(),
        MBart(),
        Pegasus(),
        M2M100(),
        T5(),
        MT5(),
        Llama(),
        Mistral(),
        Qwen2(),
        Qwen3(),
        Olmo2(),
        Phi3(),
        Opt(),
        Bloom(),
        SmolLM3(),
        Starcoder2(),
        GptNeo(),
        GptNeoX(),
        GptJ(),
        Phi(),
        Falcon(),
        Gemma(),
        Gemma2(),
        Mixtral(),
        Qwen2Moe(),
        Qwen3Moe(),
        GptOss(),
        Gemma3(),
        ViT(),
        DeiT(),
        Dinov2(),
        Beit(),
        CLIP(),
        Siglip(),
        CLIPText(),
        CLIPVision(),
        SiglipText(),
        SiglipVision(),
        VisionEncoderDecoder(),
        Blip(),
        Wav2Vec2(),
        Hubert(),
        WavLM(),
        Whisper(),
        Speech2Text(),
    ]
