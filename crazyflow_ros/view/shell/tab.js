// Tells the server which of viser's clients this tab is: viser shows each its own mark, see tabs.py.
(() => {
  let mark = "";
  const tell = () => mark && shell.send("mark", mark);
  new MutationObserver(() => {
    const found = document.querySelector("[data-mark]")?.dataset.mark ?? "";
    if (found === mark) return;
    mark = found;
    tell();
  }).observe(document, { childList: true, subtree: true });
  shell.on("connected", tell);
})();
