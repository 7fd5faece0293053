// Judge results with single keys: each judgement is stored at once, so that nothing is lost on reload.

import { request } from "./api.js";
import { t } from "./dom.js";
import { say, ServerProblem } from "./fragments.js";

const KEYS = new Map([["y", 1], ["n", 0], ["0", 0], ["1", 1], ["2", 2], ["3", 3]]); // as of bunko judge

document.documentElement.classList.add("scripts");

const list = document.querySelector("ol.judged");
const rows = [...document.querySelectorAll("ol.judged li")].filter((row) => row instanceof HTMLElement);
/** @type {{row: HTMLElement, grade: string}[]} what was done, with the grade before it */
const history = [];
/** @type {Promise<void>} judgements are stored one after the other, in the order of the keys */
let storing = Promise.resolve();
let position = rows.findIndex((row) => !row.dataset.grade);
if (position < 0) position = rows.length;

/** Mark the document that the next key is about. */
function showCurrent() {
  rows.forEach((row, index) => {
    if (index === position) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  });
  const isDone = position >= rows.length;
  const done = document.getElementById("done");
  if (done) done.hidden = !isDone;
  const row = rows[position];
  if (isDone) done?.focus();
  else if (row) {
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "center" });
  }
}

/**
 * @param {HTMLElement} row
 * @param {string} grade empty: not judged
 */
function showGrade(row, grade) {
  row.dataset.grade = grade;
  const chip = row.querySelector(".grade");
  if (!(chip instanceof HTMLElement)) return;
  chip.hidden = grade === "";
  chip.textContent = grade === "" ? "" : t(`judge.grade_${grade}`);
}

/**
 * Store a grade; if the server refuses it, the page shows the one before.
 * @param {HTMLElement} row
 * @param {string} grade
 */
function store(row, grade) {
  const before = row.dataset.grade ?? "";
  showGrade(row, grade);
  const { tool, query } = /** @type {HTMLElement} */ (list).dataset;
  storing = storing.then(async () => {
    try {
      const body = { tool, query, path: row.dataset.path, grade: grade === "" ? null : Number(grade) };
      const { queries, judgements } = await request("POST", "/judgements", body);
      const counts = document.getElementById("counts");
      if (counts) counts.textContent = t("judge.counts", { queries, judgements });
      const status = document.getElementById("status");
      if (status) status.textContent = grade === "" ? t("judge.undone") : t(`judge.grade_${grade}`);
    } catch (error) {
      if (!(error instanceof ServerProblem)) throw error;
      showGrade(row, before);
      say(error.message);
    }
  });
}

/**
 * @param {string} key
 * @returns {boolean} whether the key means something
 */
function press(key) {
  const row = rows[position];
  if (key === "u") {
    const last = history.pop();
    if (!last) return true;
    if (last.row.dataset.grade !== last.grade) store(last.row, last.grade);
    position = rows.indexOf(last.row);
  } else if (row && (key === "s" || KEYS.has(key))) {
    history.push({ row, grade: row.dataset.grade ?? "" });
    if (key !== "s") store(row, String(KEYS.get(key)));
    position += 1;
    // Those that were judged before need no second look, unless somebody goes to them.
    while (key !== "s" && rows[position]?.dataset.grade) position += 1;
  } else return false;
  showCurrent();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target instanceof Element && event.target.matches("input, select, textarea")) return;
  if (press(event.key.toLowerCase())) event.preventDefault();
});

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const button = target?.closest("button[data-key]");
  if (button instanceof HTMLElement) {
    press(button.dataset.key ?? "");
    return;
  }
  const index = target?.closest("a") ? -1 : rows.findIndex((row) => target && row.contains(target));
  if (index >= 0) {
    position = index;
    showCurrent();
  }
});

if (list) showCurrent();
