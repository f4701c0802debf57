import { assert, describe, it } from "@effect/vitest"
import { HashMap, Schema } from "effect"
import type { Fact } from "../../src/domain/fact.ts"
import {
  type DeliveryLife,
  deliveryKey,
  emptyView,
  type View,
  viewOf
} from "../../src/history/fold/delivery.ts"
import { newEndpoint } from "../../src/history/fold/endpoint.ts"
import { attemptsOf, endOf, isContradicted, isOutOfTurn } from "../../src/history/fold/round.ts"

const between = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** What happens to one delivery: how many attempts fail, and how it ends, in each of its rounds. */
const Story = Schema.Struct({
  /** Its plan is told with its end where that is all there is to tell. */
  isSole: Schema.Boolean,
  rounds: Schema.Array(
    Schema.Struct({
      failures: between(0, 4),
      end: Schema.Literals(["delivered", "dead-lettered", "none"])
    })
  ).check(Schema.isMinLength(1), Schema.isMaxLength(3))
})
type Story = typeof Story.Type
const stories = Schema.Array(Story).check(Schema.isMinLength(1), Schema.isMaxLength(6))

const start = 1_700_000_000_000
const eventAt = start - 1_000

/** The facts of a delivery in their order; each delivery has an event and an endpoint of its own. */
const factsOf = ({ isSole, rounds }: Story, index: number): ReadonlyArray<Fact> => {
  const eventSeq = index + 1
  const [event, id] = [`acme.${eventSeq}`, `e${index}`]
  let at = start + index * 1_700_000
  const about = (endpoint: string) => ({
    v: 1 as const,
    at: at++,
    tenant: "acme",
    endpoint,
    event,
    eventSeq,
    eventAt
  })
  return rounds.flatMap(({ end, failures }, number): ReadonlyArray<Fact> => {
    const round = number === 0 ? "0" : `d${number}`
    const planned = { id, generation: "g", revision: 1, deadline: start + 9_000_000 }
    const plan = { part: 0, last: true, endpoints: [planned], skipped: [] }
    const beginning: Fact =
      number === 0
        ? { ...about("_"), kind: "routed", plan }
        : { ...about(id), kind: "redelivered", round, dead: number }
    const failed = Array.from(
      { length: failures },
      (_, n): Fact => ({
        ...about(id),
        kind: "attempt-failed",
        round,
        attempt: n + 1,
        status: 503,
        nextAttemptAt: at + 50,
        wait: "nak"
      })
    )
    const ends: ReadonlyArray<Fact> =
      end === "delivered"
        ? [{ ...about(id), kind: "delivered", round, attempt: failures + 1, status: 200 }]
        : end === "dead-lettered"
          ? [
              {
                ...about(id),
                kind: "dead-lettered",
                round,
                attempt: failures,
                reason: "attempts",
                dead: number
              }
            ]
          : []
    const isOne = isSole && number === 0 && failures === 0 && end === "delivered"
    if (isOne) return ends.map((delivered) => ({ ...delivered, plan }))
    return [beginning, ...failed, ...ends]
  })
}

/** One list of all, each one's order kept; `choices` says which goes on. */
const interleaved = (
  lists: ReadonlyArray<ReadonlyArray<Fact>>,
  choices: ReadonlyArray<number>
): ReadonlyArray<Fact> => {
  const rest = lists.map((list) => [...list])
  const all: Array<Fact> = []
  for (let turn = 0; ; turn++) {
    const left = rest.filter(({ length }) => length > 0)
    const next = left[(choices[turn % choices.length] ?? 0) % left.length]?.shift()
    if (next === undefined) return all
    all.push(next)
  }
}

const choices = Schema.Array(between(0, 5)).check(Schema.isMinLength(1), Schema.isMaxLength(60))

const entries = <A>(map: HashMap.HashMap<string, A>): Record<string, A> =>
  Object.fromEntries(HashMap.entries(map))
const plain = ({ deliveries, endpoints, totals }: View) => ({
  deliveries: entries(deliveries),
  endpoints: entries(endpoints),
  totals: entries(totals)
})

const withoutCounts = (life: DeliveryLife) => ({
  ...life,
  rounds: life.rounds.map(({ repeats: _, state, ...round }) => ({
    ...round,
    end: [endOf(state), round.end],
    attempts: [attemptsOf(state), round.attempts],
    wrong: [isContradicted(state), isOutOfTurn(state)]
  }))
})

const withRepeats = (facts: ReadonlyArray<Fact>, which: ReadonlyArray<number>) =>
  facts.flatMap((fact, index) => (which.includes(index) ? [fact, fact] : [fact]))

