// @ts-check
/** Several chats in one file of the schema `vitrine.chats` (docs/data.md), to be imported again. */

import { request } from "./api.js";
import { download } from "./block-actions.js";

/** @param {{id: string}[]} chats */
export async function exportChosen(chats) {
  const files = [];
  for (const { id } of chats) files.push(await request("", "GET", `/api/conversations/${id}/export`));
  const whole = new Blob([JSON.stringify(together(files))], { type: "application/json" });
  download(`vitrine-chats-${new Date().toISOString().slice(0, 10)}.json`, whole);
}

/**
 * One file of many. Pure.
 * @param {{chats: object[]}[]} files
 */
export function together(files) {
  return { ...files[0], chats: files.flatMap(({ chats }) => chats) };
}
