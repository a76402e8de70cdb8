"""Precision, recall, F1 and AUC as Keras' metrics have them, of the same outputs and labels; with scikit-learn, if it is there,
as that has them, and the confusion matrix. Prints TAP.

usage: scores.py SCORES"""
import subprocess
import sys
import tempfile

import keras
import numpy as np

try:
    import sklearn.metrics
except ImportError:
    sklearn = None

CASES = [  # name, samples, outputs, logits
    ("ten classes", 1000, 10, False), ("ten classes of logits", 1000, 10, True), ("two classes", 333, 2, False),
    ("more classes than samples have", 40, 30, False), ("one output", 500, 1, False), ("one output of logits", 500, 1, True)]


def ours(program, x, y, logits):
    """Metrics of all classes and of each, and the confusion matrix."""
    with tempfile.TemporaryDirectory() as folder:
        x.astype("<f4").tofile(folder + "/outputs.f32")
        y.astype("<i4").tofile(folder + "/labels.i32")
        command = [program, str(len(y)), str(x.shape[1]), folder] + ["logits"] * logits
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in text.splitlines()]
    return np.array([line[:4] for line in lines], np.float64), np.array([line[4:] for line in lines[1:]], np.int64)


def measure(metric, y, p):
    metric.update_state(y, p)
    return np.array(metric.result(), np.float64)


def theirs_of_one(y, p):
    y = y[:, None].astype(np.float32)
    return np.array([measure(keras.metrics.Precision(), y, p), measure(keras.metrics.Recall(), y, p),
                     measure(keras.metrics.F1Score(threshold=0.5), y, p)[0], measure(keras.metrics.AUC(), y, p)])


def theirs_by_class(y, p):
    rows = np.eye(p.shape[1], dtype=np.float32)[y]
    f1 = measure(keras.metrics.F1Score(), rows, p)
    return np.array([[measure(keras.metrics.Precision(class_id=k, top_k=1), rows, p),
                      measure(keras.metrics.Recall(class_id=k, top_k=1), rows, p), f1[k],
                      measure(keras.metrics.AUC(), rows[:, k], p[:, k])] for k in range(p.shape[1])])


def bucket(p):
    """AUC is by Keras' 200 thresholds: values between the same two are equal."""
    return np.clip(np.ceil(p * np.float32(199)) - 1, 0, 198)


def sklearn_auc(y, p):
    return sklearn.metrics.roc_auc_score(y, bucket(p)) if 0 < y.sum() < len(y) else 0.0


def sklearn_differs(got, matrix, y, p):
    """Largest difference of any figure; infinite if the confusion matrix is another. got: all classes, then each."""
    outputs, classes = p.shape[1], len(matrix)
    predicted = p.argmax(axis=1) if outputs > 1 else (p[:, 0] > 0.5).astype(int)
    if not np.array_equal(matrix, sklearn.metrics.confusion_matrix(y, predicted, labels=range(classes))):
        return np.inf
    scores = sklearn.metrics.precision_recall_fscore_support(y, predicted, labels=range(classes), zero_division=0)[:3]
    auc = [sklearn_auc(y == k, p[:, k]) for k in range(outputs)] if outputs > 1 else [np.nan, sklearn_auc(y, p[:, 0])]
    by_class = np.column_stack((*scores, auc))
    everything = by_class.mean(axis=0) if outputs > 1 else by_class[1]
    return np.nanmax(np.abs(got - np.vstack((everything, by_class))))


def differ(program, samples, outputs, logits, random):
    y = random.integers(0, max(2, outputs - outputs // 5), samples).astype(np.int32)  # the last classes have none
    raw = random.normal(size=(samples, outputs)).astype(np.float32)
    raw[np.arange(samples), y if outputs > 1 else 0] += 1.0 if outputs > 1 else 2.0 * y - 1
    p = np.array(keras.ops.softmax(raw) if outputs > 1 else keras.ops.sigmoid(raw))
    got, matrix = ours(program, raw if logits else p, y, logits)
    other = sklearn_differs(got, matrix, y, p) if sklearn else 0.0
    if outputs == 1:
        return np.abs(got[0] - theirs_of_one(y, p)).max(), np.abs(got[0] - got[2]).max(), other
    by_class = theirs_by_class(y, p)
    all_of_auc = measure(keras.metrics.AUC(multi_label=True, num_labels=outputs), np.eye(outputs, dtype=np.float32)[y], p)
    macro = np.append(by_class[:, :3].mean(axis=0), all_of_auc)
    return np.abs(got[1:] - by_class).max(), np.abs(got[0] - macro).max(), other


def main():
    random = np.random.default_rng(1)
    print(f"1..{len(CASES)}")
    failed = False
    for i, (name, samples, outputs, logits) in enumerate(CASES, 1):
        worst = differ(sys.argv[1], samples, outputs, logits, random)
        # a logit's softmax may lie on the other side of a threshold, by rounding
        good = max(worst) < (1e-3 if logits else 1e-6)
        failed |= not good
        print(f"{'ok' if good else 'not ok'} {i} - {name}: largest differences: by class {worst[0]:.1e}, of all {worst[1]:.1e}, "
              f"from scikit-learn {f'{worst[2]:.1e}' if sklearn else 'not compared'}")
    return failed


sys.exit(main())
