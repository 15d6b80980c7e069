// An invitation is in the fragment of the link, which no server and no log ever sees. It leaves the address bar at once.
const invitation = location.hash.slice(1);
history.replaceState(null, "", location.pathname);

const form = document.getElementById("form");
const outcome = document.getElementById("outcome");
const button = form.querySelector("button");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  outcome.textContent = "One moment …";
  try {
    const { name, password } = Object.fromEntries(new FormData(form));
    const attributes = { name, password, ...(invitation === "" ? {} : { invitation }) };
    const answer = await fetch("v1/accounts", {
      method: "POST",
      headers: { "Content-Type": "application/vnd.api+json" },
      body: JSON.stringify({ data: { type: "account", attributes } }),
    });
    if (answer.status === 201) {
      form.hidden = true;
      document.getElementById("lead").hidden = true;
      outcome.textContent = `Welcome, ${name}. Your account is ready. To connect an app, you need a token for it: ask whoever runs this server, or see the API page (docs).`;
      return;
    }
    const { errors } = await answer.json();
    outcome.textContent = `${errors[0].detail ?? errors[0].title}${invitation === "" ? " If you have a link, open it again." : ""}`;
  } catch {
    outcome.textContent = "The server cannot be reached. Nothing was done; try again.";
  }
  button.disabled = false;
});
