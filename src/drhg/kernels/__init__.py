"""How kernels are compiled, kept and made ready."""
