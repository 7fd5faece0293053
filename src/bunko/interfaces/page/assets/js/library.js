// The page about the library: buttons and forms call the API, and the server renders what has changed.

import { request } from "./api.js";
import { t } from "./dom.js";
import { listen } from "./events.js";
import { fetchPart, say, ServerProblem } from "./fragments.js";
import { addPicker } from "./picker.js";

// An import changes the documents many times a second; the tools are not rendered more often than this, and less often
// where that takes long: the folder of an opened tool is looked at each time.
const REFRESH_MILLISECONDS = 2000;
const REFRESH_SHARE = 0.2;

/** @typedef {{id: string, name: string, subject?: string, status: string, done: number, total: number, message: string, seconds_left?: number}} Job */

document.documentElement.classList.add("scripts");

let refreshedAt = 0;
let refreshDuration = 0;
let timer = 0;
let isRefreshing = false;

/** Render the tools and jobs again, soon; not while somebody writes in them. */
function refreshSoon() {
  if (timer) return;
  const pause = Math.max(REFRESH_MILLISECONDS, refreshDuration / REFRESH_SHARE);
  const wait = Math.max(0, refreshedAt + pause - Date.now());
  timer = window.setTimeout(() => {
    timer = 0;
    void refresh();
  }, wait);
}

async function refresh() {
  const live = document.getElementById("live");
  if (!live || document.hidden || isRefreshing) return;
  if (document.activeElement?.matches("#live textarea")) return;
  isRefreshing = true;
  refreshedAt = Date.now();
  try {
    const part = await fetchPart(location.pathname + location.search, "live");
    refreshDuration = Date.now() - refreshedAt;
    const focused = focusKey();
    keepDraft(live, part);
    live.replaceWith(part);
    restoreFocus(focused);
    sayProblem("");
  } catch (error) {
    // The next event tries again; what is shown stays.
    sayProblem(error instanceof ServerProblem ? error.message : t("common.offline"));
  } finally {
    isRefreshing = false;
  }
}

let shownProblem = "";

/**
 * Say why nothing on this page changes any more, until it does again.
 * @param {string} problem
 */
function sayProblem(problem) {
  if (problem === shownProblem) return;
  shownProblem = problem;
  if (problem) say(problem, true);
  else document.querySelector(".toast")?.remove();
}

/**
 * Keep a description that somebody has begun to write.
 * @param {HTMLElement} live
 * @param {HTMLElement} part
 */
function keepDraft(live, part) {
  const [before, after] = [live, part].map((place) => place.querySelector("textarea"));
  if (before && after && before.value !== before.defaultValue) after.value = before.value;
}

/** @returns {[string, string]} the tool or job and the action that has the focus */
function focusKey() {
  const active = document.activeElement;
  const place = active?.closest("[data-tool], [data-job]");
  if (!(active instanceof HTMLElement) || !(place instanceof HTMLElement)) return ["", ""];
  return [place.id || (place.dataset.job ?? ""), active.dataset.action ?? (active.matches("a.name") ? "name" : "")];
}

/** @param {[string, string]} key */
function restoreFocus([place, action]) {
  if (!place || !action) return;
  const found = [...document.querySelectorAll("[data-tool], [data-job]")].find(
    (item) => item instanceof HTMLElement && (item.id || item.dataset.job) === place,
  );
  const selector = action === "name" ? "a.name" : `[data-action="${action}"]`;
  const opposite = { disable: "enable", enable: "disable" }[action];
  const target = found?.querySelector(selector) ?? found?.querySelector(`[data-action="${opposite}"]`);
  if (target instanceof HTMLElement) target.focus({ preventScroll: true });
}

/** @param {Job} job */
function showJob(job) {
  const row = [...document.querySelectorAll("[data-job]")].find((item) => item instanceof HTMLElement && item.dataset.job === job.id);
  if (!(row instanceof HTMLElement) || job.status !== row.dataset.state) {
    refreshedAt = 0; // something began or ended: this is shown at once
    refreshSoon();
    return;
  }
  const bar = row.querySelector("progress");
  const counts = row.querySelector(".job-counts");
  if (job.status !== "running" || !bar || !counts) return;
  if (job.total) {
    bar.max = job.total;
    bar.value = job.done;
  }
  const [done, total] = [job.done, job.total].map((count) => count.toLocaleString("en"));
  counts.textContent = job.total ? t("library.done_of", { done, total }) : t("library.preparing");
  const [message, left] = [".job-message", ".job-left"].map((name) => row.querySelector(name));
  if (message) message.textContent = job.message;
  if (left) left.textContent = job.seconds_left ? t("library.minutes_left", { count: Math.ceil(job.seconds_left / 60) }) : "";
}

/**
 * Ask a question that stops everything else; return whether the answer was yes.
 * @param {string} question
 * @param {string} note
 * @param {string} yes
 * @returns {Promise<boolean>}
 */
