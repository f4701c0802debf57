import type { MadeEvent, Signed } from "./senders.ts"

/** What is wrong with a request, or right. */
export type Kind =
  /** The event as it is first sent, out of order among those of its subject. */
  | "first"
  /** The same request again, later or at the same time. */
  | "repeat"
  /** Signed an hour ago, or an hour from now. */
  | "stale"
  | "future"
  /** Without its signature, signed with another secret, and changed after it was signed. */
  | "unsigned"
  | "foreign"
  | "forged"
  /** Cut off in the middle of its body. */
  | "aborted"
  /** A body that is larger than any sender's. */
  | "oversized"

/** What a receiver should do with a request: nothing of it holds for those without a word. */
export const expected: Readonly<Partial<Record<Kind, "taken" | "refused">>> = {
  first: "taken",
  repeat: "taken",
  stale: "refused",
  future: "refused",
  unsigned: "refused",
  foreign: "refused",
  forged: "refused",
  oversized: "refused"
}

/** A request of the storm. */
export interface Planned {
  readonly kind: Kind
  readonly event: MadeEvent
}

/** Returns numbers in [0, 1), the same ones for the same seed (mulberry32). */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const shuffled = <A>(all: ReadonlyArray<A>, random: () => number): ReadonlyArray<A> => {
  const made = [...all]
  for (let place = made.length - 1; place > 0; place -= 1) {
    const other = Math.floor(random() * (place + 1))
    const [one, two] = [made[place], made[other]]
    if (one !== undefined && two !== undefined) [made[place], made[other]] = [two, one]
  }
  return made
}

/** Share of events that come twice at the same time. */
const besideFirst = 0.2

/** Requests of each kind for 10 events. */
const shares: Readonly<Record<Exclude<Kind, "first" | "oversized">, number>> = {
  repeat: 2,
  stale: 1,
  future: 1,
  unsigned: 1,
  foreign: 1,
  forged: 1,
  aborted: 0.5
}

/** Returns whether receivers can see that a request is of this kind. */
const isOf =
  (signs: Signed) =>
  (kind: Kind): boolean => {
    if (kind === "stale" || kind === "future") return signs.time
    return kind !== "forged" || signs.body
  }

/**
 * Plans a storm: each event once, the events of a subject out of order; some of them again, a few at
 * the same time; and requests that must not be taken, each of an event of its own.
 *
 * @param count of events.
 * @param name begins the ids.
 * @param from when the first of them happened, ms.
 */
export const plan = (
  {
    count,
    from,
    name,
    type
  }: Readonly<Record<"name" | "type", string>> & Readonly<Record<"count" | "from", number>>,
  signs: Signed,
  random: () => number
): ReadonlyArray<Planned> => {
  const subjects = Math.max(1, Math.floor(count / 10))
  const eventOf = (number: number, prefix = ""): MadeEvent => ({
    id: `${prefix}${name}-${number}`,
    type,
    at: from + number * 1_000,
    subject: `${name}-subject-${number % subjects}`
  })
  const events = Array.from({ length: count }, (_, number) => eventOf(number))
  const firsts = events.map((event): Planned => ({ kind: "first", event }))
  const isKind = isOf(signs)
  // Some repeats are sent beside the first request, the others at any time.
  const besides = new Set(events.filter(() => random() < besideFirst).map(({ id }) => id))
  const others = Object.entries(shares).flatMap(([word, share]) => {
    const kind = word as Kind
    if (!isKind(kind)) return []
    const length = Math.max(1, Math.round((count * share) / 10))
    return Array.from({ length }, (_, number): Planned => {
      const event = kind === "repeat" ? events[Math.floor(random() * count)] : undefined
      // What must not be taken has an id of its own: no effect of it may be seen.
      return { kind, event: event ?? eventOf(number, `${kind}-`) }
    })
  })
  return shuffled([...firsts, ...others], random).flatMap((one) =>
    one.kind === "first" && besides.has(one.event.id)
      ? [one, { kind: "repeat", event: one.event }]
      : [one]
  )
}
