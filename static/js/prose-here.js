// @ts-check
/** For pages that begin with answers: what draws them is there before they are shown. */

import { drawWith } from "./answer-text.js";
import { Prose } from "./prose.js";

drawWith(Prose);
