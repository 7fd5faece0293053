// Sliders beside the numbers of the ranking; a number that is empty is left as it is set.

/** @param {HTMLFormElement} form */
export function addSliders(form) {
  for (const number of numbersOf(form)) {
    const slider = document.createElement("input");
    slider.type = "range";
    for (const name of ["min", "max", "step"]) slider.setAttribute(name, number.getAttribute(name) ?? "");
    slider.setAttribute("aria-label", number.labels?.[0]?.firstChild?.textContent?.trim() ?? number.name);
    number.classList.add("beside");
    number.before(slider);
    slider.addEventListener("input", () => {
      number.value = String(Number(slider.value));
    });
    number.addEventListener("input", () => fill(number, slider));
    fill(number, slider);
  }
}

/** @param {HTMLFormElement} form */
export function fillSliders(form) {
  for (const number of numbersOf(form)) {
    const slider = number.previousElementSibling;
    if (slider instanceof HTMLInputElement) fill(number, slider);
  }
}

/**
 * @param {HTMLInputElement} number
 * @param {HTMLInputElement} slider
 */
function fill(number, slider) {
  slider.value = number.value || number.dataset.current || String((Number(number.min) + Number(number.max)) / 2);
}

/**
 * @param {HTMLFormElement} form
 * @returns {HTMLInputElement[]}
 */
function numbersOf(form) {
  return [...form.querySelectorAll("#ranking input[type=number]")].filter((field) => field instanceof HTMLInputElement);
}
