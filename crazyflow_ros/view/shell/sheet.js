// On a phone the drones come first: viser's panel, a sheet at the bottom or a window, begins closed.
(() => {
  const SHEET = '#root [style*="position: fixed"][style*="bottom: 0"]';
  const HANDLE = '[style*="cursor: pointer"]';
  const PHONE = matchMedia("(orientation: portrait), (pointer: coarse)"); // no small window
  const LYING = matchMedia("(max-height: 500px) and (pointer: coarse)");
  const seen = new WeakSet();
  let isLying = false;
  const look = () => {
    const hasContent = document.querySelector("[data-mark]"); // see tab.js
    const minimize = LYING.matches && hasContent && document.querySelector('#root [aria-label="Minimize panel"]');
    if (minimize && !isLying) minimize.click();
    isLying = LYING.matches && (isLying || Boolean(minimize));
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
