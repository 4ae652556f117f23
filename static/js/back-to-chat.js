// @ts-check
/** The way back from settings and documents leads to the chat that this tab has shown last. */

import { lastPlace } from "./preferences.js";

for (const link of document.querySelectorAll("[data-back-to-chat]")) link.setAttribute("href", lastPlace());
