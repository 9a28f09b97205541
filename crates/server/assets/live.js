// Receives live events over a WebSocket, and resumes after the last one when reconnecting.
"use strict";

/// Calls `onEvent(event, data, id)` for every event, `onReset()` when events may have been
/// missed, and `onState(connected)` when the connection opens or closes.
function listen({ session, onEvent, onReset, onState = () => {} }) {
  let position = null;
  let wait = 500;
  let socket = null;
  let timer = null;
  const connect = () => {
    const url = new URL("/api/events/ws", location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    if (session) url.searchParams.set("session", session);
    if (position !== null) url.searchParams.set("after", position);
    socket = new WebSocket(url);
    socket.addEventListener("open", () => { wait = 500; onState(true); });
    socket.addEventListener("message", (message) => {
      const { id, event, data } = JSON.parse(message.data);
      if (id !== undefined) position = id;
      if (event === "reset") onReset();
      else if (event !== "ready") onEvent(event, data, id);
    });
    socket.addEventListener("close", (closing) => {
      onState(false);
      // The token was revoked or has expired, so reconnecting cannot help.
      if (closing.code === 1008) {
        notice("You were logged out. Log in again to continue.", true);
        return;
      }
      timer = setTimeout(connect, wait);
      wait = Math.min(wait * 2, 15000);
    });
  };
  connect();
  // A hidden page closes its connection and catches up when it is shown again.
  addEventListener("pagehide", () => { clearTimeout(timer); socket?.close(); });
  addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
}
