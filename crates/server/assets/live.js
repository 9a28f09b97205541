// Hears of what happens, and goes on where it left off when the connection breaks.
"use strict";

/// Calls `heard(event, data)` for everything that happens, `lost()` where something may
/// have been missed, and `state(connected)` as that changes.
function listen({ session, heard, lost, state = () => {} }) {
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
    socket.addEventListener("open", () => { wait = 500; state(true); });
    socket.addEventListener("message", (message) => {
      const { id, event, data } = JSON.parse(message.data);
      if (id !== undefined) position = id;
      if (event === "reset") lost();
      else if (event !== "ready") heard(event, data, id);
    });
    socket.addEventListener("close", (closing) => {
      state(false);
      // The token was revoked or has expired: connecting again cannot help.
      if (closing.code === 1008) {
        notice("You were logged out. Log in again to go on.", true);
        return;
      }
      timer = setTimeout(connect, wait);
      wait = Math.min(wait * 2, 15000);
    });
  };
  connect();
  // A page that nobody sees needs no connection; it takes up what it missed.
  addEventListener("pagehide", () => { clearTimeout(timer); socket?.close(); });
  addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
}
