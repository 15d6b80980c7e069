// Before the first paint, so that nobody who chose the dark sees a flash of white.
try {
  const theme = localStorage.getItem("earmark:theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // Storage is switched off: the system's colours it is.
}
