"""Analyze Japanese and English text: words, n-grams, sentences, dates."""
