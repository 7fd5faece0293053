// The link that was followed from a page is what has the focus again after going back.

/**
 * Keep which link was followed with the entry of the history that it is left by, so that going back leads to it.
 * @param {HTMLAnchorElement} link
 */
export function rememberFocus(link) {
  history.replaceState({ link: link.getAttribute("href") }, "");
}

/** Give the link that was followed the focus again. */
export function restoreFocus() {
  const address = history.state?.link;
  const link = typeof address === "string" ? document.querySelector(`main a[href="${CSS.escape(address)}"]`) : null;
  if (!(link instanceof HTMLElement)) return;
  link.focus({ preventScroll: true });
  link.scrollIntoView({ block: "nearest" });
}
