// The page of one document.
import { openInEditor, showDocument } from "./document_view.js";

document.documentElement.classList.add("scripts");
const article = document.getElementById("document");
if (article) {
  const outline = article.querySelector("details.outline");
  if (outline instanceof HTMLDetailsElement && matchMedia("(min-width: 76rem)").matches) outline.open = true;
  showDocument(article, null);
  article.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (button?.dataset.openEditor) void openInEditor(button.dataset.openEditor, Number(article.dataset.line ?? 1));
  });
}
