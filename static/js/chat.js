// @ts-check
/** The chat page: makes the session and the elements, and tells each what the others did. */

import { Announcer } from "./announcer.js";
import { Api } from "./api.js";
import { withOwnKeys } from "./bindings.js";
import { chatShortcuts } from "./commands.js";
import { ChatSetup, welcomeOf } from "./chat-setup.js";
import { ChatComposer } from "./composer.js";
import { find, setText } from "./dom.js";
import { Drafts, TEMPORARY } from "./drafts.js";
import { gettext } from "./i18n.js";
import { newId } from "./ids.js";
import { leftOutOf, showLeftOut } from "./left-out.js";
import { MessageActions } from "./message-actions.js";
import { MessageList } from "./message-list.js";
import { queueOf } from "./message-queue.js";
import { ModelChoice } from "./model-choice.js";
import { ModelPicker } from "./model-picker.js";
import { Glass } from "./glass.js";
import { GlassMarks } from "./glass-marks.js";
import { conversationAt, goTo, markNews, onBackAndForward, setTitle, wantedMessage } from "./navigation.js";
import { textOf } from "./parts.js";
import { placeAllPopovers } from "./popover.js";
import { preference } from "./preferences.js";
import { keepShell } from "./pwa.js";
import { ScrollKeeper, followKeyboard } from "./scroll.js";
import { searchDoor } from "./search-door.js";
import { ChatSession } from "./session.js";
import { listenForSettings } from "./settings-door.js";
import { keyWords, listenForShortcuts } from "./shortcuts.js";
import { SidePanel } from "./side-panel.js";
import { listenForSources, whyNoFiles } from "./source-door.js";
import { ChatSidebar } from "./sidebar.js";
import { toggleSidebar } from "./sidebar-panel.js";
import { onSignOut } from "./sign-out.js";
import { ChatSocket } from "./socket.js";
import { StatusBar } from "./status-bar.js";
import { TemporaryChat } from "./temporary-chat.js";
import { followTheme } from "./theme.js";
import { ToastRegion } from "./toast.js";
import { whenTyped } from "./typed-sign.js";
import { endLine, newsLine, phaseLine } from "./words.js";

const MOVE_MS = 180;
const UNDO_MS = 10_000;
const PATIENCE_MS = 5_000; // until what another tab has sent is sent from here

const bootstrap = JSON.parse(find(document, "#bootstrap").textContent);
const page = find(document, "#chat");
const foot = find(document, "#foot");
const scroller = find(document, "#scroller");
const list = /** @type {MessageList} */ (find(document, "message-list"));
const unopened = find(page, ".unopened");
const setupButton = find(page, "[data-chat-setup]");
const tools = find(page, ".bar__tools");
const composer = /** @type {ChatComposer} */ (find(document, "chat-composer"));
const sidebar = /** @type {ChatSidebar} */ (find(document, "chat-sidebar"));
const picker = /** @type {ModelPicker} */ (find(document, "model-picker"));
const statusBar = /** @type {StatusBar} */ (find(document, "status-bar"));
const toasts = /** @type {ToastRegion} */ (find(document, "toast-region"));

