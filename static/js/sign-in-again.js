// @ts-check
/**
 * A session has ended while its page is open, perhaps in the middle of a sentence. Its owner signs in in
 * a window of its own, which works for every way to sign in, and the page goes on where it was. Loaded
 * when that happens.
 */

const WINDOW = "/accounts/signed-in";
const WHO = "/accounts/who";

/** @typedef {{user: string, csrf: string}} Who */

/**
 * Wait until somebody has signed in. For its own user the page goes on; nothing here is anybody else's.
 * @param {EventTarget} statusBar
 * @param {import("./session.js").ChatSession} session
 * @param {import("./drafts.js").Drafts} drafts
 */
export async function goOn(statusBar, session, drafts) {
  const now = await cameBack(statusBar);
  if (now.user !== session.user) return location.assign("/");
  drafts.open();
  session.api.csrf = now.csrf;
  renewForms(now.csrf);
  session.socket.connect(true);
}

/**
 * In the window that the bar's button opens, or elsewhere.
 * @param {EventTarget} statusBar
 * @returns {Promise<Who>}
 */
function cameBack(statusBar) {
  return new Promise((resolve) => {
    const waiting = new AbortController();
    const { signal } = waiting;
    async function look() {
      const now = await who();
      if (!now || signal.aborted) return;
      waiting.abort();
      resolve(now);
    }
    statusBar.addEventListener("sign-in", openWindow, { signal });
    addEventListener("focus", look, { signal });
    addEventListener("storage", ({ key }) => key === "vitrine.signed-in" && look(), { signal });
  });
}

/** In answer to a click. */
function openWindow() {
  const opened = window.open(WINDOW, "vitrine-sign-in", "popup,width=480,height=760");
  if (!opened) location.assign(`/accounts/login/?next=${location.pathname}`);
}

/** @returns {Promise<Who | null>} null: it is nobody's session, or nobody knows */
async function who() {
  try {
    const response = await fetch(WHO, { redirect: "error", cache: "no-store" });
    return response.ok ? await response.json() : null;
  } catch {
    return null; // it leads to the sign-in, or the line is down
  }
}

/**
 * A new session has a new token.
 * @param {string} csrf
 */
function renewForms(csrf) {
  for (const input of document.querySelectorAll('input[name="csrfmiddlewaretoken"]')) {
    /** @type {HTMLInputElement} */ (input).value = csrf;
  }
}
