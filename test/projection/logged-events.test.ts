import { assert, describe, it } from "@effect/vitest"
import type { Fact } from "../../src/domain/fact.ts"
import type { DeliveryRow, EventQuery, EventRow } from "../../src/projection/delivery-log.ts"
import { LogReader } from "../../src/projection/log-reader.ts"
import { unwantedIn } from "../../src/projection/unwanted-events.ts"
import { randomFacts } from "../kit/random-facts.ts"
import { logFiles } from "./log-files.ts"

const made = logFiles()

const start = Date.UTC(2026, 0, 1)

/** Events that no endpoint wanted, by several channels, between others. */
const unwanted = (seq: number): Fact => ({
  ...{ v: 1, kind: "routed", at: start + seq * 1_000, tenant: "acme", endpoint: "_" },
  ...{ event: `acme.u${seq}`, eventSeq: 10_000 + seq, eventAt: start + 10_000 + seq, type: "none" },
  plan: {
    ...{ part: 0, last: true, endpoints: [], skipped: [] },
    ...(seq % 3 === 0 ? {} : { channel: seq % 3 === 1 ? "http" : "stream:ORDERS" })
  }
})

const factsOf = (seed: number): ReadonlyArray<Fact> =>
  randomFacts(seed, 500).flatMap((fact, index) =>
    index % 10 === 0 ? [fact, unwanted(index)] : [fact]
  )

const walk = (reader: LogReader, query: EventQuery): ReadonlyArray<EventRow> => {
  const rows: Array<EventRow> = []
  let cursor: string | null = null
  do {
    const page = reader.findEvents({ ...query, ...(cursor === null ? {} : { cursor }) })
    rows.push(...page.events)
    cursor = page.cursor
  } while (cursor !== null)
  return rows
}

const deliveries = (reader: LogReader): ReadonlyArray<DeliveryRow> => {
  const rows: Array<DeliveryRow> = []
  let cursor: string | null = null
  do {
    const page = reader.find({ limit: 200, ...(cursor === null ? {} : { cursor }) })
    rows.push(...page.deliveries)
    cursor = page.cursor
  } while (cursor !== null)
  return rows
}

const stateNames = {
  waiting: "waiting",
  delivered: "delivered",
  "dead-lettered": "deadLettered",
  discarded: "discarded",
  skipped: "skipped"
} as const

/** What the deliveries and the facts say of events, newest first. */
const expected = (rows: ReadonlyArray<DeliveryRow>, facts: ReadonlyArray<Fact>) => {
  const events = new Map<string, Pick<EventRow, "at" | "id" | "rounds" | "seq" | "tenant">>()
  const none = { waiting: 0, delivered: 0, deadLettered: 0, discarded: 0, skipped: 0 }
  for (const { event: id, eventAt: at, eventSeq: seq, state, tenant } of rows) {
    const known = events.get(`${seq}@${at}`) ?? { id, seq, at, tenant, rounds: none }
    const name = stateNames[state]
    const rounds = { ...known.rounds, [name]: known.rounds[name] + 1 }
    events.set(`${seq}@${at}`, { ...known, rounds })
  }
  for (const [index, fact] of facts.entries()) {
    const event = unwantedIn(fact, index + 1)
    const name = `${event?.eventSeq}@${event?.eventAt}`
    if (event === undefined || events.has(name)) continue
    const { event: id, eventAt: at, eventSeq: seq, tenant } = event
    events.set(name, { id, seq, at, tenant, rounds: none })
  }
  return [...events.values()].sort((a, b) => b.seq - a.seq || b.at - a.at)
}

const queries: ReadonlyArray<EventQuery> = [
  {},
  { tenant: "acme" },
  { tenant: "acme", type: ["invoice.*", "none"] },
  { channel: ["http"] },
  { tenant: "acme", channel: ["stream:*", "http"] },
  { since: start + 10_100, until: start + 10_300 },
  { tenant: "nobody" }
]

const matches = (query: EventQuery, row: EventRow): boolean => {
  const begins = (asked: string, text: string) =>
    asked.endsWith("*") ? text.startsWith(asked.slice(0, -1)) : text === asked
  return (
    (query.tenant ?? row.tenant) === row.tenant &&
    (query.type?.some((one) => begins(one, row.type ?? "")) ?? true) &&
    (query.channel?.some((one) => begins(one, row.channel ?? "")) ?? true) &&
    row.at >= (query.since ?? 0) &&
    row.at <= (query.until ?? Number.MAX_SAFE_INTEGER)
  )
}

describe("the events of the log", () => {
  it.each([1, 2, 3, 4])(
    "are those of its deliveries, and those nobody wanted (seed %i)",
    (seed) => {
      const facts = factsOf(seed)
      const reader = new LogReader(made(facts, seed))
      const rows = walk(reader, { limit: 200 })
      assert.deepStrictEqual(
        rows.map(({ at, id, rounds, seq, tenant }) => ({ at, id, rounds, seq, tenant })),
        expected(deliveries(reader), facts).map(({ at, id, rounds, seq, tenant }) => ({
          ...{ at, id, rounds, seq, tenant }
        }))
      )
      for (const fact of facts.filter(({ type }) => type === "none")) {
        const channel = fact.plan?.channel ?? "nats"
        assert.strictEqual(rows.find(({ id }) => id === fact.event)?.channel, channel)
      }
      reader.close()
    }
  )

  it("are found by each filter, page by page, forth and back, whatever time there is", () => {
    const directory = made(factsOf(9), 9)
    for (const budgetMs of [1e9, 0]) {
      const reader = new LogReader(directory, budgetMs)
      const all = walk(reader, { limit: 200 })
      for (const query of queries) {
        const wanted = all.filter((row) => matches(query, row))
        assert.deepStrictEqual(walk(reader, { ...query, limit: 7 }), wanted, JSON.stringify(query))
        let page = reader.findEvents({ ...query, limit: 50 })
        while (page.cursor !== null)
          page = reader.findEvents({ ...query, limit: 50, cursor: page.cursor })
        const back = [page.events]
        while (page.previous !== null) {
          page = reader.findEvents({ ...query, limit: 50, cursor: page.previous })
          back.unshift(page.events)
        }
        assert.deepStrictEqual(back.flat(), wanted, JSON.stringify(query))
      }
      reader.close()
    }
  })
})
