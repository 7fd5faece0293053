// Search as you type: the address says what is searched, the server renders the results.
import { t } from "./dom.js";
import { openInEditor, scrollToHit, showDocument } from "./document_view.js";
import { rememberFocus, restoreFocus } from "./followed.js";
import { SessionEnded, fetchPart, say } from "./fragments.js";
import { listenToKeys } from "./keys.js";
import { fillForm, formAddress, setHidden } from "./search_form.js";
import { forget, remember, showSearched } from "./searched.js";
import { addSliders } from "./sliders.js";

const DELAY = 8; // milliseconds after a key: half a frame, so that keys that come at once ask once
const PAUSE = 400; // after the results of the last key, until changed files are looked for
const SPOKEN_DELAY = 600; // until the number of results is said
const wide = matchMedia("(min-width: 64rem)");
const hasMargin = matchMedia("(min-width: 78rem)"); // for what narrows the results, beside them

const form = /** @type {HTMLFormElement} */ (document.getElementById("search"));
const input = /** @type {HTMLInputElement} */ (document.getElementById("query"));
const panel = /** @type {HTMLElement} */ (document.getElementById("panel"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
const columns = /** @type {HTMLElement} */ (panel.parentElement);
const searched = /** @type {HTMLElement} */ (document.getElementById("searched"));

/** @type {AbortController | null} */
let running = null;
let typing = 0;
let pausing = 0;
let speaking = 0;
let isComposing = false;
// Whether the address was chosen on purpose: typing goes on in the entry of the history that it has begun.
let isSettled = true;
let shownSearch = comparable(location.search);

document.documentElement.classList.add("scripts");
addSliders(form);

/** @param {string} search */
function comparable(search) {
  const parameters = new URLSearchParams(search);
  for (const name of ["open", "hit", "at"]) parameters.delete(name);
  return parameters.toString();
}

/** Show what narrows the results where there is room for it. */
function unfoldFacets() {
  const details = document.querySelector("#facets details");
  if (details instanceof HTMLDetailsElement) details.open = hasMargin.matches && !columns.classList.contains("split");
}

/**
 * Search what the form says.
 * @param {"push" | "replace"} how
 */
function search(how) {
  const address = formAddress();
  if (comparable(new URL(address, location.origin).search) === shownSearch && how === "replace") return;
  if (how === "push" || isSettled) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  isSettled = how === "push";
  closePanel(false);
  void showResults(address, undefined, how === "replace");
}

/**
 * Fetch and show the results of an address; an answer that is not the newest is dropped.
 * @param {string} address
 * @param {string} [focus] what gets the focus then
 * @param {boolean} [isTyped] whether more letters may follow: the server looks for changed files after a pause only
 */
async function showResults(address, focus, isTyped = false) {
  running?.abort();
  clearTimeout(pausing);
  const current = new AbortController();
  running = current;
  const url = new URL(address, location.origin);
  shownSearch = comparable(url.search);
  showSearched(searched, !shownSearch);
  if (isTyped) url.searchParams.set("typed", "true");
  try {
    const results = await fetchPart(url.href, "results", current.signal);
    if (current !== running) return;
    replaceResults(results, focus);
    document.title = `${input.value || t("common.page_search")} · ${t("common.name")}`;
    speak(results.dataset.status ?? "");
    if (isTyped) pausing = window.setTimeout(showResults, PAUSE, address);
    else await showFacets(address, current);
  } catch (error) {
    if (current.signal.aborted) return;
    if (error instanceof SessionEnded) say(error.message);
    else say(error instanceof TypeError ? t("search.offline") : t("search.failed", { message: String(/** @type {Error} */ (error).message) }));
  }
}

/**
 * Fetch and show what narrows the results: counting takes longer than searching, so only after a pause.
 * @param {string} address
 * @param {AbortController} current
 */
async function showFacets(address, current) {
  const facets = await fetchPart(address, "facets", current.signal);
  const shown = document.getElementById("facets");
  if (current !== running || !shown || shown.isEqualNode(facets)) return;
  const hasFocus = shown.contains(document.activeElement);
  const wasOpen = shown.querySelector("details")?.open ?? false;
  shown.replaceWith(facets);
  unfoldFacets();
  const details = facets.querySelector("details");
  if (details && wasOpen && !columns.classList.contains("split")) details.open = true;
  if (hasFocus) /** @type {HTMLElement} */ (facets.querySelector("a, summary") ?? input).focus();
  if (facets.dataset.status) speak(facets.dataset.status);
}

/**
 * Show results, unless they are what is shown already.
 * @param {HTMLElement} results
 * @param {string} [focus] what gets the focus then
 */
function replaceResults(results, focus) {
  const selected = /** @type {HTMLElement | null} */ (document.activeElement?.closest("#results .result"))?.dataset.citation;
  const shown = document.getElementById("results");
  if (!focus && shown?.isEqualNode(results)) return;
  shown?.replaceWith(results);
  markShown();
  if (focus) /** @type {HTMLElement | null} */ (results.querySelector(focus))?.focus();
  else if (selected) focusResult(results, selected);
}

/**
 * Select the result that was selected before, else the first one: results may come while somebody moves through them.
 * @param {HTMLElement} results
 * @param {string} citation
 */
function focusResult(results, citation) {
  const found = [...results.querySelectorAll(".result")];
  const same = found.find((result) => /** @type {HTMLElement} */ (result).dataset.citation === citation) ?? found[0];
  const link = same?.querySelector("a.name");
  if (link instanceof HTMLElement) link.focus({ preventScroll: true });
  else input.focus();
}

/** @param {string} text */
function speak(text) {
  clearTimeout(speaking);
  speaking = window.setTimeout(() => (status.textContent = text), SPOKEN_DELAY);
}

function typed() {
  clearTimeout(typing);
  if (!isComposing) typing = window.setTimeout(search, DELAY, "replace");
}

form.addEventListener("compositionstart", () => {
  isComposing = true;
  clearTimeout(typing);
});
form.addEventListener("compositionend", () => {
  isComposing = false;
  typed();
});
form.addEventListener("input", (event) => {
  const target = event.target;
  if (event instanceof InputEvent && event.isComposing) return;
  if (target instanceof HTMLSelectElement) return; // `change` follows
  typed();
});
form.addEventListener("change", (event) => {
  const target = event.target;
  if (target instanceof HTMLSelectElement) search("push");
  else if (target instanceof HTMLInputElement && target.dataset.for) setDates({ [target.dataset.for]: target.value });
  else isSettled = true;
});
/** @param {Record<string, string>} dates */
function setDates(dates) {
  for (const [name, value] of Object.entries(dates)) {
    const field = form.elements.namedItem(name);
    if (field instanceof HTMLInputElement) field.value = value;
  }
  search("push");
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  remember(input.value);
  if (comparable(new URL(formAddress(), location.origin).search) === shownSearch) isSettled = true;
  else search("push");
});

/**
 * Show the search of a link.
 * @param {HTMLAnchorElement} link
 */
function follow(link) {
  history.pushState(null, "", link.href);
  isSettled = true;
  fillForm();
  closePanel(false);
  void showResults(location.href);
}

addEventListener("popstate", async () => {
  const parameters = new URLSearchParams(location.search);
  fillForm();
  isSettled = true;
  const isNew = comparable(location.search) !== shownSearch;
  if (parameters.has("tuning") !== Boolean(document.getElementById("ranking"))) return location.reload();
  const address = parameters.get("open");
  if (!address) closePanel(false);
  if (isNew) await showResults(location.href);
  if (address) void openBeside(documentAddress(parameters), null, false);
  else restoreFocus();
});

/** @param {URLSearchParams} parameters */
function documentAddress(parameters) {
  const [tool = "", ...path] = (parameters.get("open") ?? "").split("/");
  const known = new URLSearchParams();
  for (const name of ["hit", "at", "q"]) {
    const value = parameters.get(name);
    if (value) known.set(name, value);
  }
  return `/documents/${encodeURIComponent(tool)}/${path.map(encodeURIComponent).join("/")}?${known}`;
}

/**
 * Show a document beside the results.
 * @param {string} address of the document
 * @param {string | null} entry the address of the page with it; null if it has it already
 * @param {boolean} takesFocus
 */
async function openBeside(address, entry, takesFocus) {
  let article;
  try {
    article = await fetchPart(address, "document");
  } catch (error) {
    say(error instanceof SessionEnded ? error.message : t("document.failed"));
    return;
  }
  if (entry) {
    isSettled = true;
    history.pushState(null, "", entry);
  }
  panel.replaceChildren(article);
  panel.hidden = false;
  columns.classList.add("split");
  unfoldFacets();
  const text = /** @type {HTMLElement} */ (article.querySelector(".text"));
  showDocument(article, text);
  if (takesFocus) text.focus({ preventScroll: true });
  markShown();
}

/** @param {boolean} writesAddress */
function closePanel(writesAddress) {
  if (panel.hidden) return false;
  panel.hidden = true;
  panel.replaceChildren();
  columns.classList.remove("split");
  unfoldFacets();
  if (writesAddress) history.pushState(null, "", formAddress());
  markShown();
  return true;
}

function markShown() {
  const parameters = new URLSearchParams(location.search);
  for (const link of document.querySelectorAll("#results a.name")) {
    const own = new URL(/** @type {HTMLElement} */ (link).dataset.beside ?? "", location.origin).searchParams;
    const isShown = !panel.hidden && own.get("open") === parameters.get("open") && own.get("hit") === parameters.get("hit");
    link.closest(".result")?.classList.toggle("shown", isShown);
  }
}

/**
 * @param {HTMLElement} result
 * @param {string} kind
 */
async function copy(result, kind) {
  try {
    await navigator.clipboard.writeText(result.dataset[kind] ?? "");
    say(t("search.copied"));
  } catch {
    say(t("search.copy_failed"));
  }
}

/**
 * Explain a result, or no longer; the focus stays on its link.
 * @param {HTMLAnchorElement} link
 */
function explain(link) {
  const number = [...document.querySelectorAll("#results .result")].indexOf(/** @type {Element} */ (link.closest(".result")));
  const address = new URL(link.href);
  history.replaceState(null, "", address);
  setHidden("why", address.searchParams.get("why") ?? "");
  void showResults(address.pathname + address.search, `.result:nth-child(${number + 1}) .why-link`);
}

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target.closest("a, button") : null;
  if (!(target instanceof HTMLElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (!(target instanceof HTMLAnchorElement)) return press(target);
  if (target.matches("a.name")) remember(input.value);
  if (target.closest("#results")) rememberFocus(target);
  const act = actionOf(target, event.detail === 0);
  if (!act) return;
  event.preventDefault();
  act();
});

/**
 * Return what a link does here; null if it leads to another page.
 * @param {HTMLAnchorElement} link
 * @param {boolean} isKey whether a key pressed it
 * @returns {(() => void) | null}
 */
function actionOf(link, isKey) {
  const { since, beside } = link.dataset;
  if (link.matches("#facets a, #searched a, #results .tag, #results .like")) return () => follow(link);
  if (since) return () => setDates({ since, until: "" });
  if (link.classList.contains("why-link")) return () => explain(link);
  if (link.classList.contains("tune")) return changeTuning;
  if (beside && wide.matches) return () => void openBeside(link.getAttribute("href") ?? "", beside, isKey);
  return null;
}

function changeTuning() {
  const ranking = document.getElementById("ranking");
  setHidden("tuning", ranking ? "" : "true");
  ranking?.remove(); // what was tried there is no longer searched
  location.assign(formAddress());
}

/** @param {HTMLElement} button */
function press(button) {
  const picker = button.closest(".pick")?.querySelector("input");
  if (picker instanceof HTMLInputElement) return picker.showPicker();
  const result = /** @type {HTMLElement | null} */ (button.closest(".result"));
  if (button.dataset.copy && result) void copy(result, button.dataset.copy);
  else if (button.dataset.openEditor) {
    const line = result?.dataset.line ?? document.getElementById("document")?.dataset.line ?? "1";
    void openInEditor(button.dataset.openEditor, Number(line));
  } else if (button.classList.contains("close") && closePanel(true)) input.focus();
  else if (button.classList.contains("help")) showKeys();
  else if (button.classList.contains("forget")) {
    forget();
    showSearched(searched, false);
    input.focus();
  }
}

function showKeys() {
  const dialog = document.getElementById("keys");
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal();
}

hasMargin.addEventListener("change", unfoldFacets);
unfoldFacets();
showSearched(searched, !shownSearch);

listenToKeys({ input, closePanel: () => closePanel(true), showKeys });

const opened = document.getElementById("document");
if (opened) {
  const text = /** @type {HTMLElement} */ (opened.querySelector(".text"));
  showDocument(opened, wide.matches ? text : null);
  scrollToHit(opened);
  markShown();
}
const navigation = performance.getEntriesByType("navigation")[0];
if (navigation instanceof PerformanceNavigationTiming && navigation.type === "back_forward") restoreFocus();
