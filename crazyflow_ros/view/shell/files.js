// Saves files for the user.
const files = (() => {
  const save = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  shell.on("file", ({ name, type, text }) => save(name, new Blob([text], { type })));
  return { save };
})();
