// @ts-check
/** What the admin console's pages need beside unfold's own scripts. */

/** On a phone a row is a card, whose lines are named as the columns are: unfold's names are those of
 * the database, and call a first column "Select record". */
function nameLines() {
  const table = document.getElementById("result_list");
  const titles = [...(table?.querySelectorAll("thead th") ?? [])].map((head) => {
    const words = head.querySelector(".text :is(a, span)")?.textContent?.trim() ?? "";
    return head.querySelector("#action-toggle") ? "Choose" : words;
  });
  for (const row of table?.querySelectorAll("tr.data-row") ?? []) {
    [...row.children].forEach((cell, index) => {
      if (titles[index]) cell.setAttribute("data-label", titles[index]);
    });
  }
}

/** A button that copies the field before it. */
function copyOnClick() {
  document.addEventListener("click", async (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-copies]");
    if (!button) return;
    const field = document.getElementById(button.getAttribute("data-copies") ?? "");
    if (!(field instanceof HTMLInputElement)) return;
    field.select();
    const { copyText } = await import("./dom.js");
    button.textContent = await copyText(field.value).then(() => "Copied", ({ message }) => message);
  });
}

/** The icons in the two boxes of permissions have a label, which a plain span may not have. */
function nameIcons() {
  for (const icon of document.querySelectorAll("span.search-label-icon[aria-label]")) {
    icon.setAttribute("role", "img");
  }
}

document.addEventListener("DOMContentLoaded", () => {
  nameLines();
  copyOnClick();
});

// Django makes the boxes with the same event.
window.addEventListener("load", () => setTimeout(nameIcons));
