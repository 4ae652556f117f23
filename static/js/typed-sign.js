// @ts-check
/** What a sign in the text calls is loaded when somebody first types it. */

/**
 * @param {HTMLTextAreaElement} input
 * @param {string} sign
 * @param {() => Promise<{changed: () => void}>} load the menu of it; a failed load is tried at the next key
 */
export function whenTyped(input, sign, load) {
  const typed = async () => {
    if (!input.value.includes(sign)) return;
    input.removeEventListener("input", typed);
    try {
      (await load()).changed(); // for what is typed already
    } catch {
      input.addEventListener("input", typed);
    }
  };
  input.addEventListener("input", typed);
}
