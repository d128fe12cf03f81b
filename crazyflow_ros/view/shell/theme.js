// Dark or light, as the browser or the page's switch "Dark page" says, also while it changes.
(() => {
  const root = document.documentElement;
  const choice = matchMedia("(prefers-color-scheme: dark)");
  let isForced = false;
  let isDark = null;

  // viser is told by the server, and is light until then: nobody sees it in the wrong colours.
  const hold = () => {
    const viser = root.dataset.mantineColorScheme;
    root.classList.toggle("unthemed", viser !== undefined && (viser === "dark") !== isDark);
  };
  const set = () => {
    const before = isDark;
    isDark = isForced || choice.matches;
    root.classList.toggle("dark", isDark);
    hold();
    if (before !== isDark) shell.send("dark", isDark);
  };
  new MutationObserver(hold).observe(root, { attributeFilter: ["data-mantine-color-scheme"] });
  choice.addEventListener("change", set);
  shell.on("dark page", (forced) => { isForced = forced; set(); });
  shell.on("connected", () => shell.send("dark", isDark));
  set();
})();
