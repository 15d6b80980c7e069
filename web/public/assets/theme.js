// Before the first paint, so that the dark theme does not start with a white flash.
try {
  const theme = localStorage.getItem("earmark:theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // Storage is blocked: the system's theme applies.
}
