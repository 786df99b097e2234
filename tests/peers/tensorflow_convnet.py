"""Training speed of TensorFlow on the ConvNet of Fashion-MNIST: prints "... N /s" (images)."""
import argparse
import os
import statistics
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import numpy
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--batch-size', type=int, default=512)
parser.add_argument('--steps', type=int, default=30, help='that are timed, after two')
parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
parser.add_argument('--compile', action='store_true', help='by XLA')
options = parser.parse_args()

tf.config.threading.set_intra_op_parallelism_threads(options.threads)
tf.config.threading.set_inter_op_parallelism_threads(1)
layers = tf.keras.layers
net = tf.keras.Sequential([
    tf.keras.Input((28, 28, 1)),
    layers.Conv2D(32, 3, activation='relu'), layers.MaxPooling2D(2),
    layers.Conv2D(64, 3, activation='relu'), layers.MaxPooling2D(2),
    layers.Conv2D(64, 3, activation='relu'),
    layers.Flatten(), layers.Dense(64, activation='relu'), layers.Dense(10),
])
random = numpy.random.default_rng(0)
images = tf.constant(random.random((options.batch_size, 28, 28, 1), dtype=numpy.float32))
labels = tf.constant(random.integers(0, 10, options.batch_size), dtype=tf.int32)
optimizer = tf.keras.optimizers.Adam(0.001)
optimizer.build(net.trainable_variables)


@tf.function(jit_compile=options.compile)
def take_step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels, net(images, training=True)))
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    return loss


seconds = []
for _ in range(options.steps + 2):
    start = time.perf_counter()
    float(take_step())  # waits
    seconds.append(time.perf_counter() - start)

rate = options.batch_size / statistics.median(seconds[2:])
print(f'tensorflow {tf.__version__}, batch {options.batch_size}, {options.threads} threads: '
      f'{rate:.1f} /s')