const api = new Api(bootstrap.csrf);
composer.transcribe = (sound, signal) => api.transcribe(sound, signal);
const socket = new ChatSocket(`${location.origin.replace(/^http/, "ws")}/ws/chat/`);
const session = new ChatSession(socket, api);
const scroll = new ScrollKeeper(scroller, [list, foot], find(document, "#jump"));
const announcer = new Announcer(find(document, "#announcer"));
const choice = new ModelChoice((chosen) => api.personalise(chosen).catch(({ message }) => toasts.show(message)));
const panel = /** @type {SidePanel} */ (find(document, "side-panel"));
const glass = new Glass({
  api,
  panel,
  titleOf: (model) => choice.titleOf(model),
  rootOf: (message) => list.querySelector(`[data-message="${CSS.escape(message)}"]`),
  branch: branchAtToken,
  isFromDocuments: (message) => Boolean(session.store.shown(message)?.found),
  askWithout: (message, without) => {
    panel.close();
    actions.regenerate(message, { model: session.store.shown(message)?.model, without });
  },
  tell: (words) => toasts.show(words),
});
const search = searchDoor(api);
const drafts = new Drafts(page.dataset.user);
const setup = new ChatSetup(api, find(document, "#chat-setup"), (words) => toasts.show(words));
/** @type {Promise<import("./tool-picker.js").ToolPicker> | null} once its card is opened, or a chat has tools */
let toolPicker = null;
page.querySelector("#tool-card")?.addEventListener("beforetoggle", (event) => {
  if (/** @type {ToggleEvent} */ (event).newState === "open") showTools();
});
new GlassMarks({ session, api, composer, list, sidebar, setup, model: () => currentModel()?.name ?? null });
const showWelcome = welcomeOf(page);
whenTyped(composer.input, "/", async () => (await import("./prompt-menu.js")).promptMenu(composer.input, () => api.prompts()));
whenTyped(composer.input, "@", async () => (await import("./model-menu.js")).modelMenu(composer.input, whoCanAnswer, chooseAnswerer));
listenForSources({
  list, panel, composer, api, excerptsOf, tell: (words, more) => toasts.show(words, more), maxFileBytes: bootstrap.max_file_bytes,
});
composer.picked.sees = () => [currentModel()?.name, ...answering().beside].every((name) => choice.models.find((one) => one.name === name)?.images);
const queue = queueOf(document);
let wasBusy = false;

// --- what is shown -----------------------------------------------------------------------------

list.source = (id) => {
  const message = session.store.shown(id);
  if (!message) return null;
  const run = message.run ?? "";
  const isStopping = session.store.stopping.has(run);
  const modelTitle = choice.titleOf(message.model);
  return { message, phase: phaseOf(message, run), isStopping, modelTitle, place: placeOf(id), citing: session.store.citing(id) };
};
list.besideOf = (id) => session.store.beside(id);

/** @param {string} id */
function placeOf(id) {
  const siblings = session.store.siblings(id);
  const index = siblings.findIndex((sibling) => sibling.id === id);
  return { index, count: siblings.length, isBeside: session.store.beside(id).length > 0, isTemporary: session.store.isTemporary };
}

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
  tools.hidden = !session.store.conversation;
  list.show(path);
  showLeftOut(list, leftOutOf(path), (id) => api.summary(id));
  temporary.show();
  showRunning();
}

/** Whether something is being written, and if not, what is sent next. */
function showRunning() {
  if (list.ariaBusy) return; // it is about another chat than the one that is written to
  const { store } = session;
  if (wasBusy && !store.isBusy) {
    budgetLine().then((line) => line.refresh());
    const ended = store.leaf === null ? null : store.shown(store.leaf);
    tellAway(newsLine({ title: store.conversation?.title ?? "", last_answer: ended?.status }), () => {});
  }
  wasBusy = store.isBusy;
  composer.setRunning(store.isBusy);
  const last = store.leaf === null ? null : store.shown(store.leaf);
  const hasFailed = last?.status === "failed" || last?.status === "refused";
  const isUndecided = !store.isBusy && last !== null && store.beside(last.id).length > 0;
  if (store.isBusy || !last) queue.hold(null);
  else queue.hold(isUndecided ? "beside" : hasFailed ? "failed" : null);
  if (last && !store.isBusy && !queue.isHeld) sendNext(); // what waits never begins a chat
  composer.hold(isUndecided ? "beside" : null);
}

/**
 * Something has happened; nobody may be looking.
 * @param {string | null} words
 * @param {() => void} open
 */
function tellAway(words, open) {
  markNews();
  if (!words || !document.hidden || preference("notify") !== "yes") return;
  import("./notify.js").then(({ notify }) => notify(words, open)).catch(() => {}); // the tab is marked all the same
}