describe("a fold over the history", () => {
  it.prop(
    "comes to the same in whatever order the facts of different deliveries lie",
    { stories, choices },
    ({ stories, choices }) => {
      const lists = stories.map(factsOf)
      assert.deepStrictEqual(
        plain(viewOf(interleaved(lists, choices))),
        plain(viewOf(lists.flat()))
      )
    }
  )

  it.prop(
    "comes to the same from a view of the first facts and the rest of them",
    { stories, choices, cut: between(0, 200) },
    ({ stories, choices, cut }) => {
      const facts = interleaved(stories.map(factsOf), choices)
      const first = cut % (facts.length + 1)
      const before = viewOf(facts.slice(0, first))
      assert.deepStrictEqual(
        plain(viewOf(facts.slice(first), before)),
        plain(viewOf(facts, emptyView))
      )
    }
  )

  it.prop(
    "counts what is told twice, and changes nothing else of a delivery",
    { stories, choices, which: Schema.Array(between(0, 40)) },
    ({ stories, choices, which }) => {
      const facts = interleaved(stories.map(factsOf), choices)
      const [once, twice] = [viewOf(facts), viewOf(withRepeats(facts, which))].map(
        ({ deliveries }) =>
          Object.fromEntries(
            [...HashMap.entries(deliveries)].map(([key, life]) => [key, withoutCounts(life)])
          )
      )
      assert.deepStrictEqual(twice, once)
    }
  )

  it.prop("tells how each round went", { stories }, ({ stories }) => {
    const { deliveries } = viewOf(stories.flatMap(factsOf))
    for (const [index, { rounds }] of stories.entries()) {
      const life = HashMap.getUnsafe(
        deliveries,
        deliveryKey({ eventSeq: index + 1, eventAt }, "acme", `e${index}`)
      )
      assert.deepStrictEqual(
        life.rounds.map(({ attempts, end, state }) => [
          attempts.length,
          endOf(state),
          end !== undefined
        ]),
        rounds.map(({ end, failures }) => [
          failures + (end === "delivered" ? 1 : 0),
          end,
          end !== "none"
        ])
      )
      for (const { attempts, state } of life.rounds) {
        assert.isFalse(isContradicted(state) || isOutOfTurn(state))
        assert.strictEqual(attemptsOf(state), attempts.length)
      }
    }
  })

  it.prop(
    "counts for a tenant and an hour what was begun and how it went",
    { stories },
    ({ stories }) => {
      const sums = Object.values(entries(viewOf(stories.flatMap(factsOf)).totals))
      const sum = (of: "begun" | "delivered" | "attemptsFailed" | "events") =>
        sums.reduce((all, totals) => all + totals[of], 0)
      const rounds = stories.flatMap(({ rounds }) => rounds)
      assert.deepStrictEqual(
        [sum("events"), sum("begun"), sum("delivered"), sum("attemptsFailed")],
        [
          stories.length,
          rounds.length,
          rounds.filter(({ end }) => end === "delivered").length,
          rounds.reduce((all, { failures }) => all + failures, 0)
        ]
      )
    }
  )
})

describe("an endpoint's health from the facts", () => {
  const fact = (kind: Fact["kind"], more: Partial<Fact> = {}): Fact => ({
    v: 1,
    kind,
    at: start,
    tenant: "acme",
    endpoint: "hook",
    eventSeq: 1,
    eventAt,
    round: "0",
    ...more
  })
  const lifeOf = (...facts: ReadonlyArray<Fact>) =>
    HashMap.getUnsafe(viewOf(facts).endpoints, "acme.hook")

  it("follows its circuit as it opens, is probed and closes", () => {
    const opened = fact("circuit-opened", { at: start, nextAttemptAt: start + 30_000, reason: "5" })
    const half = fact("circuit-half-opened", { at: start + 30_000 })
    const probe = fact("delivered", { at: start + 30_100, durationMs: 20, attempt: 1 })
    const closed = fact("circuit-closed", { at: start + 30_200 })
    const coolDown = 30_000
    assert.deepStrictEqual(lifeOf(opened).health.circuit, {
      ...{ state: "open", since: start, coolDown, until: start + coolDown, why: "5" }
    })
    const halfOpen = lifeOf(opened, half, probe).health.circuit
    assert.deepStrictEqual([halfOpen.state, halfOpen.successes], ["half-open", 1])
    assert.deepStrictEqual(lifeOf(opened, half, probe, closed).health.circuit, {
      ...{ state: "closed", since: start + 30_200, coolDown }
    })
  })

  it("learns from the end whether a last attempt was refused for good or the last of many", () => {
    const last = fact("attempt-failed", { attempt: 3, status: 500 })
    const usedUp = fact("dead-lettered", { attempt: 3, reason: "attempts" })
    const refused = fact("dead-lettered", { attempt: 3, reason: "permanent" })
    const counts = (...facts: ReadonlyArray<Fact>) => {
      const { failuresInRow, permanentInRow } = lifeOf(...facts).health
      return [failuresInRow, permanentInRow]
    }
    assert.deepStrictEqual(counts(last), [0, 0])
    assert.deepStrictEqual(counts(last, usedUp), [1, 0])
    assert.deepStrictEqual(counts(last, refused), [0, 1])
    assert.deepStrictEqual(counts(usedUp), [0, 0])
  })

  it("begins anew with an endpoint that is enabled again", () => {
    const failed = fact("attempt-failed", { attempt: 1, status: 503, nextAttemptAt: start + 1 })
    const disabled = fact("endpoint-disabled", { reason: "410" })
    assert.strictEqual(lifeOf(failed, failed).health.failuresInRow, 2)
    assert.deepStrictEqual(lifeOf(failed, disabled).disabled, { at: start, reason: "410" })
    assert.deepStrictEqual(lifeOf(failed, disabled, fact("endpoint-enabled")), newEndpoint)
  })

  it("begins anew with an endpoint that is suspended, and again when it is resumed", () => {
    const failed = fact("attempt-failed", { attempt: 1, status: 503, nextAttemptAt: start + 1 })
    const opened = fact("circuit-opened", { nextAttemptAt: start + 30_000, reason: "5" })
    const [paused, resumed] = [fact("endpoint-paused"), fact("endpoint-resumed")]
    const suspended = fact("endpoint-suspended", { reason: "410" })
    const given = { at: start, reason: "410" }
    assert.deepStrictEqual(lifeOf(failed, opened, suspended), { ...newEndpoint, suspended: given })
    assert.deepStrictEqual(lifeOf(paused, suspended), {
      ...newEndpoint,
      suspended: given,
      paused: { at: start }
    })
    assert.deepStrictEqual(lifeOf(paused, suspended, failed, resumed), newEndpoint)
    assert.strictEqual(lifeOf(failed, paused, resumed).health.failuresInRow, 1)
  })
})
