"""Networks in HDF5 and ONNX files of other projects, which are not trusted.

The libraries that read them are not safe against hostile files: one changed bit makes HDF5 loop for
ever, and 16 MiB of ONNX expand to gigabytes. A separate process therefore reads them, see
`__main__`, with limited memory and processor time and without access to files. It receives the
content of a file and answers with an archive of arrays, which `policy` checks like its own files:

- `layers`: JSON, a list of kinds and activations;
- `0.weights` and so on: the arrays of each layer;
- for ONNX: `samples` (n, n_in), the outputs `expected` (n, n_out) that ONNX's own evaluator
  computes for them, and `specification`, the text in the metadata, if there is one.

Nothing here imports JAX, so that the process starts quickly.
"""

MOST_BYTES = 16 * 1024 * 1024
"""Largest size of a file, and of the arrays of a policy."""
MOST_LAYERS, MOST_UNITS = 32, 4096
MOST_NODES = 1000
"""Most nodes, and most constants, of an ONNX graph."""
MOST_NUMBERS = MOST_BYTES // 4
"""Most weights of a policy, in single precision."""
MEMORY = 1 << 30
"""Address space that the process may use to read a file, beyond that of its start [bytes]."""
SECONDS = 3
"""Processor time that it may use to read a file [s]."""
REFUSED = 3
"""Exit code of the process after a refusal; the reason is on its standard error."""

DENSE = ("weights", "bias")
"""Arrays of a dense layer."""
GRU = ("input_weights", "hidden_weights", "input_bias", "hidden_bias", "initial")
"""Arrays of a recurrent layer."""
KEY = "crazyflow_ros"
"""Key of the specification in the metadata of an ONNX model."""