function sendNext() {
  if (list.ariaBusy) return;
  const next = queue.take();
  if (next) send(next);
  else sendForOther(); // what waits stands behind it
}

/** What another tab has sent is its own to follow; but where it was closed meanwhile, nobody else does. */
function sendForOther() {
  const { draftName } = session.store;
  const other = unfollowed(draftName);
  if (!other) return;
  setTimeout(() => {
    const isSame = unfollowed(draftName)?.clientId === other.clientId && session.store.draftName === draftName;
    if (isSame && !session.store.isBusy) sendAgain(draftName);
  }, PATIENCE_MS);
}

/** @param {import("./drafts.js").Sent} sent */
function send(sent) {
  withNewTurn(() => session.send({ ...sent, ...answering() }));
}

/** Who answers next, and beside it; a temporary chat has one answer at a time. */
function answering() {
  const model = currentModel()?.name;
  const beside = session.store.isTemporary ? [] : choice.beside(model);
  return { model: model ?? null, beside };
}

function currentModel() {
  return choice.current(session.store.conversation?.model);
}

function showModels() {
  choice.models = session.models;
  const model = currentModel();
  const { conversation } = session.store;
  const assistant = conversation ? conversation.assistant : setup.assistant;
  picker.show({ models: session.models, chosen: model?.name ?? "", assistant, beside: answering().beside, pinned: choice.pinned });
  statusBar.setModel(model);
  if (toolPicker || setup.toolServers(conversation).length) showTools();
  if (composer.picked.attachments.length) composer.picked.emit("changed"); // a model that sees takes pictures unread
  showWelcome(setup.assistant, model ?? null);
}

/** Once there is something to tell of budgets, or may be. */
async function budgetLine() {
  await import("./budget-line.js");
  const line = /** @type {import("./budget-line.js").BudgetLine} */ (find(document, "budget-line"));
  line.read = () => api.budgets();
  return line;
}

async function showTools() {
  if (!page.querySelector("#tool-card")) return;
  const conversation = () => session.store.conversation;
  toolPicker ??= import("./tool-picker.js").then(({ ToolPicker }) => new ToolPicker(page, { setup, conversation, say: (words) => toasts.show(words) }));
  (await toolPicker).show(currentModel()?.tools ?? true);
}

/** @param {string} name */
function chooseModel(name) {
  const { state } = choice.choose(name);
  showModels();
  if (state === "cold" || state === "failed") loadModel(name);
  composer.offerInput();
}

/**
 * Begin a chat with an assistant: this one, if it has not begun yet.
 * @param {string} id
 */
async function chooseAssistant(id) {
  if (session.store.path().length && !(await startNew())) return;
  const before = setup.assistant?.collections ?? [];
  setup.assistant = picker.assistants.find((assistant) => assistant.id === id) ?? null;
  composer.picked.swap(before, setup.assistant?.collections ?? []);
  const model = setup.assistant?.model;
  if (model && choice.models.some(({ name }) => name === model)) choice.chooseHere(model);
  showModels();
  composer.offerInput();
}

function whoCanAnswer() {
  return { models: choice.models, assistants: picker.assistants };
}

/** @param {import("./answerers.js").Answerer} answerer */
function chooseAnswerer({ kind, id, title }) {
  announcer.say(gettext("%(name)s answers next.", { name: title }));
  if (kind === "model") chooseModel(id);
  else chooseAssistant(id);
}

/** @param {string} name of one that answers too from now on, or no more */
function toggleBeside(name) {
  if (session.store.isTemporary) toasts.show(gettext("In a temporary chat one model answers."));
  else if (!choice.toggleBeside(name)) toasts.show(gettext("At most four models answer side by side."));
  showModels();
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
  session.stop((message) => list.numShown(message));
  composer.offerInput();
}

/**
 * Go on from a token with another one: the news of the chat bring the new answer.
 * @param {import("./glass.js").TokenBranch} branch
 */
async function branchAtToken(branch) {
  try {
    await api.branchAtToken({ ...branch, clientId: newId() });
    glass.reset();
  } catch (error) {
    toasts.show(/** @type {Error} */ (error).message);
  }
}

