"""hpc_train.py on a cluster, beside the command line and Keras. Prints TAP.

usage: from_python.py FOLDER     with hpc_train.py and transfer_learning.py, seen by all nodes"""
import glob
import os
import runpy
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
folder = sys.argv[1]
os.chdir(folder)
sys.path.insert(0, folder)
import keras  # noqa: E402
import numpy as np  # noqa: E402
import hpc_train  # noqa: E402

FIT = {"epochs": 2, "scale": "none", "strategy": "multi-worker-mirrored", "seed": 3, "verbose": 0}
LOGITS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
count = failed = 0


def ok(good, text):
    global count, failed
    count, failed = count + 1, failed + (not good)
    print(f"{'ok' if good else 'not ok'} {count} - {text}", flush=True)


def pictures():
    rng = np.random.default_rng(0)
    for split, number in [("train", 12), ("val", 6)]:
        for k, name in enumerate(["daisy", "rose", "tulip"]):
            os.makedirs(f"flowers/{split}/{name}", exist_ok=True)
            for i in range(number):
                pixels = rng.integers(40 * k, 40 * k + 150, (32, 32, 3), dtype=np.uint8)
                keras.utils.save_img(f"flowers/{split}/{name}/{i}.png", pixels, scale=False)


def model(loss=LOGITS, optimizer=None, metrics=("accuracy",), compiled=True):
    keras.utils.set_random_seed(3)
    inner = keras.Input((32, 32, 3))
    base = keras.Model(inner, keras.layers.Conv2D(8, 3, strides=2, activation="relu", name="c")(inner), name="base")
    inputs = keras.Input((32, 32, 3))
    x = keras.layers.GlobalAveragePooling2D()(base(keras.layers.Rescaling(1 / 255.0)(inputs)))
    made = keras.Model(inputs, keras.layers.Dense(3)(x))
    if compiled:
        made.compile(optimizer or keras.optimizers.SGD(0.1, momentum=0.9), loss, metrics=list(metrics))
    return made


def by_command(launch):
    made = model()
    with open("m.json", "w", encoding="utf-8") as file:
        file.write(made.to_json())
    made.save_weights("start.weights.h5")
    subprocess.run(launch + ["hpc-train", "fit", "--model", "m.json", "--weights", "start.weights.h5", "--data", "flowers/train",
                             "--validation-data", "flowers/val", "--epochs", "2", "--scale", "none", "--optimizer", "sgd",
                             "--learning-rate", "0.1", "--momentum", "0.9", "--strategy", "multi-worker-mirrored", "--seed", "3",
                             "--save-weights", "end.weights.h5", "--verbose", "0"], check=True)
    made.load_weights("end.weights.h5")
    return made.get_weights()


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b))


def fails(text, words, status, call):
    try:
        call()
        ok(False, f"{text}: no error")
    except (ValueError, hpc_train.Error) as error:
        good = all(word in str(error) for word in words) and getattr(error, "status", None) == status
        ok(good, f"{text}: an error that says so" + ("" if good else f": {error!r}"))


def main():
    pictures()
    for name, launch, how in [("alone", [], {}), ("with srun", ["srun", "-N2", "--hpc-train"], {"srun": "-N2"}),
                              ("with sbatch", ["srun", "-N2", "--hpc-train"], {"sbatch": "-N2"})]:
        made = model()
        start = made.get_weights()
        history = hpc_train.fit(made, "flowers/train", validation_data="flowers/val", **FIT, **how)
        ok(same(made.get_weights(), by_command(launch)) and not same(made.get_weights(), start),
           f"{name}: the weights are the command line's")
        ok(isinstance(history, keras.callbacks.History) and history.epoch == [0, 1] and
           all(len(history.history[key]) == 2 for key in ("loss", "accuracy", "val_loss", "val_accuracy")),
           f"{name}: a History of two epochs")
    rows = hpc_train.predict(made, "flowers/val", srun="-N2", scale="none")
    images = np.stack([keras.utils.img_to_array(keras.utils.load_img(f"flowers/val/{row['file']}")) for row in rows])
    theirs = keras.ops.softmax(made.predict(images, verbose=0)).numpy()
    ok(len(rows) == 18 and all(row["class"] == own.argmax() and abs(row["probability"] - own.max()) < 1e-4
                               for row, own in zip(rows, theirs)), "predict: Keras' classes and probabilities")
    flat = "sparse_categorical_crossentropy"
    fails("not compiled", ["compile()"], None, lambda: hpc_train.fit(model(compiled=False), "flowers/train"))
    for text, words, settings in [
            ("an optimizer", ["Nadam", "no counterpart"], {"optimizer": keras.optimizers.Nadam()}),
            ("a setting", ["beta_1=0.8"], {"optimizer": keras.optimizers.Adam(beta_1=0.8)}),
            ("a schedule", ["CosineDecay", "schedule="],
             {"optimizer": keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 10))}),
            ("a loss", ["log_cosh"], {"loss": keras.losses.LogCosh()}),
            ("logits", ["from_logits=False", "linear"], {"loss": flat}),
            ("a metric", ["auc"], {"metrics": [keras.metrics.AUC()]})]:
        fails(text, words, None, lambda s=settings: hpc_train.fit(model(**s), "flowers/train"))
    fails("no data", ["nowhere", "66"], 66, lambda: hpc_train.fit(model(), "nowhere", srun="-N2", verbose=0))
    fails("an option", ["--epohcs", "--epochs"], 64, lambda: hpc_train.fit(model(), "flowers/train", epohcs=3, verbose=0))
    fails("a folder of one node", ["all nodes must see it"], 66,
          lambda: hpc_train.fit(model(), f"{folder}/flowers/train", srun="-N2", folder="/tmp", verbose=0))
    ok(not glob.glob("hpc_train-*") + glob.glob("/tmp/hpc_train-*"), "no temporary files are left")
    os.environ.update(SIDE="32", WEIGHTS="")
    sys.argv = ["transfer_learning.py", "flowers", "-N2"]
    ok("history" in runpy.run_path("transfer_learning.py"), "the example runs")
    return failed > 0


sys.exit(main())
