"""Tests mirror the source: tests/ROOM/test_NAME.py tests zoo/ROOM/**/NAME.py.

NAME may continue with what is tested (`test_spec_fuzz.py`), and may be the room's own name for
tests of the room as a whole (`test_hub_cli.py`). Tests across several files are listed.
"""

from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent

# Tests of behaviour that several source files share, by the reason.
CROSS_CUTTING = {
    "written by earlier versions": ["artifact/compatibility"],
    "commands as they are run": [
        "cli/exit_codes",
        "cli/failures",
        "cli/json_output",
        "cli/wrong_inputs",
        "cli/verbs",
        "plugins/zoo_exchange/cli",
        "hub/terminal",
    ],
    "import, map and export together": [
        "plugins/zoo_exchange/array_costs",
        "plugins/zoo_exchange/map_costs",
        "plugins/zoo_exchange/map_fuzz",
        "plugins/zoo_exchange/operations",
        "plugins/zoo_exchange/round_trip",
        "plugins/zoo_exchange/trained",
        "hub/import",
        "hub/imported",
        "hub/importing",
    ],
    "the decoding loop with samplers, filters and models": [
        "generation/decoding",
        "generation/default_device",
        "generation/hugging_face",
        "generation/invalid_inputs",
        "generation/specs",
    ],
    "a hub server against the whole client": [
        "hub/access",
        "hub/huggingface_hub",
        "hub/code_in_repos",
        "hub/faults",
        "hub/header",
        "hub/hostile",
        "hub/hostile_text",
        "hub/processes",
        "hub/roundtrip",
        "hub/shards",
    ],
    "every law with a component that breaks it": ["testing/broken_components"],
    "training on a small task": [
        "plugins/zoo_ctc/learning_slow",
        "plugins/zoo_gat/learning",
        "plugins/zoo_show_attend_tell/caption_learning",
    ],
    "parity with another library or published weights": [
        "plugins/zoo_gat/checkpoint",
        "plugins/zoo_gat/parity",
        "plugins/zoo_gat/ppi_residual",
        "plugins/zoo_huggingface/hf_config_keys",
        "plugins/zoo_huggingface/hf_fine_tuning",
        "plugins/zoo_huggingface/hf_errors",
        "plugins/zoo_huggingface/hf_fine_tuning",
        "plugins/zoo_huggingface/hf_folder_files",
        "plugins/zoo_huggingface/hf_base_models",
        "plugins/zoo_huggingface/hf_heads",
        "plugins/zoo_huggingface/hf_image_to_text",
        "plugins/zoo_fast/generation/decoding_gpu",
        "plugins/zoo_fast/generation/host_syncs",
        "plugins/zoo_fast/sampling/steps",
        "plugins/zoo_huggingface/hf_fuzzed_configs",
        "plugins/zoo_huggingface/hf_generation",
        "plugins/zoo_huggingface/hf_new_architecture",
        "plugins/zoo_huggingface/hf_generation_config",
        "plugins/zoo_huggingface/hf_logits",
        "plugins/zoo_huggingface/hf_longrope",
        "plugins/zoo_huggingface/hf_lost_tensors",
        "plugins/zoo_huggingface/hf_older_layouts",
        "plugins/zoo_huggingface/hf_padding_and_limits",
        "plugins/zoo_huggingface/hf_published_configs",
        "plugins/zoo_huggingface/hf_random_configs",
        "plugins/zoo_huggingface/hf_sentences",
        "plugins/zoo_huggingface/hf_speech",
        "plugins/zoo_huggingface/hf_towers",
        "plugins/zoo_huggingface/hf_tokenizers",
        "plugins/zoo_huggingface/hf_whisper",
    ],
    "several components of a plugin": [
        "plugins/zoo_recurrent/sequential",
        "plugins/zoo_show_attend_tell/hard_gradient",
        "plugins/zoo_transformer/bfloat16",
        "plugins/zoo_transformer/kv_cache",
    ],
}
LISTED = {name for names in CROSS_CUTTING.values() for name in names}


def _name(path):
    return (path.parent.relative_to(TESTS) / path.stem.removeprefix("test_")).as_posix()


FILES = {_name(path): path for path in sorted(TESTS.glob("*/**/test_*.py"))}


def _has_source(name):
    """Whether a module of the room, or the room itself, has this name or the start of it."""
    room, _, test = name.rpartition("/")
    source = ROOT / (room if room.startswith("plugins/") else f"zoo/{room}")
    modules = {path.stem for path in source.rglob("*") if path.suffix in ("", ".py")}
    modules.add(source.name.removeprefix("zoo_"))
    return any(test == module or test.startswith(f"{module}_") for module in modules)


def test_every_test_file_has_a_source_file_or_is_listed():
    assert [name for name in FILES if not _has_source(name) and name not in LISTED] == []
    assert [name for name in FILES if _has_source(name) and name in LISTED] == []


def test_every_listed_test_file_exists():
    rooms = {path.name for path in (ROOT / "plugins").iterdir()}
    listed = {
        name for name in LISTED if not name.startswith("plugins/") or name.split("/")[1] in rooms
    }
    assert listed - set(FILES) == set()


def test_every_folder_of_tests_is_a_room():
    rooms = {name.split("/")[0] for name in FILES}
    assert {room for room in rooms if not (ROOT / "zoo" / room).is_dir()} == {"plugins"}
    plugins = {name.split("/")[1] for name in FILES if name.startswith("plugins/")}
    assert {plugin for plugin in plugins if not (ROOT / "plugins" / plugin).is_dir()} == set()