// --- moving between chats ----------------------------------------------------------------------

let lastAsked = 0;
/** Open the chat that could not be opened. */
let tryAgain = () => {};

/**
 * Returns false where the reader stays in a temporary chat.
 * @param {string | null} id
 * @param {string | null} [wanted] a message of it
 */
async function show(id, wanted = null) {
  const asked = ++lastAsked;
  if (!(await temporary.mayLeave())) {
    goTo(null);
    return false;
  }
  sidebar.setCurrent(id);
  if (id === null) {
    session.open(null);
    return true;
  }
  if (list.ariaBusy && id === session.store.conversation?.id && !wanted) {
    opened(null); // the other one has not come
    session.refresh();
  } else await load(id, wanted, asked);
  return true;
}

/**
 * What is written meanwhile is written to the chat that comes.
 * @param {string} id
 * @param {string | null} wanted
 * @param {number} [asked]
 */
async function load(id, wanted, asked = ++lastAsked) {
  setAway("loading");
  setTitle(sidebar.library.conversations.get(id) ?? null);
  writeTo(id, null);
  try {
    const { conversation, messages } = await api.conversation(id);
    if (asked === lastAsked) session.open(conversation, messages, wanted);
  } catch (error) {
    if (asked === lastAsked) notOpened(/** @type {any} */ (error), () => load(id, wanted));
  }
}

/**
 * @param {{status: number, message: string}} error
 * @param {() => void} again
 */
function notOpened({ status, message }, again) {
  if (status !== 404) {
    setText(find(unopened, "p"), message);
    tryAgain = again;
    setAway("unopened");
    return;
  }
  const { draftName, isTemporary } = session.store;
  toasts.show(message);
  setAway(null);
  writeTo(draftName, null, isTemporary);
  showRunning();
  nameShown("replaceState");
}

/** What the list shows is not, or not yet, the chat of the address. @param {"loading" | "unopened" | null} why */
function setAway(why) {
  list.ariaBusy = why && "true";
  for (const about of [list, setupButton, tools]) about.inert = why !== null;
  unopened.hidden = why !== "unopened";
  page.toggleAttribute("data-unopened", why === "unopened");
  if (!why) return;
  composer.setRunning(false);
  composer.hold(why);
}

/**
 * @param {string | null} draftName
 * @param {import("./sources.js").Sources | null} usual what is picked if nothing was picked anew
 */
function writeTo(draftName, usual, isTemporary = false) {
  composer.open(draftName);
  composer.picked.open(draftName, drafts.of(draftName).sources ?? usual, isTemporary);
  queue.open(draftName);
}

/** Address, title and list say which chat is shown. @param {"pushState" | "replaceState"} [how] */
function nameShown(how) {
  const { conversation } = session.store;
  goTo(conversation, how);
  setTitle(conversation);
  sidebar.setCurrent(conversation?.id ?? null);
}

function startNew() {
  goTo(null);
  return show(null);
}

/** The chat that was shown when it was deleted. @type {string | null} */
let lastLost = null;

/** @param {string} id */
function deleted(id) {
  composer.forget(id);
  if (id !== session.store.conversation?.id || list.ariaBusy) return;
  lastLost = id;
  startNew();
}

/** Its reader is where the deletion has led, and goes back. @param {Iterable<string>} ids of chats that are there again */
function restored(ids) {
  for (const id of ids) {
    drafts.restore(id);
    const chat = sidebar.library.conversations.get(id);
    const { draftName, leaf } = session.store;
    if (chat && id === lastLost && draftName === null && leaf === null && !list.ariaBusy) openChat(chat, null);
  }
}

