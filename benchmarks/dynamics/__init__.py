"""What the samplers are worth: independent draws a second, and how low a loss they reach."""
