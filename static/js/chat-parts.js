// @ts-check
/** What the chat page is made of, once each: the session with its socket, and the elements. */

import { Announcer } from "./announcer.js";
import { Api } from "./api.js";
import { ChatSetup } from "./chat-setup.js";
import { ChatComposer } from "./composer.js";
import { find } from "./dom.js";
import { Drafts } from "./drafts.js";
import { MessageList } from "./message-list.js";
import { queueOf } from "./message-queue.js";
import { ModelChoice } from "./model-choice.js";
import { ModelPicker } from "./model-picker.js";
import { ScrollKeeper } from "./scroll.js";
import { ChatSession } from "./session.js";
import { ChatSidebar } from "./sidebar.js";
import { SidePanel } from "./side-panel.js";
import { ChatSocket } from "./socket.js";
import { StatusBar } from "./status-bar.js";
import { ToastRegion } from "./toast.js";

export const bootstrap = JSON.parse(find(document, "#bootstrap").textContent);
export const page = find(document, "#chat");
export const foot = find(document, "#foot");
export const scroller = find(document, "#scroller");
export const list = /** @type {MessageList} */ (find(document, "message-list"));
export const composer = /** @type {ChatComposer} */ (find(document, "chat-composer"));
export const sidebar = /** @type {ChatSidebar} */ (find(document, "chat-sidebar"));
export const picker = /** @type {ModelPicker} */ (find(document, "model-picker"));
export const panel = /** @type {SidePanel} */ (find(document, "side-panel"));
export const statusBar = /** @type {StatusBar} */ (find(document, "status-bar"));
export const toasts = /** @type {ToastRegion} */ (find(document, "toast-region"));
export const setupButton = find(page, "[data-chat-setup]");
export const tools = find(page, ".bar__tools");
export const queue = queueOf(document);

export const api = new Api(bootstrap.csrf);
export const socket = new ChatSocket(`${location.origin.replace(/^http/, "ws")}/ws/chat/`);
export const session = new ChatSession(socket, api);
export const drafts = new Drafts(page.dataset.user);
export const scroll = new ScrollKeeper(scroller, [list, foot], find(document, "#jump"));
export const announcer = new Announcer(find(document, "#announcer"));
export const choice = new ModelChoice((chosen) => api.personalise(chosen).catch(({ message }) => toasts.show(message)));
export const setup = new ChatSetup(api, find(document, "#chat-setup"), tell);

/** @param {string} words @param {Parameters<ToastRegion["show"]>[1]} [more] */
export function tell(words, more) {
  toasts.show(words, more);
}

/** @param {unknown} error */
export function tellOf(error) {
  tell(/** @type {Error} */ (error).message);
}