/** @param {string | null} wanted */
function opened(wanted) {
  glass.reset();
  setAway(null);
  const { conversation, liveRun, draftName, isTemporary } = session.store;
  choice.open(draftName);
  setup.forget();
  writeTo(draftName, { collections: lastPicked(), documents: [] }, isTemporary);
  if (!isTemporary) composer.forget(TEMPORARY);
  sendAgain(draftName); // before what waits for its answer
  showPath();
  showModels();
  setTitle(conversation);
  const found = wanted && list.reveal(wanted);
  if (found) scroll.toTarget(found);
  else scroll.toEnd();
  if (liveRun) {
    const shown = session.store.shown(liveRun.message);
    announcer.skip(liveRun.message, textOf(shown?.parts ?? []));
  }
  if (found) focusOn(found);
  else composer.offerInput();
  actions.reopen(Boolean(found));
}

/** What an answer was written from. @param {string} answer */
function excerptsOf(answer) {
  const { store } = session;
  return store.isTemporary ? api.excerptsAt(store.shown(answer)?.found?.excerpts ?? []) : api.excerpts(answer);
}

/** Collections that the last question was answered from. */
function lastPicked() {
  return session.store.path().findLast(({ role }) => role === "user")?.sources?.collections ?? [];
}

/** @param {HTMLElement} message that was looked for: it is also what a screen reader reads next */
function focusOn(message) {
  message.tabIndex = -1;
  message.focus({ preventScroll: true });
}

/**
 * What was sent before a reload, and perhaps never arrived: its client id makes it one message.
 * @param {string | null} conversation
 */
function sendAgain(conversation) {
  const sent = unfollowed(conversation);
  if (sent) session.send({ ...sent, ...answering() });
}

/** What was sent, and not from here since this page was loaded. @param {string | null} conversation */
function unfollowed(conversation) {
  return drafts.of(conversation).sent.find(({ clientId }) => !session.isSending(clientId));
}

// --- news of the session -----------------------------------------------------------------------

session.on("opened", opened);
session.on("path", showPath);
session.on("models", showModels);
session.on("message", (id) => {
  list.touch(id);
  if (session.store.phases.get(session.store.shown(id)?.run ?? "")?.phase === "approval") tellAway(gettext("A tool waits for your word."), () => {});
  showLeftOut(list, leftOutOf(session.store.path()), (summary) => api.summary(summary));
  showRunning();
});
session.on("accepted", ({ clientId, conversation, isNew, isShown }) => {
  const isHere = isNew && isShown && !list.ariaBusy; // unless its reader is about to see another one
  composer.accepted({ clientId, conversation: conversation?.id ?? TEMPORARY, isHere });
  if (!isNew) return;
  drafts.moveQueued(null, conversation.id);
  if (isShown) choice.moveTo(conversation.id);
  if (!list.ariaBusy) queue.open(session.store.draftName);
  if (isHere) nameShown();
});
session.on("rejected", ({ error, ...rejected }) => {
  if (error.code === "insufficient_quota") budgetLine().then((line) => line.insist());
  toasts.show(error.message);
  composer.rejected(rejected);
  if (rejected.conversation === session.store.draftName) actions.reopen(composer.input.value !== "");
});
session.on("conversations", (conversation) => {
  sidebar.update(conversation);
  drafts.restore(conversation.id); // another page may have taken its deletion back
  if (conversation.id === session.store.conversation?.id && !list.ariaBusy) setTitle(conversation);
});
session.on("deleted", (id) => {
  sidebar.forget(id);
  deleted(id);
});
session.on("subscribed", async () => {
  if (!unopened.hidden) tryAgain();
  session.compare(await sidebar.refresh());
});
session.on("library", () => sidebar.refresh());
session.on("stranger", () => location.assign("/"));
session.on("error", (error) => toasts.show(error.message));

socket.on("state", (state) => {
  statusBar.setConnection(state, socket.retryAt);
  announcer.sayConnection(state);
  if (state === "signed-out") import("./sign-in-again.js").then(({ goOn }) => goOn(statusBar, session, drafts));
  const last = session.store.path().at(-1);
  if (last) list.touch(last.id);
});

// --- news of the elements ----------------------------------------------------------------------

