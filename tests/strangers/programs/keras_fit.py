"""Keras on its torch backend: models fitted and evaluated, a custom training step, saving and loading."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch

rng = np.random.default_rng(0)
images = rng.normal(size=(32, 8, 8, 1)).astype("float32")
labels = (images.mean((1, 2, 3)) > 0).astype("int64")


def history(model, inputs, targets, **options):
    found = model.fit(inputs, targets, batch_size=8, epochs=3, shuffle=False, verbose=0, **options).history["loss"]
    assert found[-1] < found[0]
    return found


keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.layers.Input((8, 8, 1)),
        keras.layers.Conv2D(4, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(2),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(1e-2), loss, metrics=["accuracy"])
print("convolutions:", *history(model, images, labels))
print("evaluated:", *model.evaluate(images, labels, verbose=0))
with tempfile.TemporaryDirectory() as folder:
    model.save(f"{folder}/model.keras")
    again = keras.models.load_model(f"{folder}/model.keras")
    assert np.allclose(again.predict(images, verbose=0), model.predict(images, verbose=0), atol=1e-6)

words = rng.integers(0, 20, (32, 6))
inputs = keras.Input((6,), dtype="int32")
x = keras.layers.Embedding(20, 8)(inputs)
x = keras.layers.MultiHeadAttention(2, 4)(x, x)
x = keras.layers.LSTM(8)(x)
model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(x))
model.compile("adamw", "binary_crossentropy")
print("sequence:", *history(model, words, (words[:, 0] > 9).astype("float32")))


class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        self.zero_grad()
        loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        loss.backward()
        with torch.no_grad():
            self.optimizer.apply([v.value.grad for v in self.trainable_weights], self.trainable_weights)
        for metric in self.metrics:
            metric.update_state(loss)
        return {metric.name: metric.result() for metric in self.metrics}


points = rng.normal(size=(32, 3)).astype("float32")
model = Own()
model.compile(keras.optimizers.SGD(0.05), "mse")
print("own step:", *history(model, points, points.sum(1, keepdims=True)))
