// @ts-check
/** A page of the settings that stands by itself. */

import "./back-to-chat.js";
import "./once.js";
import { showSettings } from "./settings.js";
import { followTheme } from "./theme.js";

showSettings(document);
followTheme();
