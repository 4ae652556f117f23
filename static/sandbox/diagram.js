// The page in which diagrams are drawn. It has no origin, no network and no store; whoever embeds it
// sends {type: "draw", id, source, theme} and gets {type: "drawn", id, svg, width, height} or
// {type: "failed", id, message}.
(() => {
  const FONT = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif';
  const COLOURS = {
    light: {
      background: "#fbfaf8", primaryColor: "#eef5f4", primaryBorderColor: "#4d9c97", primaryTextColor: "#1d2129",
      secondaryColor: "#f1efea", secondaryBorderColor: "#a9a69f", tertiaryColor: "#f6f4f0",
      tertiaryBorderColor: "#c9c6bf", lineColor: "#6c7078", textColor: "#1d2129", noteBkgColor: "#f6f1e2",
      noteBorderColor: "#c9b98a", noteTextColor: "#1d2129", edgeLabelBackground: "#fbfaf8",
      errorBkgColor: "#fbeceb", errorTextColor: "#9b2d23", clusterBkg: "#f6f4f0", clusterBorder: "#dedbd4",
      pie1: "#4d9c97", pie2: "#5b7fb4", pie3: "#8a6fb0", pie4: "#b08a4a", pie5: "#6c9c6a", pie6: "#b0706a",
      pieStrokeColor: "#fbfaf8", pieOuterStrokeColor: "#dedbd4", pieSectionTextColor: "#ffffff",
    },
    dark: {
      background: "#12171f", primaryColor: "#1d3236", primaryBorderColor: "#5fb3ad", primaryTextColor: "#ebeae6",
      secondaryColor: "#222a35", secondaryBorderColor: "#5c6675", tertiaryColor: "#1a212b",
      tertiaryBorderColor: "#3a4453", lineColor: "#9aa3b0", textColor: "#ebeae6", noteBkgColor: "#332d1c",
      noteBorderColor: "#7d6d3f", noteTextColor: "#ebeae6", edgeLabelBackground: "#12171f",
      errorBkgColor: "#3a201e", errorTextColor: "#f0a59c", clusterBkg: "#171e28", clusterBorder: "#2f3947",
      pie1: "#3f857f", pie2: "#4a6a9a", pie3: "#735b96", pie4: "#957339", pie5: "#57825a", pie6: "#965c57",
      pieStrokeColor: "#12171f", pieOuterStrokeColor: "#2f3947", pieSectionTextColor: "#ffffff",
    },
  };

  function configure(theme) {
    window.mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      secure: ["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "suppressErrorRendering",
        "theme", "themeVariables", "themeCSS", "darkMode", "fontFamily", "htmlLabels"],
      suppressErrorRendering: true,
      maxTextSize: 20000,
      maxEdges: 300,
      htmlLabels: false,
      flowchart: { htmlLabels: false, padding: 14 },
      theme: "base",
      darkMode: theme === "dark",
      fontFamily: FONT,
      themeVariables: { ...COLOURS[theme], fontFamily: FONT, fontSize: "15px", darkMode: theme === "dark" },
    });
  }

  /** A picture of its own: as XML, with a size, without what refers to this page. */
  function picture(html) {
    const svg = new DOMParser().parseFromString(html, "text/html").querySelector("svg");
    for (const script of svg.querySelectorAll("script")) script.remove();
    for (const element of svg.querySelectorAll("*")) {
      for (const name of element.getAttributeNames()) {
        if (name.startsWith("on") || name.endsWith("href")) element.removeAttribute(name);
      }
    }
    const { width, height } = svg.viewBox.baseVal;
    svg.setAttribute("width", String(Math.ceil(width)));
    svg.setAttribute("height", String(Math.ceil(height)));
    svg.style.removeProperty("max-width");
    return { svg: new XMLSerializer().serializeToString(svg), width: Math.ceil(width), height: Math.ceil(height) };
  }

  addEventListener("message", async ({ source, data }) => {
    if (source !== parent || data?.type !== "draw") return;
    const { id } = data;
    try {
      configure(data.theme === "dark" ? "dark" : "light");
      const { svg } = await window.mermaid.render(`d${id}`, String(data.source));
      parent.postMessage({ type: "drawn", id, ...picture(svg) }, "*");
    } catch (error) {
      document.body.replaceChildren();
      parent.postMessage({ type: "failed", id, message: String(error?.message ?? error).slice(0, 500) }, "*");
    }
  });
  parent.postMessage({ type: "ready" }, "*");
})();
