// The calendar by keys: a year is one stop of the tab key, and arrows go from day to day.

document.documentElement.classList.add("scripts");
const form = document.getElementById("time-form");
const years = [...document.querySelectorAll("svg.days")].map((year) => /** @type {SVGAElement[]} */ ([...year.querySelectorAll("a.day")]));

/**
 * Let the tab key stop at one day of a year only.
 * @param {SVGAElement[]} days
 * @param {SVGAElement | undefined} current
 */
function stopAt(days, current) {
  for (const day of days) day.setAttribute("tabindex", day === current ? "0" : "-1");
}

/**
 * Return the day that a key leads to.
 * @param {string} key
 * @param {SVGAElement[]} days
 * @param {number} number
 * @param {number} year
 */
function dayOf(key, days, number, year) {
  switch (key) {
    case "ArrowRight":
    case "ArrowDown":
      return days[number + 1] ?? years[year - 1]?.[0]; // the newest year comes first
    case "ArrowLeft":
    case "ArrowUp":
      return days[number - 1] ?? years[year + 1]?.at(-1);
    case "Home":
      return days[0];
    case "End":
      return days.at(-1);
    default:
      return undefined;
  }
}

/**
 * Begin at the newest day of a year that is wider than the screen.
 * @param {SVGAElement | undefined} day
 */
function showDay(day) {
  const scroller = day?.closest(".scroll");
  if (day && scroller) scroller.scrollLeft += day.getBoundingClientRect().right - scroller.getBoundingClientRect().right + 16;
}

years.forEach((days, year) => {
  stopAt(days, days.at(-1));
  showDay(days.at(-1));
  days.forEach((day, number) => {
    day.addEventListener("focus", () => stopAt(days, day));
    day.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const next = dayOf(event.key, days, number, year);
      if (!next) return;
      event.preventDefault();
      next.focus();
    });
  });
});

form?.addEventListener("change", (event) => {
  if (event.target instanceof HTMLSelectElement && form instanceof HTMLFormElement) form.requestSubmit();
});
