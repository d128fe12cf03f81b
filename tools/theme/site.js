// What the theme leaves out for those who use a keyboard or a screen reader.
document$.subscribe(() => {
  document.querySelector(".md-search").ariaLabel = "Search";
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap"))
    if (wrap.scrollWidth > wrap.clientWidth) wrap.tabIndex = 0;
});
