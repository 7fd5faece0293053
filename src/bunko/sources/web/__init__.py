"""Fetch and crawl web pages, subject to the SSRF guard, robots.txt and Safe Browsing."""
