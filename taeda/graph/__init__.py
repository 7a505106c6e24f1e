"""What is done with a whole call: repeating it without its Python code."""
