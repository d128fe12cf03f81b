// Tells the server which of viser's clients this tab is: viser shows each its own mark, see tabs.py.
(() => {
  const root = document.documentElement;
  const hasMarks = root.classList.contains("unmarked");
  let mark = "";
  const tell = () => mark && shell.send("mark", mark);
  const look = () => {
    const found = document.querySelector("[data-mark]")?.dataset.mark ?? "";
    root.classList.toggle("unmarked", hasMarks && !found);
    if (found === mark) return;
    mark = found;
    tell();
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
  shell.on("connected", tell);
  look();
})();
