// Small helpers for elements: everything is set as text or as an attribute, never as markup.

/**
 * Return a new element with properties and children.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string | number | boolean | null | undefined>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) created.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) created.setAttribute(key, String(value));
  }
  created.append(...children);
  return created;
}

/** @type {Record<string, string>} */
const texts = JSON.parse(document.getElementById("texts")?.textContent ?? "{}");

/**
 * Return a text in the language of the page, with its values.
 * @param {string} name
 * @param {Record<string, string | number>} [values]
 */
export function t(name, values = {}) {
  return (texts[name] ?? name).replace(/\{(\w+)\}/g, (whole, key) => String(values[key] ?? whole));
}
