// @ts-check
/** The chat page: makes the session and the elements, and tells each what the others did. */

import { Announcer } from "./announcer.js";
import { Api } from "./api.js";
import { chatShortcuts } from "./commands.js";
import { ChatComposer } from "./composer.js";
import { find, setText } from "./dom.js";
import { Drafts } from "./drafts.js";
import { newId } from "./ids.js";
import { MessageList } from "./message-list.js";
import { ModelChoice } from "./model-choice.js";
import { ModelPicker } from "./model-picker.js";
import { goTo, onBackAndForward, setTitle } from "./navigation.js";
import { textOf } from "./parts.js";
import { placeAllPopovers } from "./popover.js";
import { ScrollKeeper } from "./scroll.js";
import { ChatSession } from "./session.js";
import { listenForShortcuts } from "./shortcuts.js";
import { ChatSidebar } from "./sidebar.js";
import { toggleSidebar } from "./sidebar-panel.js";
import { onSignOut } from "./sign-out.js";
import { ChatSocket } from "./socket.js";
import { StatusBar } from "./status-bar.js";
import { followTheme } from "./theme.js";
import { ToastRegion } from "./toast.js";

const MOVE_MS = 180;

const bootstrap = JSON.parse(find(document, "#bootstrap").textContent);
const page = find(document, "#chat");
const foot = find(document, "#foot");
const scroller = find(document, "#scroller");
const list = /** @type {MessageList} */ (find(document, "message-list"));
const composer = /** @type {ChatComposer} */ (find(document, "chat-composer"));
const sidebar = /** @type {ChatSidebar} */ (find(document, "chat-sidebar"));
const picker = /** @type {ModelPicker} */ (find(document, "model-picker"));
const statusBar = /** @type {StatusBar} */ (find(document, "status-bar"));
const toasts = /** @type {ToastRegion} */ (find(document, "toast-region"));

const api = new Api(bootstrap.csrf);
const socket = new ChatSocket(`${location.origin.replace(/^http/, "ws")}/ws/chat/`);
const session = new ChatSession(socket, api);
const scroll = new ScrollKeeper(scroller, [list, foot], find(document, "#jump"));
const announcer = new Announcer(find(document, "#announcer"));
const choice = new ModelChoice();
const drafts = new Drafts(page.dataset.user);

// --- what is shown -----------------------------------------------------------------------------

list.source = (id) => {
  const message = session.store.shown(id);
  if (!message) return null;
  const run = message.run ?? "";
  const isStopping = session.store.stopping.has(run);
  const modelTitle = choice.titleOf(message.model);
  return { message, phase: phaseOf(message, run), isStopping, modelTitle };
};

/**
 * @param {import("./conversation-store.js").Message} message
 * @param {string} run
 */
function phaseOf(message, run) {
  if (socket.state !== "open" && socket.retryAt) return { phase: "offline" };
  if (message.status === "sending") return { phase: "sending" };
  return session.store.phases.get(run) ?? { phase: "starting" };
}

function showPath() {
  const path = session.store.path();
  page.toggleAttribute("data-empty", path.length === 0);
  list.show(path);
  composer.setRunning(session.store.isBusy);
}

function currentModel() {
  return choice.current(session.store.conversation?.model);
}

function showModels() {
  choice.models = session.models;
  const model = currentModel();
  picker.show(session.models, model?.name ?? "");
  statusBar.setModel(model);
  if (model) setText(find(page, "[data-about-model]"), model.description);
}

/** @param {string} name */
function chooseModel(name) {
  const { state } = choice.choose(name);
  showModels();
  if (state === "cold" || state === "failed") loadModel(name);
  composer.focusInput();
}

/** @param {string} name */
async function loadModel(name) {
  try {
    await api.loadModel(name);
  } catch (error) {
    toasts.show(/** @type {Error} */ (error).message);
  }
}

// --- sending and stopping ----------------------------------------------------------------------

/** @param {() => void} send */
function withNewTurn(send) {
  const wasAt = foot.getBoundingClientRect().top;
  send();
  list.markFresh();
  scroll.toEnd();
  const moved = wasAt - foot.getBoundingClientRect().top;
  if (Math.abs(moved) > 40) glide(foot, moved);
}

/**
 * Show where something went.
 * @param {HTMLElement} moved
 * @param {number} fromPx
 */
function glide(moved, fromPx) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const keyframes = { transform: [`translateY(${fromPx}px)`, "none"] };
  moved.animate(keyframes, { duration: MOVE_MS, easing: "ease-out" });
}

function stop() {
  const live = session.store.liveRun;
  session.stop(live ? list.numShown(live.message) : undefined);
  composer.focusInput();
}

// --- moving between chats ----------------------------------------------------------------------

let lastAsked = 0;

/** @param {string | null} id */
async function show(id) {
  const asked = ++lastAsked;
  sidebar.setCurrent(id);
  if (id === null) {
    session.open(null);
    return;
  }
  list.setAttribute("aria-busy", "true");
  try {
    const { conversation, messages } = await api.conversation(id);
    if (asked === lastAsked) session.open(conversation, messages);
  } catch (error) {
    if (asked !== lastAsked) return;
    toasts.show(/** @type {Error} */ (error).message);
    sidebar.setCurrent(session.store.conversation?.id ?? null);
  } finally {
    if (asked === lastAsked) list.removeAttribute("aria-busy");
  }
}

function startNew() {
  goTo(null);
  show(null);
}

/** @param {string} id */
function deleted(id) {
  composer.forget(id);
  if (id === session.store.conversation?.id) startNew();
}

