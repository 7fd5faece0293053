"""Read office documents and e-books: ZIP files of XML, with limits on everything that such a file can claim to be."""
