import torch
from demo_kit import compose_reader

import zoo
from zoo_demo.digits import draw_digit
from zoo_demo.glimpses import recognise


def test_locations_are_those_of_the_outputs_in_pixels():
    model, image = compose_reader(), draw_digit("7")
    (digit,) = recognise(model, ["7"])
    assert (digit.label, digit.size, digit.image.tolist()) == ("7", 8, image.tolist())
    assert digit.prediction == zoo.predict(model, [image[..., None]])[0]
    batch = {"source": torch.from_numpy(image)[None, None] / 255, "target": torch.tensor([7])}
    with torch.no_grad():
        locations = model(batch).extras["locations"][0]
    torch.testing.assert_close(torch.tensor(digit.locations), (locations + 1) * 14)
    assert digit.locations[0] == (14.0, 14.0)  # the first glimpse is in the centre
    assert not model._forward_hooks