function opened() {
  const { conversation, liveRun } = session.store;
  choice.forget();
  composer.open(conversation?.id ?? null);
  showPath();
  showModels();
  setTitle(conversation);
  sendAgain(conversation?.id ?? null);
  scroll.toEnd();
  if (liveRun) {
    const shown = session.store.shown(liveRun.message);
    announcer.skip(liveRun.message, textOf(shown?.parts ?? []));
  }
  if (matchMedia("(any-pointer: fine)").matches) composer.focusInput();
}

/**
 * What was sent before a reload, and perhaps never arrived: its client id makes it one message.
 * @param {string | null} conversation
 */
function sendAgain(conversation) {
  const sent = drafts.of(conversation).sent.find(({ clientId }) => !session.isSending(clientId));
  if (sent) session.send({ ...sent, model: currentModel()?.name ?? null });
}

// --- news of the session -----------------------------------------------------------------------

session.on("opened", opened);
session.on("path", showPath);
session.on("models", showModels);
session.on("message", (id) => {
  list.touch(id);
  composer.setRunning(session.store.isBusy);
});
session.on("accepted", ({ clientId, conversation, isNew }) => {
  composer.accepted({ clientId, conversation: conversation.id, isHere: isNew });
  if (!isNew) return;
  goTo(conversation);
  setTitle(conversation);
  sidebar.setCurrent(conversation.id);
});
session.on("rejected", ({ error, ...rejected }) => {
  toasts.show(error.message);
  composer.rejected(rejected);
});
session.on("conversations", (conversation) => {
  sidebar.update(conversation);
  if (conversation.id === session.store.conversation?.id) setTitle(conversation);
});
session.on("deleted", (id) => {
  sidebar.forget(id);
  deleted(id);
});
session.on("subscribed", async () => session.compare(await sidebar.refresh()));
session.on("error", (error) => toasts.show(error.message));

socket.on("state", (state) => {
  statusBar.setConnection(state, socket.retryAt);
  announcer.sayConnection(state);
  const last = session.store.path().at(-1);
  if (last) list.touch(last.id);
});

// --- news of the elements ----------------------------------------------------------------------

list.addEventListener("drawn", (event) => {
  for (const id of /** @type {CustomEvent} */ (event).detail) {
    const message = session.store.shown(id);
    if (message?.role !== "assistant" || message.status === "sending") continue;
    announcer.follow(id, textOf(message.parts), message.status !== "running");
  }
});
list.addEventListener("retry", (event) => {
  const answer = /** @type {CustomEvent} */ (event).detail;
  const model = currentModel()?.name ?? null;
  withNewTurn(() => session.retry({ answer, model, clientId: newId() }));
});
list.addEventListener("copied", () => announcer.say("Copied."));

composer.addEventListener("send", (event) => {
  const { text, clientId } = /** @type {CustomEvent} */ (event).detail;
  const model = currentModel()?.name ?? null;
  withNewTurn(() => session.send({ text, clientId, model }));
});
composer.addEventListener("stop", stop);

sidebar.addEventListener("open", (event) => {
  const conversation = /** @type {CustomEvent} */ (event).detail;
  goTo(conversation);
  show(conversation.id);
});
sidebar.addEventListener("new", startNew);
sidebar.addEventListener("deleted", (event) => deleted(/** @type {CustomEvent} */ (event).detail));
for (const name of ["problem", "done"]) {
  sidebar.addEventListener(name, (event) => toasts.show(/** @type {CustomEvent} */ (event).detail));
}

picker.addEventListener("choose", (event) => chooseModel(/** @type {CustomEvent} */ (event).detail));
statusBar.addEventListener("retry", () => socket.connect());
statusBar.addEventListener("load", () => loadModel(currentModel().name));

for (const starter of document.querySelectorAll("[data-starter]")) {
  starter.addEventListener("click", () => {
    composer.fill(/** @type {HTMLElement} */ (starter).dataset.starter ?? "");
  });
}
find(document, "[data-show-shortcuts]").addEventListener("click", showShortcuts);

function showShortcuts() {
  find(document, "#account-menu").hidePopover();
  find(document, "#shortcuts").showModal();
}

/**
 * @param {string} selector
 * @param {string} words
 */
function copyLast(selector, words) {
  const found = [...list.querySelectorAll(selector)].at(-1);
  if (!found) return;
  /** @type {HTMLElement} */ (found).click();
  toasts.show(words);
}

listenForShortcuts(
  chatShortcuts(
    {
      startNew,
      toggleSidebar,
      deleteShown,
      showShortcuts,
      focusComposer: () => composer.focusInput(),
      stop: () => session.store.isBusy && stop(),
      chooseModel: () => picker.toggle(),
      toStart: () => scroll.toStart(),
      toEnd: () => scroll.toEnd(),
    },
    copyLast,
  ),
);

function deleteShown() {
  const id = session.store.conversation?.id;
  if (id) sidebar.askToDelete(id);
}

// --- begin -------------------------------------------------------------------------------------

new ResizeObserver(([{ borderBoxSize }]) => {
  scroller.style.setProperty("--foot-size", `${borderBoxSize[0].blockSize}px`);
}).observe(foot);
placeAllPopovers();
followTheme();
onBackAndForward(show);
addEventListener("online", () => socket.connect());
document.addEventListener("visibilitychange", () => document.hidden || socket.connect());

session.models = choice.models = bootstrap.models;
sidebar.api = api;
composer.drafts = drafts;
onSignOut(() => drafts.close());
sidebar.show(bootstrap.conversations, bootstrap.next);
sidebar.setCurrent(bootstrap.conversation?.id ?? null);
session.open(bootstrap.conversation, bootstrap.messages);
socket.connect();
