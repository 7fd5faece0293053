// The colours and the language of the page change as soon as they are chosen.

const form = document.getElementById("preferences");
if (form instanceof HTMLFormElement) {
  form.classList.add("by-itself");
  form.addEventListener("submit", (event) => event.stopPropagation()); // it leads to another page, on every page
  form.addEventListener("change", () => form.requestSubmit());
}
