"""Heatmaps in the terminal: one line for each name, blocks of columns that fit."""

import torch

from zoo.heatmap import Heatmap, render_text


def test_single_letters_are_one_header():
    heatmap = Heatmap(torch.tensor([[0.9, 0.1], [0.3, 0.7]]), ["x", "end"], ["a", "b"])
    assert render_text(heatmap).plain == "    a b \n  x ██  \nend ░░▓▓\n"


def test_words_have_a_line_each():
    heatmap = Heatmap(torch.eye(2), ["Where", "is"], ["Onde", "fica"])
    assert render_text(heatmap).plain.splitlines() == [
        "      Onde",
        "      │ fica",
        "Where ██  ",
        "   is   ██",
    ]


def test_columns_are_divided_into_blocks_and_no_line_is_wider():
    columns = ["palavra" * 5, "é", "uma"] * 20
    text = render_text(Heatmap(torch.rand(2, 60), ["a", "word" * 9], columns), width=50)
    lines = text.plain.splitlines()
    assert max(map(len, lines)) <= 50
    assert sum(line.endswith(" é") for line in lines) == 20
    assert sum(line.endswith("palavrapalavrapalavrapa…") for line in lines) == 20
