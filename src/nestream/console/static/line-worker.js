// The one line of live messages of a browser, shared by all its tabs: a browser has six connections to a server, and each
// line holds one. A tab that joins gets a snapshot with the number of its last message, and then the messages after it.

const MOST_KEPT = 200;
const tabs = new Map(); // the port of each tab, and the number of the last message that it has; null before its snapshot
const recent = []; // the last messages, for tabs that wait for their snapshot
let line = null;
let isOpen = false;

function send(port, message) {
  try {
    port.postMessage(message);
  } catch {
    leave(port);
  }
}

function leave(port) {
  tabs.delete(port);
  if (!tabs.size && line) {
    line.close();
    line = null;
    isOpen = false;
    recent.length = 0;
  }
}

const numberOf = (id) => Number(id.slice(id.lastIndexOf("-") + 1));

function connect() {
  line = new EventSource("/api/stream");
  line.addEventListener("open", () => { isOpen = true; for (const port of tabs.keys()) send(port, { kind: "open" }); });
  line.addEventListener("error", () => {
    isOpen = false;
    for (const port of tabs.keys()) send(port, { kind: "lost" });
    if (line && line.readyState === EventSource.CLOSED) setTimeout(() => { if (tabs.size) connect(); }, 2000);
  });
  line.addEventListener("snapshot", (event) => {
    recent.length = 0;
    for (const port of tabs.keys()) {
      tabs.set(port, numberOf(event.lastEventId));
      send(port, { kind: "snapshot", data: event.data });
    }
  });
  line.addEventListener("update", (event) => {
    const message = { kind: "update", data: event.data, number: numberOf(event.lastEventId) };
    recent.push(message);
    if (recent.length > MOST_KEPT) recent.shift();
    for (const [port, last] of tabs) if (last !== null) pass(port, message);
  });
}

function pass(port, message) {
  if (message.number > tabs.get(port)) {
    tabs.set(port, message.number);
    send(port, message);
  }
}

async function join(port) {
  try {
    const answer = await fetch("/api/snapshot");
    const { number, data } = await answer.json();
    if (!tabs.has(port) || tabs.get(port) !== null) return; // gone, or a new line gave it one
    send(port, { kind: "snapshot", data: JSON.stringify(data) });
    tabs.set(port, number);
    if (isOpen) send(port, { kind: "open" });
    recent.forEach((message) => pass(port, message));
  } catch {
    setTimeout(() => { if (tabs.get(port) === null) join(port); }, 2000);
  }
}

self.addEventListener("connect", (event) => {
  const [port] = event.ports;
  const first = !tabs.size;
  tabs.set(port, null);
  port.addEventListener("message", ({ data }) => { if (data === "leave") leave(port); });
  port.start();
  if (first && !line) connect();
  else join(port);
});
