// @ts-check
/** Files that somebody drops, pastes or chooses, those in folders among them. */

/** @typedef {{file: File, path: string}} Chosen `path` is where it is in its folder, "" outside of one */

const MAX_FILES = 5000;
/** What systems leave in folders, and nobody means. */
const LITTER = /^(\.|~\$|Thumbs\.db$|desktop\.ini$|__MACOSX$)/i;

/**
 * @param {DataTransfer} transfer
 * @returns {Promise<Chosen[]>}
 */
export async function filesOf(transfer) {
  // At once: after the first pause a browser has emptied the transfer.
  const entries = [...transfer.items].filter(({ kind }) => kind === "file").map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
  /** @type {Chosen[]} */
  const found = [];
  for (const entry of entries) {
    if (entry instanceof File) found.push({ file: entry, path: "" });
    else if (entry) await walk(entry, found);
  }
  return found;
}

/**
 * @param {FileList | null} files of an input
 * @returns {Chosen[]}
 */
export function filesOfInput(files) {
  return [...(files ?? [])]
    .map((file) => ({ file, path: file.webkitRelativePath }))
    .filter(({ file, path }) => (path ? !path.split("/").some((part) => LITTER.test(part)) : Boolean(file.name)));
}

/**
 * @param {any} entry a FileSystemEntry
 * @param {Chosen[]} found
 */
async function walk(entry, found) {
  const isLitter = LITTER.test(entry.name) && entry.fullPath.lastIndexOf("/") > 0;
  if (isLitter || found.length >= MAX_FILES) return;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject)).catch(() => null);
    const path = entry.fullPath.replace(/^\//, "");
    if (file) found.push({ file, path: path.includes("/") ? path : "" });
    return;
  }
  const reader = entry.createReader();
  // A reader gives a hundred at a time, and nothing at its end.
  for (;;) {
    const inside = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)).catch(() => []);
    if (!inside.length) return;
    for (const one of inside) await walk(one, found);
  }
}
