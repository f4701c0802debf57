import type { Socket } from "node:net"
import { timers } from "../time/timers.ts"

/**
 * How long a connection is held before it is closed, ms. Its client can come again only then: who is
 * closed at once connects at once, and stands in the one line in which all wait to be let in.
 */
const heldMs = 1_000
/** Connections that are held at the same time: where there are more, the one goes that came first. */
const maxHeld = 2_048

/** Connections that have lost their place, and are closed a while after that. */
export class HeldConnections {
  readonly #ends = new Map<Socket, () => void>()

  /** How many there are. */
  get size(): number {
    return this.#ends.size
  }

  /** @param close is called once, unless the connection closes by itself. */
  hold(socket: Socket, close: () => void): void {
    const forget = () => {
      timers.cancel(timer)
      this.#ends.delete(socket)
    }
    const end = () => {
      forget()
      close()
    }
    const timer = timers.after(heldMs, end)
    socket.once("close", forget)
    this.#ends.set(socket, end)
    if (this.#ends.size <= maxHeld) return
    const [first] = this.#ends.values()
    first?.()
  }
}
