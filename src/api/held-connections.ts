import type { Socket } from "node:net"
import { Shares } from "../policy/shares.ts"
import { timers } from "../time/timers.ts"
import { heldBackMs } from "./held-back.ts"

/** Connections that are held at the same time: where there are more, the one goes that came first. */
const maxHeld = 2_048

/**
 * Connections that have lost their place, and are closed a while after that: who is closed at once
 * connects at once, and stands in the one line in which all wait to be let in.
 */
export class HeldConnections {
  readonly #ofOwners = new Shares(Number.POSITIVE_INFINITY)
  readonly #ends = new Map<Socket, () => void>()

  /** How many there are. */
  get size(): number {
    return this.#ends.size
  }

  /** @param close is called once, unless the connection closes by itself. */
  hold(socket: Socket, owner: string, close: () => void): void {
    const forget = () => {
      timers.cancel(timer)
      if (this.#ends.delete(socket)) this.#ofOwners.give(owner)
    }
    const end = () => {
      forget()
      close()
    }
    const timer = timers.after(heldBackMs(this.#ofOwners.usedBy(owner)), end)
    this.#ofOwners.take(owner)
    socket.once("close", forget)
    this.#ends.set(socket, end)
    if (this.#ends.size <= maxHeld) return
    const [first] = this.#ends.values()
    first?.()
  }
}
