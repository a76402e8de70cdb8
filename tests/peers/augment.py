"""Operations of augmentation against Keras' own layers, given what was drawn; and what RandAugment draws. Prints TAP.

usage: augment.py AUGMENT"""
import subprocess
import sys
import tempfile

import keras
import numpy as np

L = keras.layers
OPERATIONS = ["random_shear", "random_translation", "random_rotation", "random_brightness", "random_color_degeneration",
              "random_contrast", "random_sharpness", "random_posterization", "solarization", "auto_contrast", "equalization"]
SHAPES = [(17, 23, 3), (24, 16, 1), (1, 9, 3), (8, 1, 1)]
TOLERANCE = 0.01  # of 255: Keras' coordinates are in single precision
checks = 0
random = np.random.default_rng(3)


def ok(good, name, why=""):
    global checks
    checks += 1
    print(f"{'ok' if good else 'not ok'} {checks} - {name}")
    if not good:
        print(f"# {why}")


def f32(x):
    return np.array(x, np.float32)


def run(program, folder, shape, name, a=0.0, b=0.0):
    command = [program, folder, *map(str, shape), str(name), repr(float(a)), repr(float(b))]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return np.array([line.split() for line in text.splitlines()], np.float64)


def ours(program, picture, name, a=0.0, b=0.0, other=None):
    """The result, and what is printed."""
    with tempfile.TemporaryDirectory() as folder:
        picture.tofile(folder + "/picture.f32")
        if other is not None:
            other.tofile(folder + "/other.f32")
        text = run(program, folder, picture.shape, name, a, b)
        return np.fromfile(folder + "/result.f32", np.float32).reshape(picture.shape), text


def parameters(layer, name, a, b, shape):
    """What get_random_transformation of the layer gives for these draws."""
    height, width, _ = shape
    none = keras.ops.zeros([1])
    return {
        "random_shear": lambda: {"shear_factor": f32([[a, b]]), "input_shape": (1,) + shape},
        "random_translation": lambda: {"translations": f32([[a * width, b * height]]), "input_shape": (1,) + shape},
        "random_rotation": lambda: {"rotation_matrix": layer._compute_affine_matrix(
            center_x=0.5, center_y=0.5, angle=keras.ops.convert_to_tensor(f32([a])), translate_x=none, translate_y=none,
            scale=keras.ops.ones([1]), shear_x=none, shear_y=none, height=height, width=width)},
        "random_zoom": lambda: {"height_zoom": f32([[a]]), "width_zoom": f32([[a]]), "input_shape": (1,) + shape},
        "random_brightness": lambda: {"rgb_delta": f32([[[[a]]]])},
        "random_color_degeneration": lambda: {"factor": f32([[[[a]]]])},
        "random_contrast": lambda: {"contrast_factor": f32([[[[a]]]])},
        "random_sharpness": lambda: {"factor": f32([a])},
        "random_posterization": lambda: {"shift_factor": np.array([8 - int(a)], np.uint8)},
        "solarization": lambda: {"additions": f32([[[[a]]]]), "thresholds": f32([[[[b]]]])},
    }.get(name, lambda: None)()


def theirs(layer, name, picture, a=0.0, b=0.0):
    drawn = parameters(layer, name, a, b, picture.shape)
    return np.array(layer.transform_images(keras.ops.convert_to_tensor(picture[None]), drawn))[0]


def pictures(shape, kind):
    if kind == "bytes":
        return random.integers(0, 256, shape).astype(np.float32)
    if kind == "flat":
        return np.full(shape, 93, np.float32)
    return f32(random.uniform(20, 200, shape))


def compare(program, what, layer, name, ours_name, draws):
    """`name`: key of parameters()."""
    worst, where = 0.0, ""
    for shape in SHAPES:
        for kind in ("bytes", "floats", "flat"):
            for a, b in draws:
                picture = pictures(shape, kind)
                got, want = ours(program, picture, ours_name, a, b)[0], theirs(layer, name, picture, a, b)
                difference = np.abs(got - want)
                # In single precision a value on the edge of a bin may be in the next one, in a picture of floats.
                far = difference.max() if name not in ("equalization", "random_posterization") or kind != "floats" \
                    else np.quantile(difference, 0.98)
                if not far <= worst:
                    worst, where = far, f"{kind} {shape}, {a} {b}"
    ok(worst <= TOLERANCE, f"{what}: as Keras' (largest difference {worst:.2g} of 255)", where)


def check_operations(program):
    augment = L.RandAugment(value_range=(0, 255), num_ops=1, factor=0.5)
    compare(program, "rotation", L.RandomRotation(0.5), "random_rotation", "rotation", [(33, 0), (-170, 0), (90, 0), (0, 0)])
    compare(program, "zoom", L.RandomZoom(0.5), "random_zoom", "zoom", [(0.6, 0), (1.9, 0), (1, 0)])
    compare(program, "translation", L.RandomTranslation(0.5, 0.5), "random_translation", "translation",
            [(0.3, -0.4), (-0.45, 0.02), (1, -1), (0, 0)])
    compare(program, "contrast", L.RandomContrast(0.5), "random_contrast", "contrast", [(0.3, 0), (1.7, 0), (1, 0)])
    draws = {"random_shear": [(0.4, -0.2), (-0.7, -0.9)], "random_translation": [(0.3, 0.1), (0.99, 0.5)],
             "random_rotation": [(101, 0)], "random_brightness": [(81.5, 0)], "random_color_degeneration": [(0.4, 0), (1, 0)],
             "random_contrast": [(1.4, 0)], "random_sharpness": [(0.1, 0), (0.5, 0), (0.9, 0)],
             "random_posterization": [(1, 0), (3, 0), (7, 0)], "solarization": [(40, 100), (0, 0)]}
    for number, name in enumerate(OPERATIONS):
        compare(program, f"RandAugment's {name}", getattr(augment, name), name, number, draws.get(name, [(0, 0)]))


