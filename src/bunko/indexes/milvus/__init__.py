"""Find candidates in Milvus, and rank them as the embedded index does."""
