// The tab's title: what matters first, as a tab shows few letters.
(() => {
  const PROGRAM = "crazyflow_ros";
  const show = (status) => {
    const parts = [status?.word, status?.name, PROGRAM];
    document.title = parts.filter(Boolean).join(" · ");
  };
  shell.on("status", show);
  shell.on("connected", (is) => { if (!is) show({ word: "not connected" }); });
})();
