import { timers } from "../time/timers.ts"

/** So many messages are taken in a turn of the event loop before the time is looked at. */
const unwatched = 8
/**
 * How long further ones are taken in the same turn, ms. What they lead to takes several times as
 * long.
 */
const maxTakeMs = 3

/** Messages that wait until they are taken. */
export interface TakeLine<A> {
  /** Takes a message now, or when it is its turn. */
  readonly take: (message: A) => void
  /** Returns the messages that wait, which are not taken any more. */
  readonly clear: () => ReadonlyArray<A>
}

/** What waits of one line, the oldest first. */
class Line<A> {
  readonly waiting: Array<A> = []
  readonly #handle: (message: A) => void
  /** Called when nothing waits any more. */
  readonly emptied: () => void

  constructor(handle: (message: A) => void, emptied: () => void = () => undefined) {
    this.#handle = handle
    this.emptied = emptied
  }

  takeNext(): void {
    const next = this.waiting.shift()
    if (next !== undefined) this.#handle(next)
  }
}

type AnyLine = Pick<Line<unknown>, "emptied" | "takeNext"> & {
  readonly waiting: ReadonlyArray<unknown>
}

/**
 * Divides the time of the event loop between messages that come from a broker and all else.
 *
 * A thousand messages may come at once, as where the retries of ten thousand endpoints are due, and
 * each leads to some work. Taken without a break, they keep the requests and answers of everybody
 * waiting: endpoints then seem slow, and their deliveries wait in queues. So what has not been taken
 * after a few ms waits for the next turns of the loop: one message of each line, in turn.
 */
export class TakeTurns {
  readonly #lines = new Set<AnyLine>()
  /** Messages that were taken at once since a turn of the loop was last seen to end. */
  #taken = 0
  /** Until when more are taken at once in this turn (monotonic ms). */
  #until = 0

  /** Makes a line. @param handle takes a message. */
  line<A>(handle: (message: A) => void): TakeLine<A> {
    const line = new Line(handle)
    return {
      take: (message) => {
        if (this.#mayTake()) handle(message)
        else this.#wait(line, message)
      },
      clear: () => {
        this.#lines.delete(line)
        return line.waiting.splice(0)
      }
    }
  }

  /**
   * Makes a line for each key, for as long as something waits in it. Returns what takes a message.
   *
   * @param keyOf returns a message's key. Asked only where the message has to wait.
   * @param handle takes a message.
   */
  lines<A>(keyOf: (message: A) => string, handle: (message: A) => void): (message: A) => void {
    const lines = new Map<string, Line<A>>()
    return (message) => {
      if (this.#mayTake()) {
        handle(message)
        return
      }
      const key = keyOf(message)
      const line = lines.get(key) ?? new Line(handle, () => lines.delete(key))
      lines.set(key, line)
      this.#wait(line, message)
    }
  }

  #mayTake(): boolean {
    if (this.#lines.size > 0) return false
    if (++this.#taken < unwatched) return true
    const now = timers.monotonicMs()
    if (this.#taken === unwatched) {
      this.#until = now + maxTakeMs
      timers.immediate(() => {
        this.#taken = 0
      })
    }
    return now < this.#until
  }

  #wait<A>(line: Line<A>, message: A): void {
    line.waiting.push(message)
    if (this.#lines.size === 0) this.#later()
    this.#lines.add(line)
  }

  #later(): void {
    timers.immediate(() => {
      const until = timers.monotonicMs() + maxTakeMs
      while (this.#lines.size > 0 && timers.monotonicMs() < until) this.#takeOfEach()
      if (this.#lines.size > 0) this.#later()
    })
  }

  #takeOfEach(): void {
    for (const line of this.#lines) {
      line.takeNext()
      if (line.waiting.length > 0) continue
      this.#lines.delete(line)
      line.emptied()
    }
  }
}
