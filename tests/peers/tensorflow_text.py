#!/usr/bin/env python3
"""Steps of TensorFlow with the zoo's recurrent models of texts, for figures side by side with
`lockstep bench MODEL`:

    tensorflow_text.py MODEL [--batch-size N] [--width N] [--threads N] [--seconds S] [--xla]

MODEL: text-lstm, text-bilstm; vocabulary 20,000, 64 time steps, 6 classes, Adam; --width N is
that of the embedding and of what follows it. A step is one compiled function. --xla compiles it
by XLA as well: measure both, and count the faster one.
"""
import argparse
import os
import statistics
import time

VOCABULARY, CLASSES, STEPS = 20000, 6, 64


def make_step(tf, model, width, xla):
    keras = tf.keras
    layer = keras.layers.LSTM(width)
    if model == "text-bilstm":
        layer = keras.layers.Bidirectional(layer)
    net = keras.Sequential([keras.layers.Embedding(VOCABULARY, width), layer,
                            keras.layers.Dense(CLASSES)])  # fmt: skip
    adam = keras.optimizers.Adam(1e-3)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    net.build((None, STEPS))
    adam.build(net.trainable_variables)

    @tf.function(jit_compile=xla)
    def step(x, labels):
        with tf.GradientTape() as tape:
            value = loss(labels, net(x, training=True))
        adam.apply_gradients(zip(tape.gradient(value, net.trainable_variables),
                                 net.trainable_variables))  # fmt: skip
        return value

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=["text-lstm", "text-bilstm"])
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--xla", action="store_true")
    a = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(a.threads)
    step = make_step(tf, a.model, a.width, a.xla)
    x = tf.random.uniform((a.batch_size, STEPS), 0, VOCABULARY, tf.int32)
    labels = tf.random.uniform((a.batch_size,), 0, CLASSES, tf.int32)
    took, until = [], time.perf_counter() + a.seconds
    while len(took) < 6 or time.perf_counter() < until:
        start = time.perf_counter()
        step(x, labels).numpy()
        took.append(time.perf_counter() - start)
    took = took[2:]
    print(f"tensorflow {tf.__version__} {a.model} width {a.width} batch {a.batch_size} "
          f"{a.threads} threads{' xla' if a.xla else ''}: "
          f"{a.batch_size / statistics.median(took):.0f} sequences/s "
          f"(best {a.batch_size / min(took):.0f}, {len(took)} steps)")  # fmt: skip


if __name__ == "__main__":
    main()
