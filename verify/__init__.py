"""The judge: what is true of a CUDA candidate. Does it compile, is it right, how fast is it."""
