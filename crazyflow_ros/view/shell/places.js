// Elements in places that the panel leaves for them: <div data-place="name"></div>. viser takes the
// places away and makes them anew as its tabs are opened, so they are looked for again and again.
const places = (() => {
  const PERIOD = 200; // ms
  const kept = [];

  const look = () => {
    for (const one of kept) {
      const place = document.querySelector(`[data-place="${one.name}"]`);
      if (place && one.element.parentElement !== place) place.replaceChildren(one.element);
      const isVisible = Boolean(place) && one.element.getClientRects().length > 0;
      if (isVisible !== one.isVisible) one.tell((one.isVisible = isVisible));
    }
  };

  // Puts an element into a place, and tells whether it is seen.
  const put = (name, element, tell) => kept.push({ name, element, tell, isVisible: false });

  setInterval(look, PERIOD);
  return { put };
})();
