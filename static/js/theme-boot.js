// Runs before the first paint, as a classic script, so that neither theme nor sizes nor sidebar flash.
(() => {
  const kept = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null; // storage may be forbidden; then the system's theme it is
    }
  };
  const theme = kept("vitrine.theme");
  const root = document.documentElement;
  if (theme === "light" || theme === "dark") {
    root.dataset.theme = theme;
    for (const meta of document.querySelectorAll("meta[name=theme-color]")) {
      meta.media = meta.media.includes(theme) ? "all" : "not all";
    }
  }
  for (const [name, values] of [["text-size", ["small", "large", "larger"]], ["density", ["compact"]]]) {
    const value = kept(`vitrine.${name}`);
    if (values.includes(value)) root.setAttribute(`data-${name}`, value);
  }
  if (kept("vitrine.sidebar") === "closed") root.dataset.sidebar = "closed";
})();
