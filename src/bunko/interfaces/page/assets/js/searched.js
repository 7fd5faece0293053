// Recent searches: kept by this browser alone, and shown while nothing is searched.
import { element } from "./dom.js";

const KEY = "bunko-searches";
const MAX = 8;

/** @returns {string[]} */
function read() {
  try {
    const known = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(known) ? known.filter((text) => typeof text === "string").slice(0, MAX) : [];
  } catch {
    return []; // it is full, forbidden, or not ours
  }
}

/** @param {string[]} queries */
function write(queries) {
  try {
    localStorage.setItem(KEY, JSON.stringify(queries));
  } catch {
    // Then the browser forgets them.
  }
}

/**
 * Remember a search that somebody has finished or used.
 * @param {string} query
 */
export function remember(query) {
  const text = query.trim().slice(0, 200);
  if (text) write([text, ...read().filter((known) => known !== text)].slice(0, MAX));
}

/**
 * Show the recent searches, or hide them.
 * @param {HTMLElement} section
 * @param {boolean} isShown
 */
export function showSearched(section, isShown) {
  const queries = isShown ? read() : [];
  section.hidden = !queries.length;
  section.querySelector("ul")?.replaceChildren(
    ...queries.map((query) => element("li", {}, element("a", { href: `/?${new URLSearchParams({ q: query })}` }, query))),
  );
}

export function forget() {
  write([]);
}