list.addEventListener("drawn", (event) => {
  for (const id of /** @type {CustomEvent} */ (event).detail) {
    const message = session.store.shown(id);
    if (message?.role !== "assistant" || message.status === "sending") continue;
    const hasEnded = message.status !== "running";
    announcer.follow(id, textOf(message.parts), hasEnded, message.key !== undefined, hasEnded ? endLine(message) : null);
    const phase = hasEnded ? null : session.store.phases.get(message.run ?? "");
    if (phase?.phase === "approval") announcer.ask(`${message.run} ${phase.detail}`, `${phaseLine(phase).text} ${approvalKeys()}`);
  }
});

function approvalKeys() {
  return gettext("%(allow)s allows it, %(deny)s does not.", { allow: keysOf("allow"), deny: keysOf("deny") });
}

list.addEventListener("trace", (event) => {
  const { id, opener } = /** @type {CustomEvent} */ (event).detail;
  glass.toggle(id, opener);
});
list.addEventListener("copied", () => announcer.say(gettext("Copied.")));
list.addEventListener("problem", (event) => toasts.show(/** @type {CustomEvent} */ (event).detail));

composer.addEventListener("send", (event) => {
  send(/** @type {CustomEvent} */ (event).detail);
});
composer.addEventListener("queue", (event) => {
  queue.add(/** @type {CustomEvent} */ (event).detail);
  announcer.say(gettext("The message is sent after this answer."));
});
composer.addEventListener("held", (event) => announcer.say(/** @type {CustomEvent} */ (event).detail));
queue.addEventListener("take-back", (event) => {
  composer.takeBack(/** @type {CustomEvent} */ (event).detail);
});
queue.addEventListener("leave", () => composer.focusInput());
queue.addEventListener("send-now", sendNext);
composer.addEventListener("stop", stop);
composer.addEventListener("edit-last", () => queue.focusLast() || list.ariaBusy || actions.editLast());
find(unopened, "button").addEventListener("click", () => tryAgain());

const temporary = new TemporaryChat({
  session,
  api,
  tell: (words) => toasts.show(words),
  model: () => currentModel()?.name ?? null,
  isTyped: () => !list.ariaBusy && composer.input.value.trim() !== "",
  leave: () => {
    goTo(null);
    sidebar.setCurrent(null);
  },
  kept: (conversation, messages) => {
    const { sources, editing } = drafts.of(TEMPORARY);
    drafts.pick(conversation.id, sources);
    drafts.moveQueued(TEMPORARY, conversation.id);
    composer.moveTo(conversation.id);
    goTo(conversation);
    session.open(conversation, messages);
    sidebar.setCurrent(conversation.id);
    for (const text of Object.values(editing)) composer.takeBack({ text }); // its messages have other ids now
  },
});

const actions = new MessageActions({
  session,
  api,
  list,
  scroll,
  toasts,
  drafts,
  withNewTurn,
  speech: bootstrap.speaks ? (text, signal) => api.speech(text, signal) : null,
  models: () => session.models,
  model: () => currentModel()?.name ?? null,
  focusComposer: () => composer.focusInput(),
  goTo: (conversation) => {
    sidebar.update(conversation);
    goTo(conversation);
    show(conversation.id);
  },
});

sidebar.addEventListener("open", (event) => {
  const conversation = /** @type {CustomEvent} */ (event).detail;
  goTo(conversation);
  show(conversation.id);
});
sidebar.addEventListener("new", startNew);
sidebar.addEventListener("deleted", (event) => deleted(/** @type {CustomEvent} */ (event).detail));
sidebar.addEventListener("search", search);
sidebar.addEventListener("problem", (event) => toasts.show(/** @type {CustomEvent} */ (event).detail));
sidebar.addEventListener("done", (event) => {
  const { text, undo } = /** @type {CustomEvent} */ (event).detail;
  const run = async () => restored(await undo());
  toasts.show(text, { action: gettext("Undo"), run, shownMs: UNDO_MS });
});
sidebar.addEventListener("answered", (event) => {
  const conversation = /** @type {CustomEvent} */ (event).detail;
  const text = newsLine(conversation);
  if (!text) return;
  const run = () => openChat(conversation, null);
  tellAway(text, run);
  toasts.show(text, { action: gettext("Open"), run });
});

