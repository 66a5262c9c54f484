from zoo_language.character_ids import character_ids


def test_the_ids_are_those_of_the_released_vocabulary():
    ids = character_ids([["ab", "é"], []], length=6)
    assert ids.tolist() == [
        [
            [259, 257, 260, 261, 261, 261],
            [259, 98, 99, 260, 261, 261],
            [259, 0xC3 + 1, 0xA9 + 1, 260, 261, 261],
            [259, 258, 260, 261, 261, 261],
        ],
        [
            [259, 257, 260, 261, 261, 261],
            [259, 258, 260, 261, 261, 261],
            [0] * 6,
            [0] * 6,
        ],
    ]


def test_long_words_are_truncated_before_the_end_id():
    assert character_ids([["abcdef"]], length=4)[0, 1].tolist() == [259, 98, 99, 260]
