// @ts-check
/** Shown above the message box as long as something is read aloud: to pause it and to stop it. */

import { element, find, icon, setText } from "./dom.js";
import { gettext } from "./i18n.js";

export class ReadingBar {
  #toggle = element("button", { type: "button", class: "button" });
  #stop = element("button", { type: "button", class: "button" }, [gettext("Stop reading")]);
  #status = element("p", { class: "dictation__status" });

  /** @param {import("./reading-aloud.js").ReadingAloud} reading */
  constructor(reading) {
    this.reading = reading;
    this.element = element("div", { class: "dictation", role: "group", "aria-label": gettext("Read aloud") }, [
      icon("volume-2"), this.#status, this.#toggle, this.#stop,
    ]);
    this.#toggle.addEventListener("click", () => (reading.isPaused ? reading.resume() : reading.pause()));
    this.#stop.addEventListener("click", () => reading.stop());
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation(); // it would stop an answer
      reading.stop();
    });
    reading.on("changed", () => this.#show());
    addEventListener("pagehide", () => reading.stop());
  }

  #show() {
    const { isReadingAny, isPaused } = this.reading;
    const hadFocus = this.element.contains(document.activeElement);
    if (!isReadingAny) {
      this.element.remove();
      if (hadFocus) find(document, "#composer-input").focus({ preventScroll: true });
      return;
    }
    this.element.dataset.state = isPaused ? "paused" : "reading";
    setText(this.#status, isPaused ? gettext("Reading is paused") : gettext("Reading aloud"));
    setText(this.#toggle, isPaused ? gettext("Go on") : gettext("Pause"));
    if (!this.element.isConnected) find(document, "chat-composer .composer").before(this.element);
  }
}
