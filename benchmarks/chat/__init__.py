"""What the chat costs around the model: `python -m benchmarks.chat`."""
