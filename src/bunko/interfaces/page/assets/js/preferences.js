// The colours and the language of the page change as soon as they are chosen.

const preferences = document.getElementById("preferences");
if (preferences instanceof HTMLFormElement) {
  preferences.classList.add("by-itself");
  preferences.addEventListener("submit", (event) => event.stopPropagation()); // it leads to another page, on every page
  preferences.addEventListener("change", () => preferences.requestSubmit());
}
