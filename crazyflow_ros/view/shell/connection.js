// Says when the page's program has ended, and takes up the one that answers next.
(() => {
  const { make, ready } = dom;
  const text = "The page's program has ended or cannot be reached. This tab connects again by itself.";
  const note = make("div", "shell-unreachable", text);
  note.setAttribute("role", "alert");
  note.hidden = true;
  ready(() => document.body.append(note));
  let timer = null;
  shell.on("connected", (is) => {
    clearTimeout(timer);
    const show = () => {
      note.hidden = is;
      document.documentElement.classList.toggle("unreachable", !is);
    };
    if (is) show();
    else timer = setTimeout(show, 500); // not at a reload of the page
  });
  // Another version of the program has other scripts.
  let version = null;
  shell.on("version", (now) => {
    if (version !== null && version !== now) location.reload();
    version = now;
  });
})();