find(document, "search-palette").addEventListener("open", async (/** @type {CustomEvent} */ { detail }) => {
  const { conversation, message, url, text } = detail;
  await openChat({ id: conversation.id, url }, message);
  if (message) (await import("./found-words.js")).markWords(list.rootOf(message), text);
});

/**
 * @param {{id: string, url: string}} conversation
 * @param {string | null} message
 */
function openChat(conversation, message) {
  goTo(conversation);
  return show(conversation.id, message);
}

picker.addEventListener("choose", (event) => chooseModel(/** @type {CustomEvent} */ (event).detail));
picker.addEventListener("beside", (event) => toggleBeside(/** @type {CustomEvent} */ (event).detail));
picker.addEventListener("load", (event) => loadModel(/** @type {CustomEvent} */ (event).detail));
picker.addEventListener("pin", (event) => {
  choice.togglePin(/** @type {CustomEvent} */ (event).detail);
  showModels();
});
picker.addEventListener("assistant", (event) => {
  chooseAssistant(/** @type {CustomEvent} */ (event).detail);
});
setupButton.addEventListener("click", () => setup.open(session.store.conversation));
find(page, "[data-chat-menu]").addEventListener("click", (/** @type {Event} */ { currentTarget }) => {
  const { conversation } = session.store;
  if (conversation) sidebar.openMenu(conversation, /** @type {HTMLElement} */ (currentTarget));
});
statusBar.addEventListener("retry", () => socket.connect());
statusBar.addEventListener("load", () => loadModel(currentModel().name));

find(page, ".starters").addEventListener("click", (event) => {
  const starter = /** @type {Element} */ (event.target).closest("[data-starter]");
  if (starter) composer.fill(/** @type {HTMLElement} */ (starter).dataset.starter ?? "");
});
document.addEventListener("click", async ({ target }) => {
  const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[data-chat-tool]"));
  const { store } = session;
  const menu = /** @type {HTMLElement | null | undefined} */ (button?.closest("#chat-menu"));
  const id = menu?.dataset.conversation ?? store.conversation?.id; // by the time that the tool is loaded it may be another one
  if (!button || !id) return;
  try {
    await (await import("./chat-tools.js")).openChatTool(button.dataset.chatTool ?? "", id, store, api);
  } catch (error) {
    toasts.show(/** @type {Error} */ (error).message);
  }
});
find(document, "[data-show-shortcuts]").addEventListener("click", showShortcuts);

async function showShortcuts() {
  find(document, "#account-menu").hidePopover();
  const dialog = find(document, "#shortcuts");
  const help = await import("./shortcut-help.js").catch(() => null);
  help?.fillHelp(dialog, shortcuts);
  if (!dialog.open) dialog.showModal();
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

const openSettings = listenForSettings({
  mayReload: () => !session.store.isTemporary && !composer.picked.wouldLose,
  changed: async () => {
    picker.assistants = await api.assistants();
    showModels();
  },
});
/** Not while another chat is on its way: it would be done to the one before. @param {() => unknown} act */
const here = (act) => () => !list.ariaBusy && act();
const usual = chatShortcuts(
  {
    startNew,
    search,
    toggleSidebar,
    deleteShown: here(deleteShown),
    showShortcuts,
    openSettings,
    focusComposer: () => composer.focusInput(),
    stop: here(() => session.store.isBusy && stop()),
    chooseModel: () => picker.toggle(),
    toStart: () => scroll.toStart(),
    toEnd: () => scroll.toEnd(),
    toggleTemporary: () => temporary.toggle(),
    regenerate: here(() => actions.regenerateLast()),
    goOn: here(() => actions.continueLast()),
    olderVersion: here(() => actions.focused !== null && actions.step(actions.focused, -1)),
    attach: () => press(composer, ".composer__attach") || toasts.show(whyNoFiles(composer) ?? ""), // never the page's source
    allow: here(() => press(list, "[data-act=allow]")),
    deny: here(() => press(list, "[data-act=deny]")),
    newerVersion: here(() => actions.focused !== null && actions.step(actions.focused, 1)),
  },
  copyLast,
);
const shortcuts = withOwnKeys(usual);
listenForShortcuts(shortcuts);
composer.stopKeys = keysOf("stop");
if (preference("shortcuts")) followKeys();
document.addEventListener("shortcuts", followKeys);

function followKeys() {
  import("./key-hints.js").then((hints) => hints.followKeys(usual, shortcuts, composer), () => {});
}

/** @param {string} name of a shortcut */
function keysOf(name) {
  return keyWords(/** @type {import("./shortcuts.js").Shortcut} */ (shortcuts.find((one) => one.name === name)));
}

/** The last button that is seen. @param {HTMLElement} root @param {string} selector */
function press(root, selector) {
  const buttons = /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(selector));
  const button = [...buttons].findLast(({ offsetParent }) => offsetParent !== null);
  button?.click();
  return button !== undefined;
}

