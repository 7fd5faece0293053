// A document: the hit scrolled into view, lines loaded when they come near, and the outline.
import { request } from "./api.js";
import { element, t } from "./dom.js";
import { fetchPart, say } from "./fragments.js";

const MAX_LINES = 2000; // more are taken out at the other end
const NEAR = "1200px";

/**
 * Let an article scroll and load by itself.
 * @param {HTMLElement} article
 * @param {HTMLElement | null} scroller what scrolls; null if the whole page does
 */
export function showDocument(article, scroller) {
  if (!scrollToAnchor(article)) scrollToHit(article);
  // Some browsers keep their place by themselves, others do not: `keepPlace` does it for all of them.
  scrollerOf(article).style.setProperty("overflow-anchor", "none");
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting && entry.target instanceof HTMLAnchorElement) void loadMore(article, entry.target, watcher);
      }
    },
    { root: scroller, rootMargin: `${NEAR} 0px` },
  );
  watchLinks(article, watcher);
  article.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link.closest(".load")) {
      event.preventDefault();
      void loadMore(article, link, watcher);
    } else if (link.dataset.view) {
      event.preventDefault();
      if (!link.hasAttribute("aria-current")) void changeView(article, link, watcher);
    } else if (link.dataset.line) {
      event.preventDefault();
      void jump(article, link, watcher);
    }
  });
}

/** @param {HTMLElement} article */
export function scrollToHit(article) {
  const place = article.querySelector(".hit mark") ?? article.querySelector(".hit");
  if (place) scrollToPlace(article, place, "center");
}

/**
 * Go to the line that the address of the page names: L12, or what begins before it.
 * @param {HTMLElement} article
 */
function scrollToAnchor(article) {
  const line = /^#L(\d+)$/.exec(location.hash)?.[1];
  const place = line && !article.closest("#panel") ? findLine(article, Number(line)) : null;
  // What stands above it is loaded later, so where the page was scrolled to before is somewhere else.
  if (place) history.scrollRestoration = "manual";
  place?.scrollIntoView();
  return Boolean(place);
}

/**
 * Return what shows a line of the document, or the last one before it.
 * @param {HTMLElement} article
 * @param {number} line
 */
function findLine(article, line) {
  const named = [...article.querySelectorAll(".block")].find((block) => between(block, line))?.querySelectorAll("[id^=L]");
  return [...(named ?? [])].filter((place) => Number(place.id.slice(1)) <= line).at(-1) ?? null;
}

/**
 * @param {Element} block
 * @param {number} line
 */
function between(block, line) {
  const { first, last } = /** @type {HTMLElement} */ (block).dataset;
  return Number(first) <= line && line <= Number(last);
}

/**
 * Return the line at the top of the screen; none if the hit is on the screen, or the beginning.
 * @param {HTMLElement} article
 */
function topLine(article) {
  const scroller = scrollerOf(article);
  const box = scroller === document.scrollingElement ? { top: 0, bottom: innerHeight } : scroller.getBoundingClientRect();
  const isVisible = (/** @type {Element} */ place) => {
    const { top, bottom } = place.getBoundingClientRect();
    return bottom > box.top && top < box.bottom;
  };
  if ([...article.querySelectorAll(".hit")].some(isVisible)) return "";
  const places = [...article.querySelectorAll(".block [id^=L]")];
  const place = places.find(isVisible);
  return place && place !== places[0] ? place.id.slice(1) : "";
}

/**
 * Show the document in the other view, at the same place.
 * @param {HTMLElement} article
 * @param {HTMLAnchorElement} link
 * @param {IntersectionObserver} watcher
 */
