import type { NewEvent } from "./generated/schemas.ts"
import { inTime, newId, nowMs } from "./machine.ts"

/** An event as it stands in a request. */
export interface Written<E extends NewEvent> {
  readonly event: E & { readonly id: string }
  readonly bytes: Uint8Array
}

const encoder = new TextEncoder()
const [openBracket = 0, comma = 0, closeBracket = 0] = encoder.encode("[,]")

/** Gives an event an id if it has none, so that it may be published again. */
export const withId = <E extends NewEvent>(event: E): E & { readonly id: string } => ({
  ...event,
  id: event.id ?? newId()
})

const written = <E extends NewEvent>(given: E): Written<E> => {
  const event = withId(given)
  return { event, bytes: encoder.encode(JSON.stringify(event)) }
}

/** What an event takes in an array, with the comma or bracket before it. */
const sizeOf = ({ bytes }: Written<NewEvent>): number => bytes.length + 1

/** Returns events as one JSON array. */
export const arrayOf = (events: ReadonlyArray<Written<NewEvent>>): Uint8Array => {
  const whole = new Uint8Array(events.reduce((sum, one) => sum + sizeOf(one), 1))
  let at = 0
  for (const one of events) {
    whole[at] = at === 0 ? openBracket : comma
    whole.set(one.bytes, at + 1)
    at += sizeOf(one)
  }
  whole[at] = closeBracket
  return whole
}

/** What bounds a batch: how many events and bytes it has, and how long its first event waits, ms. */
export interface Bounds {
  readonly events: number
  /** Lowered if an answer says that less is taken. */
  bytes: number
  readonly lingerMs: number
}

/** The events that go together in the next request. */
class Batch<E extends NewEvent> {
  readonly #bounds: Bounds
  #events: Array<Written<E>> = []
  #size = 1
  #sinceMs = 0

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  get isEmpty(): boolean {
    return this.#events.length === 0
  }

  get isFull(): boolean {
    return this.#events.length >= this.#bounds.events
  }

  /** How long it may wait still, ms; undefined while it is empty. */
  get leftMs(): number | undefined {
    return this.isEmpty ? undefined : this.#sinceMs + this.#bounds.lingerMs - nowMs()
  }

  /** True for an event that fits in. One that is too large for any goes alone. */
  takes(one: Written<E>): boolean {
    return this.isEmpty || this.#size + sizeOf(one) <= this.#bounds.bytes
  }

  add(one: Written<E>): void {
    if (this.isEmpty) this.#sinceMs = nowMs()
    this.#events.push(one)
    this.#size += sizeOf(one)
  }

  /** Returns what it has, and is empty. */
  empty(): ReadonlyArray<Written<E>> {
    const events = this.#events
    this.#events = []
    this.#size = 1
    return events
  }
}

const iteratorOf = <E>(source: Iterable<E> | AsyncIterable<E>): AsyncIterator<E> | Iterator<E> =>
  Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()

/**
 * Puts the events of a source together to batches, each as soon as it is full or its first event has
 * waited for long enough. Reads one event ahead at most.
 */
export async function* batchesOf<E extends NewEvent>(
  source: Iterable<E> | AsyncIterable<E>,
  bounds: Bounds,
  signal: AbortSignal
): AsyncGenerator<ReadonlyArray<Written<E>>, undefined> {
  const iterator = iteratorOf(source)
  const batch = new Batch<E>(bounds)
  let isOver = false
  try {
    for (let next = Promise.resolve(iterator.next()); ; ) {
      const step = await inTime(next, batch.leftMs, signal)
      if (step === undefined) yield batch.empty()
      else if (step.done === true) {
        isOver = true
        if (!batch.isEmpty) yield batch.empty()
        return
      } else {
        const one = written(step.value)
        if (!batch.takes(one)) yield batch.empty()
        batch.add(one)
        if (batch.isFull) yield batch.empty()
        next = Promise.resolve(iterator.next())
      }
    }
  } finally {
    // A source that is waiting itself ends when it goes on.
    if (!isOver) Promise.resolve(iterator.return?.()).catch(() => undefined)
  }
}
