// @ts-check
/**
 * The one owner of the scroll position. Pinned means: the end stays in view while it grows. Only a
 * reader who scrolls up unpins, judged by positions and never by timers; coming back to the end or
 * pressing the button pins again.
 */

const UNPIN_PX = 3;
const REPIN_PX = 60;
const SHOW_JUMP_PX = 200;
const TARGET_PX = 24;
const MIN_KEYBOARD_PX = 100; // less is a bar of the browser

/**
 * What a scroll event means. Pure.
 * @param {boolean} isPinned
 * @param {{top: number, height: number}} before
 * @param {{top: number, height: number, view: number}} now
 */
export function pinnedAfterScroll(isPinned, before, now) {
  const moved = now.top - before.top;
  const hasShrunk = now.height < before.height; // then the browser moved the position, not the reader
  if (moved <= -UNPIN_PX && !hasShrunk) return false;
  if (moved > 0 && toEnd(now) <= REPIN_PX) return true;
  return isPinned;
}

/**
 * Whether the jump button shows; between the two limits it stays as it was.
 * @param {boolean} isShown
 * @param {boolean} isPinned
 * @param {number} distance to the end, in px
 */
export function jumpShows(isShown, isPinned, distance) {
  if (isPinned || distance < REPIN_PX) return false;
  return distance > SHOW_JUMP_PX || isShown;
}

/** @param {{top: number, height: number, view: number}} position */
function toEnd({ top, height, view }) {
  return height - top - view;
}

/**
 * How much of the window a keyboard of glass covers, in px: iOS lays it over the page. Nothing while fingers
 * have made the page larger. Pure.
 * @param {{height: number, scale: number}} view what is seen of the window
 * @param {number} windowPx
 */
export function keyboardSize({ height, scale }, windowPx) {
  const covered = Math.round(windowPx - height * scale);
  return Math.abs(scale - 1) < 0.01 && covered >= MIN_KEYBOARD_PX ? covered : 0;
}

/** The page ends where the keyboard begins, so that the composer stands above it. */
export function followKeyboard() {
  const view = globalThis.visualViewport;
  let before = 0;
  const follow = () => {
    const size = view ? keyboardSize(view, innerHeight) : 0;
    if (size) scrollTo(0, 0); // the browser has pushed the page up to show the box
    if (size !== before) document.documentElement.style.setProperty("--keyboard-size", `${size}px`);
    before = size;
  };
  for (const name of ["resize", "scroll"]) view?.addEventListener(name, follow);
}

export class ScrollKeeper {
  isPinned = true;
  #before = { top: 0, height: 0 };

  /**
   * @param {HTMLElement} scroller
   * @param {HTMLElement[]} growing what may change the height
   * @param {HTMLElement} jump
   */
  constructor(scroller, growing, jump) {
    this.scroller = scroller;
    this.jump = jump;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    jump.addEventListener("click", () => this.toEnd(true));
    const observer = new ResizeObserver(() => this.#grown());
    for (const watched of [scroller, ...growing]) observer.observe(watched);
  }

  /**
   * Go to the end and stay there.
   * @param {boolean} [isGentle]
   */
  toEnd(isGentle = false) {
    this.isPinned = true;
    const isStill = document.hidden || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const behavior = isGentle && !isStill ? "smooth" : "instant";
    this.scroller.scrollTo({ top: this.scroller.scrollHeight, behavior });
    this.#showJump();
  }

  /**
   * Go to something of what is shown and stay there.
   * @param {HTMLElement} target
   */
  toTarget(target) {
    this.isPinned = false;
    const { top } = target.getBoundingClientRect();
    this.scroller.scrollTop += top - this.scroller.getBoundingClientRect().top - TARGET_PX;
    this.#before = this.#position();
    this.#showJump();
  }

  /**
   * Change what is shown and keep one thing of it at its place on the screen.
   * @param {() => Element | null} anchor what to look at, before and after
   * @param {() => void} change
   */
  around(anchor, change) {
    const before = anchor()?.getBoundingClientRect().top;
    this.isPinned = false;
    change();
    const after = anchor()?.getBoundingClientRect().top;
    if (before !== undefined && after !== undefined) this.scroller.scrollTop += after - before;
    this.#before = this.#position();
    this.#showJump();
  }

  toStart() {
    this.isPinned = false;
    this.scroller.scrollTo({ top: 0 });
  }

  #scrolled() {
    const now = this.#position();
    this.isPinned = pinnedAfterScroll(this.isPinned, this.#before, now);
    this.#before = now;
    this.#showJump();
  }

  #grown() {
    if (this.isPinned) this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#before = this.#position();
    this.#showJump();
  }

  #position() {
    const { scrollTop: top, scrollHeight: height, clientHeight: view } = this.scroller;
    return { top, height, view };
  }

  #showJump() {
    const position = this.#position();
    this.jump.hidden = !jumpShows(!this.jump.hidden, this.isPinned, toEnd(position));
    this.scroller.parentElement?.toggleAttribute("data-scrolled", position.top > 4);
  }
}