def check_identity(program):
    same = all((ours(program, p, name, a)[0] == p).all() for p in (pictures(s, "floats") for s in SHAPES)
               for name, a in (("rotation", 0), ("zoom", 1), ("translation", 0), ("1", 0)))
    ok(same, "rotation by 0, zoom by 1 and translation by 0: the same bits")


def check_mixing(program):
    shape = (13, 20, 3)
    one, other = pictures(shape, "bytes"), pictures(shape, "bytes")
    both = keras.ops.convert_to_tensor(np.stack([one, other]))
    rows = keras.ops.one_hot(np.array([2, 5]), 7)
    for share, place in ((0.3, 0.2), (0.81, 0.9), (0.0, 0.0), (1.0, 0.5)):
        order = np.array([1, 0])
        drawn = {"mix_weight": f32([share, share]), "permutation_order": order}
        layer = L.MixUp()
        got, printed = ours(program, one, "mixup", share, other=other)
        want = np.array(layer.transform_images(both, drawn))[0]
        row = np.array(layer.transform_labels(rows, drawn))[0]
        ok(np.abs(got - want).max() < 1e-3 and abs(row[2] - printed[0, 0]) < 1e-6, f"MixUp with {share}: picture and row")
        layer, ratio = L.CutMix(), np.sqrt(f32(1) - f32(share))
        x1, y1 = ratio * f32(shape[1]), ratio * f32(shape[0])
        x0, y0 = f32(place) * (shape[1] - x1), f32(place) * (shape[0] - y1)
        masks, weight = layer._generate_batch_mask((2,) + shape, tuple(
            keras.ops.convert_to_tensor(f32([v, v])) for v in (x0, x0 + x1, y0, y0 + y1)))
        drawn = {"batch_masks": masks, "mix_weight": weight, "permutation_order": order}
        got, printed = ours(program, one, "cutmix", share, place, other=other)
        want = np.array(layer.transform_images(both, drawn))[0]
        row = np.array(layer.transform_labels(rows, drawn))[0]
        ok((got == want).all() and abs(row[2] - printed[0, 0]) < 1e-6, f"CutMix with {share} at {place}: picture and row")


def check_rand_augment(program):
    """Three operations one after the other, as they are drawn for a sample."""
    layer, worst = L.RandAugment(value_range=(0, 255), num_ops=3, factor=0.6), 0.0
    for bits in range(1, 25):
        picture = pictures((16, 21, 3), "bytes")
        got, drawn = ours(program, picture, "rand-augment", bits, 0.6)
        transforms = {name: parameters(getattr(layer, name), name, 0, 0, picture.shape) for name in OPERATIONS}
        for number, a, b in drawn:
            name = OPERATIONS[int(number)]
            transforms[name] = parameters(getattr(layer, name), name, a, b, picture.shape)
        want = np.array(layer.transform_images(keras.ops.convert_to_tensor(picture[None]),
                                               {"layer_idxes": [int(d[0]) for d in drawn], "transforms": transforms}))[0]
        # A difference of one bin in the last step is a step of the table: not all values need be close.
        worst = max(worst, np.quantile(np.abs(got - want), 0.95))
    ok(worst <= TOLERANCE, f"three operations of RandAugment: as Keras' ({worst:.2g} of 255)")


def check_draws(program):
    count, shape = 4096, (16, 20, 3)
    for strength in (0.5, 1.0):
        layer = L.RandAugment(value_range=(0, 255), factor=strength, seed=1)
        images = keras.ops.zeros((count,) + shape)
        wanted = {  # what Keras draws, in the units of rand_augment.h
            "random_shear": lambda t: t["shear_factor"], "random_translation": lambda t: t["translations"] / [20.0, 16.0],
            "random_rotation": lambda t: t["angle"], "random_brightness": lambda t: t["rgb_delta"],
            "random_color_degeneration": lambda t: t["factor"], "random_contrast": lambda t: t["contrast_factor"],
            "random_sharpness": lambda t: t["factor"], "random_posterization": lambda t: 8 - np.array(t["shift_factor"]),
            "solarization": lambda t: np.stack([np.ravel(t["additions"]), np.ravel(t["thresholds"])], 1)}
        for number, name in enumerate(OPERATIONS[:9]):
            want = np.array(wanted[name](getattr(layer, name).get_random_transformation(images))).reshape(count, -1)
            got = run(program, ".", (1, 1, 1), "draws", number, strength)[:, :want.shape[1]]
            spread = max(np.ptp(want), 1e-6)
            off = max(np.abs(got.min(0) - want.min(0)).max(), np.abs(got.max(0) - want.max(0)).max(),
                      np.abs(got.mean(0) - want.mean(0)).max(), np.abs(got.std(0) - want.std(0)).max()) / spread
            ok(off < 0.05, f"{name} of strength {strength}: drawn from Keras' range", f"off by {off}")


program = sys.argv[1]
check_operations(program)
check_identity(program)
check_mixing(program)
check_rand_augment(program)
check_draws(program)
print(f"1..{checks}")
