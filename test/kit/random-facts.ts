import type { Fact } from "../../src/domain/fact.ts"

/** A sequence of random numbers in [0, 1), the same for the same seed. */
export const randomOf = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A delivery that facts may tell of next. */
interface Open {
  readonly about: Partial<Fact> & { readonly endpoint: string }
  readonly round: string
  attempts: number
}

const start = Date.UTC(2026, 0, 1)
const types = ["invoice.paid", "invoice.failed", "user.created"]

/**
 * Facts as workers may leave them, in random order: plans alone and with a success, failures, probes,
 * late successes, dead letters that are sent again and discarded, and everything told twice.
 */
export const randomFacts = (seed: number, count: number): ReadonlyArray<Fact> => {
  const random = randomOf(seed)
  const below = (most: number) => Math.floor(random() * most)
  const facts: Array<Fact> = []
  const open: Array<Open> = []
  const dead: Array<Open & { readonly letter: number }> = []
  let events = 0
  let letters = 0
  const add = (fact: Omit<Fact, "at" | "v" | "tenant">) =>
    facts.push({ v: 1, at: start + facts.length * 1_000, tenant: "acme", ...fact })
  const planned = (id: string) => ({ id, generation: "g", revision: 1, deadline: start + 9e8 })
  const begin = () => {
    const eventSeq = ++events
    const about = {
      event: `acme.e${eventSeq.toString(36)}`,
      eventSeq,
      eventAt: start + eventSeq,
      type: types[below(3)] ?? ""
    }
    const ids = ["a", "b", "c"].filter(() => random() < 0.5)
    const skipped = random() < 0.2 ? [{ id: "off", reason: "endpoint-disabled" }] : []
    const plan = { part: 0, last: true, endpoints: ids.map(planned), skipped }
    const [only] = ids
    if (ids.length === 1 && only !== undefined && random() < 0.7) {
      const success = { kind: "delivered" as const, endpoint: only, ...about, round: "0", plan }
      // Policies may count other statuses as a success.
      const status = events % 5 === 0 ? 404 : 200
      return add({ ...success, attempt: 1, status, durationMs: below(100), worker: "w1" })
    }
    add({ kind: "routed", endpoint: "_", ...about, plan })
    for (const endpoint of ids)
      open.push({ about: { ...about, endpoint }, round: "0", attempts: 0 })
  }
  const step = (delivery: Open) => {
    const { about, round } = delivery
    const [worker, dice] = [`w${below(2)}`, random()]
    const of = { ...about, round }
    const attempt = () => (random() < 0.9 ? ++delivery.attempts : Math.max(1, delivery.attempts))
    if (dice < 0.35) {
      const failed = { kind: "attempt-failed" as const, ...of, attempt: attempt(), worker }
      const error = { class: "timeout" as const, message: "took too long" }
      const probe = random() < 0.2 ? { probe: true } : {}
      const waits = { nextAttemptAt: start + 1e7, wait: "nak" as const }
      add({ ...failed, ...probe, ...waits, ...(random() < 0.3 ? { error } : { status: 503 }) })
    } else if (dice < 0.7)
      add({ kind: "delivered", ...of, attempt: attempt(), status: 200, durationMs: 5, worker })
    else if (dice < 0.78)
      add({ kind: "delivered-late", ...of, attempt: attempt(), status: 204, worker: "w9" })
    else if (dice < 0.95) {
      const letter = ++letters
      add({
        kind: "dead-lettered",
        ...of,
        attempt: delivery.attempts,
        reason: "attempts",
        dead: letter
      })
      dead.push({ ...delivery, letter })
    }
  }
  const after = ({ about, letter, round }: (typeof dead)[number]) => {
    if (random() < 0.5) return add({ kind: "discarded", ...about, round, dead: letter })
    const again = { about, round: `d${letter}`, attempts: 0 }
    add({ kind: "redelivered", ...about, round: again.round, dead: letter, deadline: start + 9e8 })
    return open.push(again)
  }
  while (facts.length < count) {
    const dice = random()
    const [delivery, letter] = [open[below(open.length)], dead[below(dead.length)]]
    if (dice < 0.3 || delivery === undefined) begin()
    else if (dice < 0.92) step(delivery)
    else if (letter !== undefined) after(letter)
    const repeated = facts[below(facts.length)]
    if (random() < 0.03 && repeated !== undefined) facts.push(repeated)
  }
  return facts
}
