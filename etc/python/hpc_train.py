"""Keras models on a cluster, from Python or a notebook: `hpc-train fit` trains the model, which has the weights then.

    history = hpc_train.fit(model, "/project/flowers", epochs=8, srun="-N4", validation_data="/project/flowers")
    rows = hpc_train.predict(model, "/project/new", srun="-N2")

srun: options of the step that is started; sbatch: options of a job in which it runs. Without both, the command runs in
the allocation there is, else on this machine. Further arguments are its options: scale="none" is --scale none (see man)."""
import csv
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import time
import warnings
import keras
import numpy

OPTIMIZERS = {"SGD": "sgd", "Adam": "adam", "AdamW": "adamw", "RMSprop": "rmsprop", "Lamb": "lamb"}
SETTINGS = {"clipnorm": "clip_norm", "clipvalue": "clip_value", "global_clipnorm": "global_clip_norm",
            "gradient_accumulation_steps": "gradient_accumulation", "alpha": "focal_alpha", "gamma": "focal_gamma"}
SAME = {"momentum", "nesterov", "rho", "centered", "epsilon", "weight_decay", "label_smoothing"}
DEFAULTS = {"beta_1": 0.9, "beta_2": 0.999, "amsgrad": False, "use_ema": False, "loss_scale_factor": None, "axis": -1,
            "reduction": "sum_over_batch_size", "ignore_class": None, "threshold": 0.5, "apply_class_balancing": True}
WITHOUT_MEANING = {"name", "dtype", "ema_momentum", "ema_overwrite_frequency"}
LOSSES = {"categorical_crossentropy", "sparse_categorical_crossentropy", "binary_crossentropy", "kl_divergence",
          "categorical_focal_crossentropy", "binary_focal_crossentropy", "mean_squared_error", "huber"}
ALIASES = {"mse": "mean_squared_error", "mae": "mean_absolute_error", "kld": "kl_divergence", "acc": "accuracy"}
METRICS = {"accuracy", "categorical_accuracy", "sparse_categorical_accuracy", "binary_accuracy",
           "top_k_categorical_accuracy", "sparse_top_k_categorical_accuracy"}
REGRESSION = {"mean_squared_error": "mse", "mean_absolute_error": "mae"}


class Error(RuntimeError):
    """The command failed: its message, and its exit status, as man hpc-train lists them."""
    status, __str__ = property(lambda self: self.args[1]), lambda self: self.args[0]


def _described(thing):
    """Name in snake case and settings of a loss or metric as Keras serializes it: a string, a function or an object."""
    if isinstance(thing, dict) and thing["class_name"] == "function":
        thing = thing["config"]
    name, settings = (thing, {"name": thing}) if isinstance(thing, str) else (thing["class_name"], dict(thing["config"]))
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("top_kcat", "top_k_cat")
    return ALIASES.get(name, name), settings


def _known(what, name, names):
    if name not in names:
        raise ValueError(f"{what} {name} has no counterpart in hpc-train fit; there are: {', '.join(sorted(names))}")
    return name


def _translated(what, settings):
    """Options of the command for all settings; an error for one that it does not have."""
    options = {}
    for key, value in settings.items():
        if key in SETTINGS or key in SAME:
            options[SETTINGS.get(key, key)] = value or None
        elif key not in WITHOUT_MEANING and (key not in DEFAULTS or value != DEFAULTS[key]):
            raise ValueError(f"{what}: {key}={value!r} has no counterpart in hpc-train fit")
    return options


def _optimizer(serialized):
    what, settings = _known("optimizer", serialized["class_name"], OPTIMIZERS), dict(serialized["config"])
    rate, decay = settings.pop("learning_rate"), settings.get("weight_decay") or 0
    if isinstance(rate, dict):
        raise ValueError(f"{what}: its learning rate is a {rate['class_name']}, counted in steps: compile with a number, and "
                         "give fit schedule=\"cosine\" or another one of man hpc-train-fit, counted in epochs")
    return {**_translated(what, settings), "weight_decay": decay, "optimizer": OPTIMIZERS[what],
            "learning_rate": str(numpy.float32(rate))}


def _loss(model, serialized):
    name, settings = _described(serialized or "None")
    end, logits = model, bool(settings.pop("from_logits", False))
    _known("loss", name, LOSSES)
    while hasattr(end, "layers"):
        end = end.outputs[0]._keras_history.operation
    activation = getattr(getattr(end, "activation", None), "__name__", type(end).__name__.lower())
    if name.endswith("crossentropy") and logits == (activation in ("softmax", "sigmoid")):
        raise ValueError(f"loss {name} has from_logits={logits}, but the model ends with {activation}")
    if name == "binary_focal_crossentropy" and not settings.pop("apply_class_balancing", False):
        settings.pop("alpha", None)
    delta = {"huber_delta": getattr(model.loss, "_fn_kwargs", {}).get("delta", 1.0)} if name == "huber" else {}
    settings.pop("delta", None)  # which not all releases of Keras serialize
    return {**_translated(f"loss {name}", settings), **delta, "loss": name}


def _compiled(model):
    """Options for what compile() has set, and the names that History has for the command's metrics."""
    config = model.get_compile_config() if getattr(model, "compiled", False) else None
    if not config:
        raise ValueError("the model has no optimizer and loss: call its compile() first")
    if config.get("loss_weights") or config.get("weighted_metrics"):
        raise ValueError("compile(): loss_weights and weighted_metrics have no counterpart in hpc-train fit")
    options, names = {**_optimizer(config["optimizer"]), **_loss(model, config["loss"])}, {}
    for metric in config.get("metrics") or []:
        name, settings = _described(metric)
        _known("metric", name, REGRESSION if options["loss"] in ("mean_squared_error", "huber") else METRICS)
        if "top_k" in name:
            options["top_k"] = settings.pop("k", 5)
        _translated(f"metric {name}", settings)
        names[REGRESSION.get(name) or ("top_k_categorical_accuracy" if "top_k" in name else "accuracy")] = settings["name"]
    return options, names


