"""Web pages: a URL goes in; past the guard, robots.txt and Safe Browsing, the page as it came goes out."""
