"""How the small demonstration model is made, and the model itself."""

from pathlib import Path

MODEL: Path = Path(__file__).resolve().parent / "model" / "regraph-demo-q8_0.gguf"
"""The shipped model, a GGUF that llama.cpp loads."""
