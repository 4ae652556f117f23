// @ts-check
/** The temporary chat among the parts of the page. */

import { nextModel } from "./chat-models.js";
import { api, composer, drafts, list, session, sidebar, tell } from "./chat-parts.js";
import { TEMPORARY } from "./drafts.js";
import { goTo } from "./navigation.js";
import { TemporaryChat } from "./temporary-chat.js";

export const temporary = new TemporaryChat({
  session,
  api,
  tell,
  model: nextModel,
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
