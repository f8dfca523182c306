"""Learning to repair: labels, decisions drawn from them, and the training loop."""
