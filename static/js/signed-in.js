// @ts-check
/** The end of a sign-in for pages that are still open: they are told, and the window closes. */

import { remember } from "./preferences.js";

remember("signed-in", new Date().toISOString()); // a value that differs: only changes are told
if (window.opener) window.close();
