"""Text in, words, grams and sentences out: pure functions that know Japanese and English."""
