// What every page has at its foot: the colours and the language change as soon as they are chosen, and whoever signs
// out leaves no searches to whoever uses the browser next.
import { forget } from "./searched.js";

const preferences = document.getElementById("preferences");
if (preferences instanceof HTMLFormElement) {
  preferences.classList.add("by-itself");
  preferences.addEventListener("submit", (event) => event.stopPropagation()); // it leads to another page, on every page
  preferences.addEventListener("change", () => preferences.requestSubmit());
}
document.querySelector('form[action="/logout"]')?.addEventListener("submit", forget);
