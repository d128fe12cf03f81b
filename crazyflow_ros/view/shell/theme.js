// Follows the browser's choice of dark or light, by the parameter with which viser's page is dark.
(() => {
  const url = new URL(location.href);
  if (matchMedia("(prefers-color-scheme: dark)").matches) url.searchParams.set("darkMode", "");
  else url.searchParams.delete("darkMode");
  history.replaceState(null, "", url);
})();
