from zoo.evaluation.batch_results import CLASSES, CONFUSION, ClassReport


def report(predictions, references):
    made = ClassReport()
    made.update(predictions, references)
    return made


def test_scores_of_classes_and_the_confusion_matrix():
    tables = report([[0], [0], [2]], [[0], [1], [1]]).tables("abc".__getitem__)
    assert tables[CLASSES]["a"] == {"precision": 0.5, "recall": 1.0, "f1": 2 / 3, "targets": 1}
    assert tables[CLASSES]["b"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "targets": 2}
    assert tables[CONFUSION]["b"] == {"a": 1, "b": 0, "c": 1}
    assert list(tables[CONFUSION]) == ["a", "b", "c"]


def test_label_sets_have_no_confusion_matrix_and_equal_names_are_ids():
    tables = report([[0, 1], []], [[1], [0]]).tables(lambda number: "x")
    assert list(tables) == [CLASSES]
    assert tables[CLASSES]["1"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "targets": 1}
    assert tables[CLASSES]["0"]["f1"] == 0.0


def test_merged_reports_are_those_of_one():
    whole = report([[0], [1], [1]], [[0], [0], [1]])
    part = report([[0]], [[0]])
    part.merge(report([[1], [1]], [[0], [1]]))
    assert part.tables(str) == whole.tables(str)


def test_many_classes_have_no_matrix_and_no_items_no_tables():
    ids = [[number] for number in range(30)]
    assert list(report(ids, ids).tables(str)) == [CLASSES]
    assert ClassReport().tables(str) == {}
