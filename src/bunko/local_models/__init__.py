"""Models on this machine: which are known, where their files are, and how they run on onnxruntime."""
