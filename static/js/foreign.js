// @ts-check
/**
 * What in a model's text leads elsewhere. A link names its host, at once where its words name
 * another; an image waits for a click, and then comes into a frame of its own that tells nothing.
 */

import { element, icon, setDrawer } from "./dom.js";
import { gettext } from "./i18n.js";
import { hostOf, namesAnotherHost } from "./text-safety.js";

const NO_TRACES = { target: "_blank", rel: "noopener noreferrer nofollow" };

/** @param {HTMLAnchorElement} link */
export function nameHost(link) {
  const href = link.getAttribute("href") ?? "";
  const host = hostOf(href);
  if (href.startsWith("mailto:")) return;
  if (!host) {
    link.removeAttribute("href");
    return;
  }
  for (const [name, value] of Object.entries(NO_TRACES)) link.setAttribute(name, value);
  link.setAttribute("title", link.href);
  const words = link.textContent ?? "";
  if (namesAnotherHost(words, host)) link.after(element("span", { class: "link-host" }, [` (${host})`]));
  else if (!words.includes(host)) link.dataset.host = host;
}

/**
 * Put a button in the place of an image.
 * @param {HTMLAnchorElement} link to it, with its description as words
 */
export function holdImage(link) {
  const root = element("span", { class: "held-image" });
  link.replaceWith(root);
  new HeldImage(root, link.getAttribute("href") ?? "", link.textContent ?? "");
}

class HeldImage {
  /**
   * @param {HTMLElement} root
   * @param {string} href
   * @param {string} words
   */
  constructor(root, href, words) {
    this.root = root;
    this.href = href;
    this.words = words;
    const host = hostOf(href) ?? "";
    const about = element("span", { class: "held-image__about" }, [
      element("span", {}, [words]), element("span", { class: "held-image__host" }, [gettext("Load the image from %(host)s", { host })]),
    ]);
    const button = element("button", { type: "button", class: "held-image__button" }, [icon("image"), about]);
    button.addEventListener("click", () => this.#load());
    root.replaceChildren(button);
    setDrawer(root, this);
  }

  get source() {
    return gettext("Image: %(about)s", { about: `${this.words} (${this.href})` });
  }

  /** @param {HeldImage} other */
  take(other) {
    return other.href === this.href && other.words === this.words;
  }

  draw() {} // it is there from the start

  #load() {
    const frame = element("iframe", {
      class: "held-image__frame", sandbox: "", referrerpolicy: "no-referrer", title: this.words,
      src: `/sandbox/image?url=${encodeURIComponent(this.href)}`,
    });
    const link = element("a", { href: this.href, ...NO_TRACES }, [hostOf(this.href) ?? ""]);
    this.root.replaceChildren(frame, link);
    this.root.toggleAttribute("data-loaded", true);
    link.focus();
  }
}
