import type { Socket } from "node:net"
import { Shares } from "../policy/shares.ts"
import { timers } from "../time/timers.ts"

/**
 * How long who is refused is held back at least, ms. It can come again only then: who is refused at once
 * comes again at once, and that takes nearly as much of the thread as an answer.
 */
const leastMs = 1_000
/** How many of one owner are let go in a second, at most. */
const perSecond = 32
/** How long anything is held back at most, ms. */
const mostMs = 10_000

/**
 * Returns how long the next one of an owner is held back, ms.
 *
 * @param others of the same owner that are held back already.
 */
export const heldBackMs = (others: number): number =>
  Math.min(mostMs, Math.max(leastMs, (others * 1_000) / perSecond))

/** Connections that are held at the same time: where there are more, the one goes that came first. */
const maxHeld = 2_048

/**
 * Connections that have lost their place, and are closed a while after that: who is closed at once
 * connects at once, and stands in the one line in which all wait to be let in.
 */
export class HeldConnections {
  readonly #ofOwners = new Shares(Number.POSITIVE_INFINITY)
  readonly #ends = new Map<Socket, () => void>()
  readonly #max: number

  /** @param max fewer, where there are files for fewer. */
  constructor(max: number = maxHeld) {
    this.#max = Math.min(max, maxHeld)
  }

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
    if (this.#ends.size <= this.#max) return
    const [first] = this.#ends.values()
    first?.()
  }
}
