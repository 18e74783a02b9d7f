"""How the small demonstration model is made, and the model itself."""
