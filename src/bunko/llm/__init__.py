"""Ask a chat model to rewrite queries and to summarize results."""