def _command(what, options, folder, srun, sbatch):
    beside = pathlib.Path(__file__).resolve().parents[3] / "bin/hpc-train"
    words = [str(beside) if beside.exists() else "hpc-train", what]
    for key, value in options.items():
        if isinstance(value, dict):  # class_weight={0: 1.0, 1: 2.5}
            pathlib.Path(folder, f"{key}.json").write_text(json.dumps(value), "utf-8")
            value = f"{folder}/{key}.json"
        if value is not None and value is not False:
            words += ["--" + key.replace("_", "-")] + ([] if value is True else [str(value)])
    if srun is not None or sbatch is not None or "SLURM_JOB_ID" in os.environ:
        words = ["srun", *shlex.split(srun or ""), "--hpc-train"] + words
    if sbatch is None:
        return words
    pathlib.Path(folder, "job.sh").write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n", "utf-8")
    return ["sbatch", "--wait", "--open-mode=append", f"--output={folder}/output", *shlex.split(sbatch), f"{folder}/job.sh"]


def _run(command, folder, shown):
    """Runs it to its end, shows what it writes, and returns its exit status and all that it has written."""
    text, ended = "", False
    with open(f"{folder}/output", "ab") as output, open(f"{folder}/output", encoding="utf-8", errors="replace") as written:
        if shutil.which(command[0]) is None:
            raise Error(f"{command[0]} is not installed, or not in PATH", 78)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            while not ended:
                ended = process.poll() is not None
                for line in written:
                    text += line
                    print(line if shown and folder not in line else "", end="", flush=True)
                time.sleep(0 if ended else 0.2)
            return process.returncode, text
        finally:  # after an interrupt: the command saves the weights so far
            if process.poll() is None:
                job = re.search(r"^Submitted batch job (\d+)", text, re.MULTILINE)
                subprocess.run(["scancel", job[1]], check=False) if job else process.terminate()
                process.wait(60)


def _with_files(model, what, options, results, srun, sbatch, folder, shown, use):
    """Runs the command with the model in files, in a folder that is removed, unless the command fails with results."""
    place = tempfile.mkdtemp(prefix="hpc_train-", dir=os.path.abspath(folder or "."))
    paths, done = {key: f"{place}/{name}" for key, name in results.items()}, None
    try:
        files = {"model": f"{place}/model.json", "weights": f"{place}/start.weights.h5"}
        pathlib.Path(files["model"]).write_text(model.to_json(), "utf-8")
        model.save_weights(files["weights"])
        status, text = _run(_command(what, {**files, **options, **paths}, place, srun, sbatch), place, shown)
        said = [line for line in text.splitlines() if re.match(r"(hpc-train|srun|sbatch|slurmstepd): (?!warning)", line)]
        said = "\n".join(said[:10] or text.splitlines()[-10:])
        if status == 0 and not all(map(os.path.exists, paths.values())) or status == 66 and place in said:
            said, status = f"files in {place} were not found: all nodes must see it, give folder=... {said}", status or 74
        if status != 0:
            raise Error(f"hpc-train {what} ended with {status}: {said}", status if status > 0 else 128 - status)
        return (done := use(**paths))
    finally:
        if done is not None or not any(os.path.exists(path) for path in paths.values()):
            shutil.rmtree(place, ignore_errors=True)
        else:
            warnings.warn(f"what there is of the results is kept in {place}")


def fit(model, data, epochs=1, batch_size=None, validation_data=None, srun=None, sbatch=None, folder=None, verbose=1, **more):
    """Trains as compile() says, and returns Keras' History. data: what --data takes; batch_size: of all ranks together
    (default: 32 of each); folder: for temporary files, where all nodes see it (default: the current one)."""
    compiled, names = _compiled(model)
    compiled.update(data=data, epochs=epochs, global_batch_size=batch_size, validation_data=validation_data,
                    verbose=2 if verbose else 0, **more)

    def use(save_weights, log_dir):
        model.history = history = keras.callbacks.History()
        rows = list(csv.DictReader(pathlib.Path(log_dir, "history.csv").read_text("utf-8").splitlines()))
        with warnings.catch_warnings():  # the file has no state of the optimizer
            warnings.filterwarnings("ignore", "Skipping variable loading")
            model.load_weights(save_weights)
        history.set_model(model)
        history.epoch, history.history = [int(row.pop("epoch")) for row in rows], {}
        for key, value in ((key, value) for row in rows for key, value in row.items() if value):
            bare = key.removeprefix("val_")
            history.history.setdefault(key[:len(key) - len(bare)] + names.get(bare, bare), []).append(float(value))
        return history
    results = {"save_weights": "end.weights.h5", "log_dir": "log"}
    return _with_files(model, "fit", compiled, results, srun, sbatch, folder, verbose, use)


def predict(model, data, srun=None, sbatch=None, folder=None, verbose=0, **options):
    """The rows of `hpc-train predict`: {"file": ..., "class": ..., "probability": ...}."""
    return _with_files(model, "predict", {"data": data, **options}, {"output": "rows.jsonl"}, srun, sbatch, folder, verbose,
                       lambda output: [json.loads(line) for line in pathlib.Path(output).read_text("utf-8").splitlines()])
