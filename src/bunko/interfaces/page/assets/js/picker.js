// Choose a folder or a file of the server: a dialog that lists one folder after the other.

import { request } from "./api.js";
import { element, t } from "./dom.js";
import { ServerProblem } from "./fragments.js";

/** @typedef {{path: string, parent: string, truncated: boolean, entries: {name: string, path: string, kind: string}[]}} Folder */

/** Let the button of the form open the dialog, if the page has one. */
export function addPicker() {
  const dialog = document.getElementById("picker");
  const button = document.querySelector("[data-picker]");
  const source = document.getElementById("source");
  if (!(dialog instanceof HTMLDialogElement) || !(source instanceof HTMLInputElement)) return;

  button?.addEventListener("click", () => {
    void show(dialog, source.value.trim()).then((isShown) => isShown || show(dialog, ""));
    dialog.showModal();
  });
  dialog.addEventListener("keydown", (event) => {
    const entries = [...dialog.querySelectorAll("ul button")];
    const number = entries.indexOf(/** @type {Element} */ (document.activeElement));
    const next = { ArrowDown: number + 1, ArrowUp: number - 1, Home: 0, End: entries.length - 1 }[event.key];
    const entry = number < 0 || next === undefined ? undefined : entries[next];
    if (!(entry instanceof HTMLElement)) return;
    event.preventDefault();
    entry.focus();
  });
  dialog.addEventListener("click", (event) => {
    const pressed = event.target instanceof Element ? event.target.closest("button") : null;
    if (!pressed) return;
    if (pressed.dataset.folder !== undefined) void show(dialog, pressed.dataset.folder);
    else {
      const path = pressed.dataset.use !== undefined ? dialog.dataset.path : pressed.dataset.file;
      dialog.close();
      if (path === undefined) return;
      source.value = path;
      source.form?.requestSubmit();
    }
  });
}

/**
 * List a folder.
 * @param {HTMLDialogElement} dialog
 * @param {string} path
 * @returns {Promise<boolean>} whether it could be listed
 */
async function show(dialog, path) {
  const note = dialog.querySelector(".picker-note");
  /** @type {Folder} */
  let folder;
  try {
    folder = await request("GET", `/folders?path=${encodeURIComponent(path)}`);
  } catch (error) {
    if (!(error instanceof ServerProblem)) throw error;
    if (note) note.textContent = error.message;
    return false;
  }
  dialog.dataset.path = folder.path;
  const shownPath = dialog.querySelector(".picker-path bdi");
  if (shownPath) shownPath.textContent = folder.path;
  const rows = folder.entries.map(({ name, path: entry, kind }) =>
    row(name, kind === "folder" ? { "data-folder": entry } : { "data-file": entry }, kind),
  );
  if (folder.parent) rows.unshift(row(t("library.parent"), { "data-folder": folder.parent }, "parent"));
  dialog.querySelector("ul")?.replaceChildren(...rows);
  if (note) note.textContent = folder.truncated ? t("library.more_entries") : folder.entries.length ? "" : t("library.no_entries");
  const first = dialog.querySelector("ul button");
  if (first instanceof HTMLElement) first.focus();
  return true;
}

/**
 * @param {string} name
 * @param {Record<string, string>} attributes
 * @param {string} kind
 */
function row(name, attributes, kind) {
  return element("li", {}, element("button", { type: "button", class: `entry ${kind}`, ...attributes }, element("bdi", {}, name)));
}
