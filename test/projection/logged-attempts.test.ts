import { assert, describe, it } from "@effect/vitest"
import { HashMap } from "effect"
import type { Fact } from "../../src/domain/fact.ts"
import { viewOf } from "../../src/history/fold/delivery.ts"
import type { AttemptQuery, AttemptRow } from "../../src/projection/delivery-log.ts"
import { LogReader } from "../../src/projection/log-reader.ts"
import { randomFacts } from "../kit/random-facts.ts"
import { logFiles } from "./log-files.ts"

const made = logFiles()

/** Returns all attempts of a query, page by page. */
const walk = (reader: LogReader, query: AttemptQuery): ReadonlyArray<AttemptRow> => {
  const rows: Array<AttemptRow> = []
  let cursor: string | null = null
  do {
    const page = reader.findAttempts({ ...query, ...(cursor === null ? {} : { cursor }) })
    rows.push(...page.attempts)
    cursor = page.cursor
  } while (cursor !== null)
  return rows
}

const saidOf = (row: AttemptRow) =>
  [
    `${row.tenant}/${row.delivery} ${row.eventSeq} ${row.round} #${row.number}`,
    `${row.at} ${row.outcome} ${row.status} ${row.error?.class} ${row.worker}`
  ].join(" ")

/** What a fold over the facts says of attempts. */
const folded = (facts: ReadonlyArray<Fact>) =>
  [...HashMap.values(viewOf(facts).deliveries)].flatMap((life) =>
    life.rounds.flatMap(({ attempts, round }) =>
      attempts.map((attempt) => {
        const delivery = `${life.event ?? `evt_${life.eventSeq}`}.${life.endpoint}`
        const { at, error, isSuccess, number, status = null, worker = null } = attempt
        return [
          `${life.tenant}/${delivery} ${life.eventSeq} ${round} #${number}`,
          `${at} ${isSuccess ? "success" : "failure"} ${status} ${error?.class} ${worker}`
        ].join(" ")
      })
    )
  )

const queries: ReadonlyArray<AttemptQuery> = [
  {},
  { tenant: "acme", outcome: "failure" },
  { outcome: "success" },
  { tenant: "acme", endpoint: ["a", "b"], status: ["5xx", "200"] },
  { error: ["timeout"] },
  { status: ["404"] },
  { tenant: "acme", status: ["none"] },
  { status: ["2xx", "none"] },
  { type: ["invoice.*"] },
  { event: "acme.e1*" },
  { since: Date.UTC(2026, 0, 1) + 200_000, until: Date.UTC(2026, 0, 1) + 400_000 }
]

const matches = (query: AttemptQuery, row: AttemptRow): boolean => {
  const begins = (asked: string, text: string) =>
    asked.endsWith("*") ? text.startsWith(asked.slice(0, -1)) : text === asked
  const status = row.error === null && row.status !== null ? String(row.status) : "none"
  return (
    (query.tenant ?? row.tenant) === row.tenant &&
    (query.outcome ?? row.outcome) === row.outcome &&
    (query.endpoint?.includes(row.endpoint) ?? true) &&
    (query.status?.some((one) => one === status || one === `${status[0]}xx`) ?? true) &&
    (query.error?.some((one) => one === row.error?.class) ?? true) &&
    (query.type?.some((one) => begins(one, row.type ?? "")) ?? true) &&
    begins(query.event ?? "*", row.event) &&
    row.at >= (query.since ?? 0) &&
    row.at <= (query.until ?? Number.MAX_SAFE_INTEGER)
  )
}

describe("the attempts of the log", () => {
  it.each([1, 2, 3, 4, 5, 6])("are what a fold over the facts says (seed %i)", (seed) => {
    const facts = randomFacts(seed, 600)
    const reader = new LogReader(made(facts, seed))
    const rows = walk(reader, { limit: 200 })
    assert.isAbove(rows.length, 100)
    assert.deepStrictEqual(rows.map(saidOf).sort(), folded(facts).sort())
    // Each is where its fact is.
    for (const row of rows) {
      const fact = facts[row.seq - 1]
      assert.deepStrictEqual([fact?.endpoint, fact?.attempt ?? 0], [row.endpoint, row.number])
    }
    assert.deepStrictEqual(
      rows.map(({ seq }) => seq),
      rows.map(({ seq }) => seq).sort((a, b) => b - a)
    )
    reader.close()
  })

  it("are found by each filter, page by page, forth and back, whatever time there is", () => {
    const directory = made(randomFacts(9, 800), 9)
    for (const budgetMs of [1e9, 0]) {
      const reader = new LogReader(directory, budgetMs)
      const all = walk(reader, { limit: 200 })
      for (const query of queries) {
        const wanted = all.filter((row) => matches(query, row))
        assert.deepStrictEqual(walk(reader, { ...query, limit: 7 }), wanted, JSON.stringify(query))
        let page = reader.findAttempts({ ...query, limit: 200 })
        while (page.cursor !== null)
          page = reader.findAttempts({ ...query, limit: 200, cursor: page.cursor })
        const back = [page.attempts]
        while (page.previous !== null) {
          page = reader.findAttempts({ ...query, limit: 200, cursor: page.previous })
          back.unshift(page.attempts)
        }
        assert.deepStrictEqual(back.flat(), wanted, JSON.stringify(query))
      }
      reader.close()
    }
  })
})
