from zoo_metrics.meteor_alignment import EXACT, STEM, Match, align


def stem(word):
    return word.rstrip("s")


def test_matches_without_an_alternative_are_kept():
    matches, chunks = align(["b", "a"], ["a", "b"], stem)

    assert matches == (Match(1, 0, EXACT), Match(0, 1, EXACT))
    assert chunks == 2


def test_fewer_chunks_win():
    matches, chunks = align(["the", "cat", "the", "dog"], ["the", "dog"], stem)

    assert matches == (Match(2, 0, EXACT), Match(3, 1, EXACT))
    assert chunks == 1


def test_exact_matches_win_over_stems():
    matches, _ = align(["dogs", "dog"], ["dog"], stem)

    assert matches == (Match(1, 0, EXACT),)


def test_stems_match():
    assert align(["dogs", "run"], ["dog", "runs"], stem) == (
        (Match(0, 0, STEM), Match(1, 1, STEM)),
        1,
    )


def test_empty_texts_have_no_matches():
    assert align([], ["a"], stem) == align(["a"], [], stem) == ((), 0)
