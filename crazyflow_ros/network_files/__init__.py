"""Networks in files of other projects, in HDF5 and ONNX, which nobody vouches for.

The libraries that read them do not bear hostile files: a changed bit makes HDF5 wait for ever, and
16 MiB of ONNX become gigabytes. So a process of its own reads them, see `__main__`, with limits on
memory and processor time and without other files. It gets the content of a file, and answers with
an archive of arrays, which `policy` checks like its own files:

- `layers`: JSON, a list of kinds and activations;
- `0.weights` and so on: the arrays of each layer;
- ONNX: `samples` (n, n_in) and what the network makes of them, `expected` (n, n_out), according to
  ONNX's own evaluator; `specification`: the text in the metadata, if there is one.

NumPy only, so that the process starts quickly.
"""

MOST_BYTES = 16 * 1024 * 1024
"""Largest size of a file, and of the arrays of a policy."""
MOST_LAYERS, MOST_UNITS = 32, 4096
MOST_NODES = 1000
"""Most nodes, and most constants, of an ONNX graph."""
MOST_NUMBERS = MOST_BYTES // 4
"""Most weights of a policy, in single precision."""
MEMORY = 1 << 30
"""Address space that the process may need beyond its own to read a file [bytes]."""
SECONDS = 3
"""Processor time in which it has to read the file."""
REFUSED = 3
"""Exit code of the process after a refusal, whose reason is then on stderr."""

DENSE = ("weights", "bias")
"""Arrays of a dense layer."""
GRU = ("input_weights", "hidden_weights", "input_bias", "hidden_bias", "initial")
"""Arrays of a recurrent layer."""
KEY = "crazyflow_ros"
"""Key of the specification in the metadata of an ONNX model."""
