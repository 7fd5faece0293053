// Parts of pages that the server has rendered: fetched, parsed without running anything, and put in place of old ones.

import { element, t } from "./dom.js";

/** The server's own words about what went wrong. */
export class ServerProblem extends Error {}

/** A server that no longer knows this browser: it was started again, or a week has passed. */
export class SessionEnded extends ServerProblem {
  constructor() {
    super(t("common.session_ended"));
  }
}

/**
 * Fetch a part of a page and return the element with an id in it; `body` is sent as a form is.
 * @param {string} address
 * @param {string} id
 * @param {AbortSignal} [signal]
 * @param {URLSearchParams} [body]
 * @returns {Promise<HTMLElement>}
 */
export async function fetchPart(address, id, signal, body) {
  const url = new URL(address, location.origin);
  url.searchParams.set("part", id);
  const language = new URLSearchParams(location.search).get("lang");
  if (language) url.searchParams.set("lang", language);
  const reply = await fetch(url, { signal, body, method: body ? "POST" : "GET", headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  const part = page.getElementById(id);
  if (!part) {
    if (reply.status === 401) throw new SessionEnded();
    // The page of an error says what to do.
    throw new ServerProblem(page.querySelector("h1")?.textContent ?? String(reply.status));
  }
  return document.adoptNode(part);
}

/** @type {number} */
let toastTimer = 0;

/**
 * Say something for a moment, also to screen readers.
 * @param {string} text
 * @param {boolean} [stays] until something else is said
 */
export function say(text, stays = false) {
  document.querySelector(".toast")?.remove();
  const toast = element("div", { class: "toast", role: "status" });
  document.body.append(toast);
  toast.textContent = text;
  clearTimeout(toastTimer);
  if (!stays) toastTimer = window.setTimeout(() => toast.remove(), 4000);
}
