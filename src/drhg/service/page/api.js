// The service, as the page sees it: requests, errors, and events that survive lost connections.

export class Problem extends Error {
  constructor(status, title, detail, retryAfter) {
    super(detail);
    Object.assign(this, { status, title, detail, retryAfter });
  }
}

let token = sessionStorage.getItem("token") ?? "";
let asking = null;

// One question for a token at a time, whoever needs it.
function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("token-dialog");
    dialog.addEventListener("close", () => {
      token = document.getElementById("token").value.trim();
      sessionStorage.setItem("token", token);
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

async function request(path, options = {}) {
  for (;;) {
    const headers = { ...options.headers };
    if (token) headers.Authorization = `Bearer ${token}`;
    let answer;
    try {
      answer = await fetch(path, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, "The service cannot be reached", "Is it running? The page tries again by itself.");
    }
    if (answer.status === 401) {
      await askForToken();
      continue;
    }
    if (answer.ok) return answer;
    const said = await answer.json().catch(() => ({}));
    throw new Problem(answer.status, said.title ?? `Error ${answer.status}`, said.detail ?? "", answer.headers.get("Retry-After"));
  }
}

export const get = async (path) => (await request(path)).json();
export const remove = async (path) => (await request(path, { method: "DELETE" })).json();
export const post = async (path, body, headers = {}) =>
  (await request(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers } })).json();
export const health = () => get("healthz").catch(() => ({ status: "lost" }));

export async function save(path, name) {
  const answer = await request(path);
  const given = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = given ? given[1] : name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Everything that happens to a solve. A lost connection is taken up where it broke off.
export async function follow(id, { onEvent, onLost, signal }) {
  let last = 0;
  let pause = 300;
  while (!signal.aborted) {
    try {
      const answer = await request(`solves/${id}/events`, { headers: last ? { "Last-Event-ID": String(last) } : {}, signal });
      pause = 300;
      onLost(false);
      for await (const event of parsed(answer.body)) {
        last = event.id || last;
        onEvent(event.name, event.data);
        if (event.name === "end") return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status === 404) {
        onEvent("gone", error);
        return;
      }
    }
    onLost(true);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(2 * pause, 4000);
  }
}

async function* parsed(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const event = { name: "message", id: 0, data: "" };
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) event.name = line.slice(7);
        else if (line.startsWith("id: ")) event.id = Number(line.slice(4));
        else if (line.startsWith("data: ")) event.data += line.slice(6);
      }
      if (event.data) yield { ...event, data: JSON.parse(event.data) };
    }
  }
}
