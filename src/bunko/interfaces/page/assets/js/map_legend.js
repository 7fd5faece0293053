// What the colours of a map mean; each entry is a button that lights its points alone.

import { element, t } from "./dom.js";

/** @typedef {{name: string, kind: "value" | "earlier" | "other" | "none", count: number}} Group */

const YEAR_STEPS = 8; // of the scale of years, from 0 on

/**
 * @param {Group} group
 * @param {string} color
 */
export function groupName({ name, kind }, color) {
  if (kind === "value") return color === "language" ? t(`map.language_${name}`) : name;
  return kind === "earlier" ? t("map.earlier", { year: name }) : t(`map.${kind}`);
}

/**
 * Show the groups with their colours.
 * @param {HTMLElement} place
 * @param {Group[]} groups
 * @param {string} color what they are: tools, folders, years …
 * @param {(faded: Set<number>) => void} fade
 */
export function showLegend(place, groups, color, fade) {
  /** @type {Set<number>} the groups that are lit; none: all are */
  const lit = new Set();
  const colored = groups.filter(({ kind }) => kind === "value" || kind === "earlier").length;
  const buttons = groups.map((group, number) => {
    const swatch = element("span", { class: `swatch ${colorClass(group, number, color, colored)}`, "aria-hidden": "true" });
    const label = element("bdi", {}, groupName(group, color));
    const count = element("span", { class: "quiet" }, group.count.toLocaleString());
    return element("button", { type: "button", "aria-pressed": "false" }, swatch, label, " ", count);
  });
  buttons.forEach((button, number) => {
    button.addEventListener("click", () => {
      if (!lit.delete(number)) lit.add(number);
      button.setAttribute("aria-pressed", String(lit.has(number)));
      place.classList.toggle("some", lit.size > 0);
      fade(new Set(lit.size ? [...groups.keys()].filter((other) => !lit.has(other)) : []));
    });
  });
  place.classList.remove("some");
  place.replaceChildren(...buttons.map((button) => element("li", {}, button)));
}

/**
 * @param {Group} group
 * @param {number} number
 * @param {string} color
 * @param {number} colored how many groups have a colour of their own
 */
function colorClass(group, number, color, colored) {
  if (group.kind === "other" || group.kind === "none") return `group-${group.kind}`;
  return color === "year" ? `year-${Math.round((YEAR_STEPS * number) / Math.max(colored - 1, 1))}` : `group-${number}`;
}
