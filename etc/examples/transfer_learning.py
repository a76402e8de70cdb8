"""Keras' guide to transfer learning on a cluster, as the cells of a notebook: a pretrained base under a new head, trained
by hpc-train on the nodes of srun.

usage: transfer_learning.py [DATA [SRUN]]     DATA: a folder of class folders with train/ and val/; SRUN: "-N4"
PYTHONPATH names the folder of hpc_train.py (man hpc-train-models)."""
# %% The model, as in https://keras.io/guides/transfer_learning
import os
import sys

import keras

import hpc_train

data = sys.argv[1] if len(sys.argv) > 1 else "flowers"
srun = sys.argv[2] if len(sys.argv) > 2 else None
side, classes = int(os.environ.get("SIDE", "160")), len(os.listdir(os.path.join(data, "train")))

base = keras.applications.MobileNetV2(input_shape=(side, side, 3), include_top=False,
                                      weights=os.environ.get("WEIGHTS", "imagenet") or None)
base.trainable = False
inputs = keras.Input((side, side, 3))
x = keras.layers.RandomFlip("horizontal")(inputs)
x = keras.layers.Rescaling(1 / 127.5, offset=-1)(x)
x = base(x, training=False)
x = keras.layers.GlobalAveragePooling2D()(x)
x = keras.layers.Dropout(0.2)(x)
model = keras.Model(inputs, keras.layers.Dense(classes)(x))

# %% The head, with a frozen base. The model has bytes as its input (scale), of images resized to its size.
images = {"validation_data": data, "scale": "none", "resize": f"{side}x{side}", "srun": srun}
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(), loss, metrics=["accuracy"])
history = hpc_train.fit(model, data, epochs=5, **images)
print({key: [round(value, 4) for value in values] for key, values in history.history.items()})

# %% All layers, at a low rate. BatchNormalization then has the statistics of all ranks' images.
base.trainable = True
model.compile(keras.optimizers.Adam(1e-5), loss, metrics=["accuracy"])
history = hpc_train.fit(model, data, epochs=2, sync_batch_norm=True, **images)
print({key: [round(value, 4) for value in values] for key, values in history.history.items()})

# %% What the model says of new images
for row in hpc_train.predict(model, os.path.join(data, "val"), scale="none", resize=f"{side}x{side}", srun=srun)[:5]:
    print(row["file"], row["class"], row["probability"])
