"""What only knows the compiler: kernels, and compiled code that the next start loads."""
