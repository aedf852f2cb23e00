"""Predictions: distributions of targets, derivatives, and novelty of inputs."""
