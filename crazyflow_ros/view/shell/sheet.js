// On a phone the drones come first: viser's panel, a sheet at the bottom, begins closed.
(() => {
  const SHEET = '#root [style*="position: fixed"][style*="bottom: 0"]';
  const HANDLE = '[style*="cursor: pointer"]';
  const PHONE = matchMedia("(orientation: portrait), (pointer: coarse)"); // no small window
  const seen = new WeakSet();
  const look = () => {
    const sheet = document.querySelector(SHEET);
    const handle = sheet?.querySelector(HANDLE);
    if (!handle || seen.has(sheet)) return;
    seen.add(sheet);
    sheet.classList.add("viser-sheet");
    handle.classList.add("viser-handle");
    if (PHONE.matches) handle.click();
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true });
})();
