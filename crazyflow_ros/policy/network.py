"""Networks of dense, convolutional and recurrent layers, as pytrees of weights with pure functions.

PyTorch's conventions: weights are (outputs, inputs), and the gates of a GRU are reset, update, new
(Cho et al., https://arxiv.org/abs/1406.1078).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.xla.struct import Struct, static_field

Product = Callable[[Array, Array], Array]
"""Maps inputs (..., n) and weights (m, n) to (..., m)."""


def _softplus(x: Array) -> Array:
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


def _fast_tanh(x: Array) -> Array:
    x = jnp.clip(x, -3, 3)
    return x * (27 + x * x) / (27 + 9 * x * x)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "relu": lambda x: jnp.maximum(x, 0),
    "leaky_relu": lambda x: jnp.where(x >= 0, x, 0.01 * x),
    "elu": lambda x: jnp.where(x > 0, x, jnp.exp(jnp.minimum(x, 0)) - 1),
    "selu": lambda x: (
        1.05070102 * jnp.where(x > 0, x, 1.67326324 * (jnp.exp(jnp.minimum(x, 0)) - 1))
    ),
    "gelu": lambda x: x * (1 + jax.lax.erf(x * 0.5**0.5)) / 2,
    "softplus": _softplus,
    "mish": lambda x: x * jnp.tanh(_softplus(x)),
    "sigmoid": lambda x: (jnp.tanh(x / 2) + 1) / 2,
    "silu": lambda x: x * (jnp.tanh(x / 2) + 1) / 2,
    "tanh": jnp.tanh,
    "hard_tanh": lambda x: jnp.clip(x, -1, 1),
    "fast_tanh": _fast_tanh,
    "softsign": lambda x: x / (1 + jnp.abs(x)),
}
"""Activations by name. `fast_tanh` is a rational function, as in RLtools."""


def matrix_product(inputs: Array, weights: Array) -> Array:
    """Return the product by a matrix product, which suits large batches and derivatives."""
    return inputs @ weights.T


def column_by_column(inputs: Array, weights: Array) -> Array:
    """Return the product by a loop over columns, which compiles into a single kernel.

    See `kernels.one_kernel`. The order of summation does not depend on the batch.
    """
    columns = weights.T

    def add(i: Array, total: Array) -> Array:
        one = jax.lax.dynamic_index_in_dim(inputs, i, axis=-1)
        return total + one * jax.lax.dynamic_index_in_dim(columns, i, keepdims=False)

    n_out, n_in = weights.shape
    zeros = jnp.zeros((*inputs.shape[:-1], n_out), jnp.result_type(inputs, weights))
    return jax.lax.fori_loop(0, n_in, add, zeros)


class Dense(Struct):
    """A dense layer."""

    weights: Array
    """(outputs, inputs)."""
    bias: Array
    """(outputs,)."""
    activation: str = static_field()
    """Name in `ACTIVATIONS`."""
    kept: int = static_field(default=0)
    """Number of inputs, counted from the first, that are passed on in front of the outputs."""

    @property
    def n_in(self) -> int:
        """Number of inputs."""
        return self.weights.shape[1]

    @property
    def n_out(self) -> int:
        """Number of outputs, including the kept inputs."""
        return self.kept + self.weights.shape[0]

    @property
    def memory(self) -> Array:
        """(0,): the layer has no memory."""
        return self.bias[:0]

    def __call__(
        self, inputs: Array, memory: Array, product: Product = matrix_product
    ) -> tuple[Array, Array]:
        """Return outputs (..., n_out) and the memory."""
        outputs = ACTIVATIONS[self.activation](product(inputs, self.weights) + self.bias)
        if self.kept:
            outputs = jnp.concatenate([inputs[..., : self.kept], outputs], axis=-1)
        return outputs, memory


class Patches(Struct):
    """A convolution whose stride is the size of its kernel: each patch becomes a pixel.

    The numbers in front of the picture are passed on unchanged.
    """

    weights: Array
    """(channels of the output, channels of the input, kernel, kernel)."""
    bias: Array
    """(channels of the output,)."""
    activation: str = static_field()
    """Name in `ACTIVATIONS`."""
    kept: int = static_field()
    """Number of inputs in front of the picture."""
    height: int = static_field()
    """Rows of the input, a multiple of the kernel."""
    width: int = static_field()
    """Columns of the input, a multiple of the kernel."""

    @property
    def n_in(self) -> int:
        """Number of inputs."""
        return self.kept + self.height * self.width * self.weights.shape[1]

    @property
    def n_out(self) -> int:
        """Number of outputs."""
        outputs, _, kernel, _ = self.weights.shape
        return self.kept + (self.height // kernel) * (self.width // kernel) * outputs

    @property
    def memory(self) -> Array:
        """(0,): the layer has no memory."""
        return self.bias[:0]

    def __call__(
        self, inputs: Array, memory: Array, product: Product = matrix_product
    ) -> tuple[Array, Array]:
        """Return outputs (..., n_out) and the memory. Pictures are (rows, columns, channels)."""
        lead, (outputs, channels, kernel, _) = inputs.shape[:-1], self.weights.shape
        rows, columns = self.height // kernel, self.width // kernel
        picture = inputs[..., self.kept :]
        split = picture.reshape(*lead, rows, kernel, columns, kernel, channels)
        n = len(lead)
        patches = split.transpose(*range(n), *(n + i for i in (0, 2, 4, 1, 3)))
        flat = patches.reshape(*lead, rows, columns, channels * kernel * kernel)
        seen = product(flat, self.weights.reshape(outputs, -1)) + self.bias
        seen = ACTIVATIONS[self.activation](seen).reshape(*lead, -1)
        return jnp.concatenate([inputs[..., : self.kept], seen], axis=-1), memory


class Gru(Struct):
    """A gated recurrent unit."""

    input_weights: Array
    """(3 outputs, inputs)."""
    hidden_weights: Array
    """(3 outputs, outputs)."""
    input_bias: Array
    """(3 outputs,)."""
    hidden_bias: Array
    """(3 outputs,)."""
    initial: Array
    """(outputs,) memory at the start."""
    kept: int = static_field(default=0)
    """See `Dense`."""

    @property
    def n_in(self) -> int:
        """Number of inputs."""
        return self.input_weights.shape[1]

    @property
    def n_out(self) -> int:
        """Number of outputs, including the kept inputs."""
        return self.kept + self.hidden_weights.shape[1]

    @property
    def memory(self) -> Array:
        """(outputs,) memory at the start."""
        return self.initial

    def __call__(
        self, inputs: Array, memory: Array, product: Product = matrix_product
    ) -> tuple[Array, Array]:
        """Return outputs (..., n_out), which end with the new memory, and the new memory itself."""
        now = jnp.split(product(inputs, self.input_weights) + self.input_bias, 3, axis=-1)
        past = jnp.split(product(memory, self.hidden_weights) + self.hidden_bias, 3, axis=-1)
        reset, update = (ACTIVATIONS["sigmoid"](a + b) for a, b in zip(now[:2], past[:2]))
        new = jnp.tanh(now[2] + reset * past[2])
        memory = new + update * (memory - new)
        outputs = jnp.concatenate([inputs[..., : self.kept], memory], axis=-1)
        return (outputs if self.kept else memory), memory


Layer = Dense | Patches | Gru


class Network(Struct):
    """A sequence of layers."""

    layers: tuple[Layer, ...]

    @property
    def n_in(self) -> int:
        """Number of inputs."""
        return self.layers[0].n_in

    @property
    def n_out(self) -> int:
        """Number of outputs."""
        return self.layers[-1].n_out

    @property
    def memory(self) -> Array:
        """(k,) memory of all layers at the start; k is 0 without recurrent layers."""
        return jnp.concatenate([layer.memory for layer in self.layers])

    def __call__(
        self, inputs: Array, memory: Array, product: Product = matrix_product
    ) -> tuple[Array, Array]:
        """Evaluate the network once.

        Args:
            inputs: (..., n_in).
            memory: (..., k), see `memory`.
            product: Multiplies inputs by weights.

        Returns:
            Outputs (..., n_out), and the new memory.
        """
        now, memories, start = inputs, [], 0
        for layer in self.layers:
            end = start + layer.memory.size
            now, remembered = layer(now, memory[..., start:end], product)
            memories.append(remembered)
            start = end
        return now, jnp.concatenate(memories, axis=-1)

    def in_turn(self, inputs: Array, memory: Array, begins: Array) -> Array:
        """Evaluate the network on sequences of inputs, as in training.

        Args:
            inputs: (T, N, n_in).
            memory: (N, k) before the first inputs.
            begins: (T, N) bool, whether the memory is reset before an input.

        Returns:
            (T, N, n_out).
        """
        now, start = inputs, 0
        for layer in self.layers:  # those without memory for all inputs at once
            end = start + layer.memory.size
            if end == start:
                now = layer(now, memory[..., :0])[0]
                continue

            def one(
                memory: Array, given: tuple[Array, Array], layer: Layer = layer
            ) -> tuple[Array, Array]:
                inputs, begin = given
                out, memory = layer(inputs, jnp.where(begin[:, None], layer.memory, memory))
                return memory, out

            now = jax.lax.scan(one, memory[..., start:end], (now, begins))[1]
            start = end
        return now

    def apply(self, inputs: Array) -> Array:
        """Evaluate a network without recurrent layers: (..., n_in) to (..., n_out)."""
        return self(inputs, jnp.zeros((*inputs.shape[:-1], 0), inputs.dtype))[0]


def mlp(
    key: Array,
    sizes: Sequence[int],
    activation: str = "tanh",
    *,
    output_activation: str = "identity",
    output_gain: float = 0.01,
) -> Network:
    """Return a network of dense layers with random orthogonal weights and zero biases.

    The last layer is small, as is usual for policies (Andrychowicz et al.,
    https://arxiv.org/abs/2006.05990), so that all actions start near zero.

    Args:
        key: JAX random key.
        sizes: Number of inputs, units of each hidden layer, and number of outputs.
        activation: Activation of the hidden layers, a name in `ACTIVATIONS`.
        output_activation: Activation of the last layer.
        output_gain: Norm of the rows of the last layer; that of the others is sqrt(2).

    Raises:
        ValueError: There are fewer than two sizes, or an activation is unknown.
    """
    if len(sizes) < 2:
        raise ValueError(f"sizes must have those of inputs and outputs, got {list(sizes)}")
    layers, last = [], len(sizes) - 2
    for i, (n_in, n_out) in enumerate(pairwise(sizes)):
        key, subkey = jax.random.split(key)
        gain = output_gain if i == last else 2**0.5
        weights = jax.nn.initializers.orthogonal(gain)(subkey, (n_out, n_in), jnp.float32)
        name = output_activation if i == last else activation
        layers.append(Dense(weights, jnp.zeros(n_out, jnp.float32), known_activation(name)))
    return Network(tuple(layers))


def known_activation(name: str) -> str:
    """Return the name of an activation if it is known.

    Raises:
        ValueError: It is not.
    """
    if name not in ACTIVATIONS:
        raise ValueError(unknown("activation", name, ACTIVATIONS))
    return name
