"""CUDA C++ executed on the CPU: the level ``functional``, where no GPU is present."""

from verify.cpu.execute import available, execute

__all__ = ["available", "execute"]