function ask(question, note, yes) {
  const dialog = document.getElementById("question");
  if (!(dialog instanceof HTMLDialogElement)) return Promise.resolve(false);
  const [title, text, button] = ["h2", "p", "button[value=yes]"].map((selector) => dialog.querySelector(selector));
  if (title) title.textContent = question;
  if (text) text.textContent = note;
  if (button) button.textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  const keep = dialog.querySelector("button[value=no]");
  if (keep instanceof HTMLElement) keep.focus();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

/**
 * Do what a button says.
 * @param {string} action
 * @param {string} tool
 * @param {HTMLElement} button
 */
async function act(action, tool, button) {
  const path = `/tools/${encodeURIComponent(tool)}`;
  switch (action) {
    case "import":
      await request("POST", `${path}/import`, {});
      return say(t("library.added", { name: tool }));
    case "rebuild":
      if (!(await ask(t("library.rebuild_question", { name: tool }), t("library.rebuild_note"), t("library.rebuild_yes")))) return;
      await request("POST", `${path}/import`, { mode: "replace" });
      return say(t("library.added", { name: tool }));
    case "disable":
    case "enable":
      await request("PATCH", path, { active: action === "enable" });
      return say(t(action === "enable" ? "library.now_shown" : "library.now_hidden", { name: tool }));
    case "delete": {
      const isWeb = button.closest("article")?.dataset.kind === "web";
      const note = t(isWeb ? "library.delete_pages_note" : "library.delete_note");
      if (!(await ask(t("library.delete_question", { name: tool }), note, t("library.delete_yes")))) return;
      await request("DELETE", path);
      history.replaceState(null, "", "/library");
      return say(t("library.deleted", { name: tool }));
    }
    case "cancel":
      await request("DELETE", `/jobs/${encodeURIComponent(button.dataset.id ?? "")}`);
      return say(t("library.cancelling"));
  }
}

/**
 * Run something that changes the library; show a refusal, then what has changed.
 * @param {HTMLElement | null} button that cannot be pressed again until then
 * @param {() => Promise<unknown>} change
 * @returns {Promise<boolean>} whether it was done
 */
async function run(button, change) {
  if (button?.ariaDisabled === "true") return false;
  if (button) button.ariaDisabled = "true"; // one that is disabled would lose the focus
  let isDone = true;
  try {
    await change();
  } catch (error) {
    if (!(error instanceof ServerProblem)) throw error;
    say(error.message);
    isDone = false;
  } finally {
    if (button) button.ariaDisabled = null;
  }
  refreshedAt = 0;
  await refresh();
  return isDone;
}

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("button[data-action]") : null;
  if (!(button instanceof HTMLButtonElement)) return;
  const tool = button.closest("article")?.dataset.tool ?? "";
  void run(button, () => act(button.dataset.action ?? "", tool, button));
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.matches("[data-describe], #look-up")) return;
  event.preventDefault();
  void (form.matches("#look-up") ? lookUp(form) : describe(form));
});

/** @param {HTMLFormElement} form */
async function describe(form) {
  const tool = form.closest("article")?.dataset.tool ?? "";
  const field = form.querySelector("textarea");
  await run(form.querySelector("button"), async () => {
    await request("PATCH", `/tools/${encodeURIComponent(tool)}`, { description: field?.value ?? "" });
    if (field) field.defaultValue = field.value; // no draft any more
    field?.blur();
    say(t("library.saved"));
  });
}

/**
 * Let the server say what somebody wants to add, and show that below the field.
 * @param {HTMLFormElement} form
 */
async function lookUp(form) {
  const button = form.querySelector("button.main");
  if (button?.ariaBusy === "true") return;
  if (button) button.ariaBusy = "true";
  try {
    const values = new URLSearchParams([...new FormData(form)].map(([name, value]) => [name, String(value)]));
    values.delete("add"); // this only looks
    const part = await fetchPart("/library", "proposal", undefined, values);
    document.getElementById("proposal")?.replaceWith(part);
    const next = part.querySelector("#tool-name, input[type=radio], button, a");
    if (next instanceof HTMLElement) next.focus();
  } catch (error) {
    if (!(error instanceof ServerProblem)) throw error;
    say(error.message);
  } finally {
    if (button) button.ariaBusy = null;
  }
}

document.addEventListener("change", (event) => {
  if (!(event.target instanceof HTMLSelectElement) || !event.target.form?.matches("#add-form")) return;
  // As another kind, the same files hold something else.
  void lookUp(event.target.form).then(() => document.getElementById("kind")?.focus());
});

addPicker();
listen("job", showJob);
listen("generation", refreshSoon);
listen("open", refreshSoon);
listen("break", refreshSoon);
document.addEventListener("visibilitychange", refreshSoon);
document.addEventListener("focusout", (event) => {
  if (event.target instanceof Element && event.target.matches("#live textarea")) refreshSoon();
});