async function changeView(article, link, watcher) {
  const line = topLine(article);
  const address = new URL(link.href);
  if (line) address.searchParams.set("lines", line);
  const fetched = new URL(address);
  fetched.searchParams.set("outline", "true");
  try {
    const part = await fetchPart(fetched.href, "document");
    const text = /** @type {HTMLElement} */ (article.querySelector(".text"));
    const fresh = /** @type {HTMLElement} */ (part.querySelector(".text"));
    text.className = fresh.className;
    text.replaceChildren(...fresh.childNodes);
    for (const kind of [".views", ".outline ol", ".lines"]) {
      const replacement = part.querySelector(kind);
      if (replacement) article.querySelector(kind)?.replaceWith(replacement);
    }
    watchLinks(article, watcher);
    const place = line ? findLine(article, Number(line)) : null;
    if (place) scrollToPlace(article, place, "start");
    else scrollToHit(article);
    if (!article.closest("#panel")) history.replaceState(null, "", `${address.pathname}${address.search}${line ? `#L${line}` : ""}`);
    /** @type {HTMLElement | null} */ (article.querySelector(".views [aria-current]"))?.focus({ preventScroll: true });
  } catch {
    say(t("document.failed"));
  }
}

/**
 * Beside the results, only the document scrolls: the search and the results stay where they are.
 * @param {HTMLElement} article
 * @param {Element} place
 * @param {"start" | "center"} block
 */
function scrollToPlace(article, place, block) {
  const panel = article.closest("#panel");
  if (!panel || getComputedStyle(panel).position !== "sticky") {
    place.scrollIntoView({ block });
    return;
  }
  const text = scrollerOf(article);
  const [outer, inner] = [text.getBoundingClientRect(), place.getBoundingClientRect()];
  text.scrollTop += inner.top - outer.top - (block === "center" ? (outer.height - inner.height) / 2 : 0);
  place.scrollIntoView({ block: "nearest" });
}

/**
 * @param {HTMLElement} article
 * @param {IntersectionObserver} watcher
 */
function watchLinks(article, watcher) {
  watcher.disconnect();
  for (const link of article.querySelectorAll(".load a")) watcher.observe(link);
}

/**
 * Put the lines behind a link in its place.
 * @param {HTMLElement} article
 * @param {HTMLAnchorElement} link
 * @param {IntersectionObserver} watcher
 */
async function loadMore(article, link, watcher) {
  const place = link.parentElement;
  const text = place?.parentElement;
  if (!place || !text || place.dataset.busy) return;
  place.dataset.busy = "true";
  watcher.unobserve(link);
  try {
    const part = await fetchPart(link.href, "document");
    if (place.isConnected) insert(article, text, place, part);
    watchLinks(article, watcher);
  } catch {
    delete place.dataset.busy;
    say(t("document.failed"));
  }
}

/**
 * @param {HTMLElement} article
 * @param {Element} text
 * @param {Element} place of the link
 * @param {HTMLElement} part
 */
function insert(article, text, place, part) {
  const isBefore = place.querySelector("a.before") !== null;
  const blocks = [...part.querySelectorAll(".block")];
  const next = [...part.querySelectorAll(`.load:has(a.${isBefore ? "before" : "after"})`)];
  if (isBefore) keepPlace(article, place.nextElementSibling, () => place.replaceWith(...next, ...blocks));
  else place.replaceWith(...blocks, ...next);
  trim(article, text, isBefore);
}

/**
 * Change what stands above an element, and keep that where it is on the screen.
 * @param {HTMLElement} article
 * @param {Element | null | undefined} anchor
 * @param {() => void} change
 */
function keepPlace(article, anchor, change) {
  const top = anchor?.getBoundingClientRect().top ?? 0;
  change();
  const moved = (anchor?.getBoundingClientRect().top ?? 0) - top;
  scrollerOf(article).scrollBy(0, moved);
}

/**
 * Take blocks out at the far end, and leave a link there that loads them again. What is near the screen stays: lines that
 * readers do not see have no height.
 * @param {HTMLElement} article
 * @param {Element} text
 * @param {boolean} isBefore whether lines came in before the others
 */
function trim(article, text, isBefore) {
  const blocks = /** @type {HTMLElement[]} */ ([...text.querySelectorAll(".block")]);
  const inOrder = isBefore ? [...blocks] : [...blocks].reverse();
  let lines = 0;
  const removed = inOrder.filter((block) => {
    lines += Number(block.dataset.last) - Number(block.dataset.first) + 1;
    const { top, bottom } = block.getBoundingClientRect();
    return lines > MAX_LINES && (bottom < -innerHeight || top > 2 * innerHeight);
  });
  if (!removed.length) return;
  const numbers = removed.flatMap((block) => [Number(block.dataset.first), Number(block.dataset.last)]);
  const link = farLink(text, isBefore ? "after" : "before");
  const address = new URL(article.dataset.api?.replace("/api/v1", "") ?? "", location.origin);
  address.searchParams.set("lines", `${Math.min(...numbers)}-${Math.max(...numbers)}`);
  const view = /** @type {HTMLElement | null} */ (article.querySelector(".views [aria-current]"))?.dataset.view;
  address.searchParams.set("view", view ?? "");
  link.href = address.pathname + address.search;
  keepPlace(article, isBefore ? null : blocks[removed.length], () => {
    for (const block of removed) block.remove();
  });
}

/**
 * Return the link to the lines at one end, a new one if there is none.
 * @param {Element} text
 * @param {"before" | "after"} kind
 */
function farLink(text, kind) {
  const found = text.querySelector(`.load a.${kind}`);
  if (found instanceof HTMLAnchorElement) return found;
  const link = element("a", { class: kind }, t(`document.${kind}`));
  const place = element("p", { class: "load" }, link);
  if (kind === "after") text.append(place);
  else text.prepend(place);
  return link;
}

/**
 * Go to a line: in what is loaded, else in a new part.
 * @param {HTMLElement} article
 * @param {HTMLAnchorElement} link
 * @param {IntersectionObserver} watcher
 */
async function jump(article, link, watcher) {
  const line = Number(link.dataset.line);
  if (!findLine(article, line)) {
    const text = article.querySelector(".text");
    try {
      const part = await fetchPart(link.href, "document");
      text?.replaceChildren(...(part.querySelector(".text")?.childNodes ?? []));
      const lines = part.querySelector(".lines");
      if (lines) article.querySelector(".lines")?.replaceWith(lines);
      watchLinks(article, watcher);
    } catch {
      say(t("document.failed"));
      return;
    }
  }
  const place = findLine(article, line);
  if (place) scrollToPlace(article, place, "start");
}

/** @param {HTMLElement} article */
function scrollerOf(article) {
  return /** @type {HTMLElement} */ (article.closest("#panel") ? article.querySelector(".text") : document.scrollingElement);
}

/**
 * Ask the server to open a document in its user's editor.
 * @param {string} address of the page of the document
 * @param {number} line
 */
export async function openInEditor(address, line) {
  try {
    await request("POST", `${address}/open`, { line });
    say(t("document.opened"));
  } catch (error) {
    say(/** @type {Error} */ (error).message);
  }
}