function deleteShown() {
  const id = session.store.conversation?.id;
  if (id) sidebar.askToDelete(id);
}

// --- begin -------------------------------------------------------------------------------------

new ResizeObserver(([{ borderBoxSize }]) => {
  for (const one of [scroller, toasts]) one.style.setProperty("--foot-size", `${borderBoxSize[0].blockSize}px`);
}).observe(foot);
followKeyboard();
placeAllPopovers();
followTheme();
onBackAndForward(show);
addEventListener("online", () => socket.connect());
addEventListener("offline", () => socket.verify()); // a server on this machine may still be there
addEventListener("beforeunload", (event) => (temporary.wouldBeLost || composer.picked.wouldLose) && event.preventDefault());
document.addEventListener("visibilitychange", () => document.hidden || socket.connect());
addEventListener("storage", ({ key, newValue }) => {
  if (key !== "vitrine.language" || !newValue) return;
  toasts.show(gettext("Another language was chosen in the settings."), { action: gettext("Reload"), run: () => location.reload(), shownMs: 60_000 });
});

session.user = page.dataset.user;
session.models = choice.models = bootstrap.models;
choice.begin(bootstrap.chosen);
sidebar.api = api;
composer.drafts = queue.drafts = drafts;
composer.setupOfNew = session.setupOfTemporary = () => setup.fieldsOfNew;
picker.assistants = bootstrap.assistants;
if (bootstrap.budgets.length) budgetLine().then((line) => line.show(bootstrap.budgets));
onSignOut(() => drafts.close());
sidebar.show(bootstrap.sidebar);
sidebar.setCurrent(bootstrap.conversation?.id ?? null);
keepShell((reload) => {
  toasts.show(gettext("A new version of Vitrine is there."), { action: gettext("Reload"), run: reload, shownMs: 60_000 });
});
session.open(bootstrap.conversation, bootstrap.messages, wantedMessage());
const asked = conversationAt(location.pathname);
if (asked && !bootstrap.conversation) {
  session.doubt(); // a kept page, without a connection
  show(asked, wantedMessage());
}
if (preference("keep-chats")) keepChats();
document.addEventListener("keep-chats", keepChats);
socket.connect();
const wantedAssistant = new URLSearchParams(location.search).get("assistant");
if (wantedAssistant && !bootstrap.conversation) {
  history.replaceState(null, "", "/");
  chooseAssistant(wantedAssistant);
}
if (location.search && !bootstrap.conversation) takeShared();

function keepChats() {
  import("./kept-chats.js").then((kept) => kept.keepChats(session, sidebar), () => {});
}

async function takeShared() {
  const { sharedText } = await import("./shared-in.js");
  const text = sharedText(location.search);
  if (!text) return;
  history.replaceState(null, "", "/");
  composer.takeBack({ text });
}
