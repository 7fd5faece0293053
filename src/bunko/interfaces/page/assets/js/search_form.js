// The form of a search, and the address that says the same.
import { element } from "./dom.js";
import { fillSliders } from "./sliders.js";

const FORM = /** @type {HTMLFormElement} */ (document.getElementById("search"));
// What the form does not say: the place in the results, and what is shown beside them.
const NOT_OF_THE_FORM = ["open", "hit", "at", "cursor", "like"];

/** The address of what the form says. */
export function formAddress() {
  const parameters = new URLSearchParams();
  for (const [name, value] of new FormData(FORM)) {
    if (typeof value === "string" && value.trim()) parameters.append(name, value);
  }
  const search = parameters.toString();
  return search ? `/?${search}` : "/";
}

/** Fill the form with what the address says; what it has no field for, such as a second tag, is hidden in it. */
export function fillForm() {
  for (const extra of FORM.querySelectorAll("[data-extra]")) extra.remove();
  const remaining = new URLSearchParams(location.search);
  for (const name of NOT_OF_THE_FORM) remaining.delete(name);
  for (const field of FORM.elements) {
    if ((field instanceof HTMLInputElement || field instanceof HTMLSelectElement) && field.name) {
      const [value = "", ...others] = remaining.getAll(field.name); // several fields may have one name
      field.value = value;
      remaining.delete(field.name);
      for (const other of others) remaining.append(field.name, other);
    }
  }
  for (const [name, value] of remaining) FORM.append(element("input", { type: "hidden", name, value, "data-extra": true }));
  fillSliders(FORM);
}

/**
 * @param {string} name
 * @param {string} value
 */
export function setHidden(name, value) {
  const old = FORM.querySelector(`input[type="hidden"][name="${name}"]`);
  if (!value) return old?.remove();
  const field = old instanceof HTMLInputElement ? old : document.createElement("input");
  field.type = "hidden";
  field.name = name;
  field.value = value;
  FORM.append(field);
}
