// Keys for everything: results are links, so that the focus is what is selected.

/**
 * @param {{input: HTMLInputElement, closePanel: () => boolean, showKeys: () => void}} page
 */
export function listenToKeys(page) {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    const target = event.target instanceof HTMLElement ? event.target : document.body;
    const isHandled = target === page.input ? actInInput(event.key, page) : act(event.key, target, page);
    if (isHandled) event.preventDefault();
  });
}

/**
 * @param {string} key
 * @param {{closePanel: () => boolean}} page
 */
function actInInput(key, { closePanel }) {
  return key === "ArrowDown" ? move(1) : key === "Escape" && closePanel();
}

/**
 * @param {string} key
 * @param {HTMLElement} target
 * @param {{input: HTMLInputElement, closePanel: () => boolean, showKeys: () => void}} page
 * @returns {boolean} whether the key means something
 */
function act(key, target, { input, closePanel, showKeys }) {
  if (target.matches("input, select, textarea") && key !== "Escape") return false;
  const isInDocument = target.closest("#panel") !== null;
  switch (key) {
    case "/":
      input.focus();
      input.select();
      return true;
    case "j":
      return move(1);
    case "k":
      return move(-1) || focusInput(input);
    case "ArrowDown":
      return !isInDocument && move(1);
    case "ArrowUp":
      return !isInDocument && (move(-1) || focusInput(input));
    case "Escape": {
      const shown = document.querySelector(".result.shown a.name");
      if (closePanel()) {
        if (shown instanceof HTMLElement) shown.focus();
        return true;
      }
      return focusInput(input);
    }
    case "?":
      showKeys();
      return true;
    case "w":
      return press(target, ".why-link");
    case "c":
      return press(target, '[data-copy="citation"]');
    case "m":
      return press(target, '[data-copy="markdown"]');
    case "o":
      return press(target, "[data-open-editor]");
    default:
      return false;
  }
}

/**
 * Move the focus to the next or previous result.
 * @param {1 | -1} step
 */
function move(step) {
  const links = [...document.querySelectorAll("#results a.name")];
  const current = document.activeElement?.closest(".result") ?? (step > 0 ? null : document.querySelector(".result.shown"));
  const index = current ? links.findIndex((link) => current.contains(link)) : -1;
  const next = links[index + step];
  if (!(next instanceof HTMLElement) || (index < 0 && step < 0)) return false;
  next.focus({ preventScroll: true });
  next.closest(".result")?.scrollIntoView({ block: "nearest" });
  return true;
}

/** @param {HTMLInputElement} input */
function focusInput(input) {
  input.focus();
  scrollTo(0, 0);
  return true;
}

/**
 * Press a button of the result or document that has the focus, else of the document that is shown.
 * @param {HTMLElement} target
 * @param {string} selector
 */
function press(target, selector) {
  const place = target.closest(".result, #document") ?? document.querySelector(".result.shown");
  const button = place?.querySelector(selector);
  if (!(button instanceof HTMLElement)) return false;
  button.click();
  return true;
}
