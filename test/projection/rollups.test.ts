import { rmSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { afterEach } from "vitest"
import type { Fact } from "../../src/domain/fact.ts"
import { Summary } from "../../src/history/fold/summary.ts"
import { LogReader } from "../../src/projection/log-reader.ts"
import type { LoggedSum, SumsQuery } from "../../src/projection/log-sums.ts"
import { ProjectionStore } from "../../src/projection/projection-store.ts"
import { bytesOf, summaryOf, totalColumns } from "../../src/projection/rollups.ts"
import { randomFacts, randomOf } from "../kit/random-facts.ts"
import { storeDirectorySync } from "../kit/store-directory.ts"

const directories: Array<string> = []
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true })
})

const optionsOf = (changes: { readonly maxBytes?: number; readonly keepMs?: number } = {}) => {
  const directory = storeDirectorySync("petrel-rollups-")
  directories.push(directory)
  return { directory, keepMs: 1e12, maxBytes: 1e9, ...changes }
}

const hourMs = 3_600_000
const start = Date.UTC(2026, 0, 1)
/** Facts of several hours, with latencies of all sizes. */
const factsOf = (seed: number, count: number): ReadonlyArray<Fact> => {
  const random = randomOf(seed + 1)
  return randomFacts(seed, count).map((fact, index) => ({
    ...fact,
    at: start + index * 20_000,
    ...(fact.attempt === undefined ? {} : { durationMs: 10 ** (random() * 6) })
  }))
}

/** Takes facts from where the files are, now and then committed, and cut off at random. */
const takeAll = (
  options: ReturnType<typeof optionsOf>,
  facts: ReadonlyArray<Fact>,
  random: () => number
) => {
  let store = new ProjectionStore(options)
  for (let seq = store.position.seq + 1; seq <= facts.length; seq++) {
    const fact = facts[seq - 1]
    if (fact !== undefined) store.take(JSON.stringify(fact), seq, `${fact.at}000000`)
    const dice = random()
    if (dice < 0.03) store.commit()
    if (dice < 0.97) continue
    store.close()
    store = new ProjectionStore(options)
    seq = store.position.seq
  }
  store.commit()
  const { sums } = store
  store.close()
  return sums
}

const read = (directory: string, query: Partial<SumsQuery> = {}) => {
  const reader = new LogReader(directory)
  try {
    return reader.sums({ since: 0, until: start + 1e12, by: "hour", ...query })
  } finally {
    reader.close()
  }
}

const isAttempt = ({ kind }: Fact) =>
  kind === "delivered" || kind === "delivered-late" || kind === "attempt-failed"

const answerOf = ({ error, status = 0 }: Fact) =>
  error === undefined ? `${Math.floor(status / 100)}xx` : "none"

/** Counts attempts by themselves, without the fold: all that a sum says of them. */
const counted = (facts: ReadonlyArray<Fact>) => {
  const attempts = facts.filter(isAttempt)
  const sorted = attempts.map(({ durationMs = 0 }) => durationMs).sort((a, b) => a - b)
  return {
    attempts: attempts.length,
    failed: attempts.filter(({ kind }) => kind === "attempt-failed").length,
    answers: Object.fromEntries(
      [...Map.groupBy(attempts, answerOf)].map(([name, all]) => [name, all.length]).sort()
    ),
    exactly: (share: number) => sorted[Math.max(1, Math.ceil(share * sorted.length)) - 1] ?? 0
  }
}

const assertSays = (sum: LoggedSum, facts: ReadonlyArray<Fact>, of: string) => {
  const { answers, attempts, exactly, failed } = counted(facts)
  assert.strictEqual(sum.totals.delivered + sum.totals.attemptsFailed, attempts, of)
  assert.strictEqual(sum.totals.attemptsFailed, failed, of)
  assert.deepStrictEqual(Object.fromEntries(Object.entries(sum.answers).sort()), answers, of)
  if (attempts === 0) return assert.isNull(sum.latency)
  for (const [name, share] of [
    ["p50", 0.5],
    ["p95", 0.95],
    ["p99", 0.99]
  ] as const)
    assert.isAtMost(
      Math.abs((sum.latency?.[name] ?? 0) / exactly(share) - 1),
      0.05,
      `${of} ${name}`
    )
}

describe("the sums of the log", () => {
  for (const seed of [1, 2, 3, 4, 5])
    it(`say what a count of the facts says, whatever was cut off between (seed ${seed})`, () => {
      const facts = factsOf(seed, 1_500)
      const options = optionsOf()
      takeAll(options, facts, randomOf(seed))
      const { sums, whole } = read(options.directory)
      assertSays(whole, facts, "all")
      const byHour = Map.groupBy(facts, ({ at }) => Math.floor(at / hourMs) * hourMs)
      assert.deepStrictEqual(
        sums.map(({ begins }) => begins),
        [...byHour.keys()].sort()
      )
      for (const sum of sums) assertSays(sum, byHour.get(sum.begins ?? 0) ?? [], `${sum.begins}`)
      for (const endpoint of ["a", "b", "c"])
        for (const by of ["hour", "day"] as const) {
          const own = facts.filter((fact) => fact.endpoint === endpoint)
          const found = read(options.directory, { tenant: "acme", endpoint, by })
          assertSays(found.whole, own, `${endpoint} by ${by}`)
          assert.strictEqual(
            found.sums.reduce((sum, { totals }) => sum + totals.delivered, 0),
            found.whole.totals.delivered
          )
        }
      const byEndpoint = read(options.directory, { by: "endpoint", tenant: "acme", limit: 1 })
      const [worst, others] = byEndpoint.sums
      assert.match(worst?.name ?? "", /^acme\/[abc]$/)
      const of = (fact: Fact) => `acme/${fact.endpoint}` === worst?.name
      assertSays(nonNull(worst), facts.filter(of), "the worst endpoint")
      assertSays(
        nonNull(others),
        facts.filter((fact) => !of(fact)),
        "the others"
      )
      for (const sum of read(options.directory, { by: "type" }).sums)
        assertSays(
          sum,
          facts.filter(({ type }) => type === sum.name),
          String(sum.name)
        )
    })

  it("are the same after all was read again, and hours of before the history stay", () => {
    const facts = factsOf(7, 1_000)
    const options = optionsOf()
    takeAll(options, facts, randomOf(1))
    const before = read(options.directory)
    const again = facts.findIndex(({ at }) => at >= start + 2 * hourMs) + 1
    const store = new ProjectionStore(options)
    store.rewind(again, facts[again - 1]?.at ?? 0)
    assert.isAbove(again, 1)
    store.close()
    assert.lengthOf(read(options.directory).sums, 2)
    takeAll(options, facts, randomOf(2))
    assert.deepStrictEqual(read(options.directory), before)
  })

  it("leave what is too old, and the oldest hours of too many", () => {
    const facts = factsOf(8, 1_000)
    const options = optionsOf({ keepMs: 2 * hourMs })
    takeAll(options, facts, randomOf(1))
    const hours = read(options.directory).sums.length
    assert.isAbove(hours, 3)
    const now = facts.at(-1)?.at ?? 0
    const store = new ProjectionStore(options)
    store.retain(now)
    store.close()
    const kept = read(options.directory)
    assert.lengthOf(kept.sums, 3)
    assert.strictEqual(kept.oldestHour, Math.floor((now - 2 * hourMs) / hourMs) * hourMs)
    // Room for six rows: an hour has some seven.
    const tight = new ProjectionStore({ ...options, maxBytes: 6 * 300 * 8 })
    tight.retain(now)
    tight.close()
    assert.lengthOf(read(options.directory).sums, 1)
  })

  it("have a bounded number of types, and sum up the others", () => {
    const facts = Array.from({ length: 700 }, (_, index): Fact => {
      const about = {
        v: 1,
        tenant: "acme",
        endpoint: "e",
        eventAt: start,
        at: start + index
      } as const
      return { ...about, kind: "delivered", attempt: 1, eventSeq: index + 1, type: `t${index}` }
    })
    const options = optionsOf()
    takeAll(options, facts, randomOf(1))
    const fill = takeAll(options, [...facts, ...facts], randomOf(2))
    assert.isAbove(fill.together, 0)
    assert.isAtMost(fill.rows, fill.maxRows)
    const { sums, whole } = read(options.directory, { by: "type", tenant: "acme", limit: 1_000 })
    assert.lengthOf(sums, 501)
    assert.deepInclude(sums.at(-1), { name: null, others: 1 })
    assert.strictEqual(sums.at(-1)?.totals.delivered, 400)
    assert.strictEqual(whole.totals.delivered, 1_400)
  })

  it("refuse ranges that are too long, and an endpoint of no tenant", () => {
    const [first, ...others] = factsOf(9, 50)
    const facts = [{ ...nonNull(first), at: 1 }, ...others]
    const options = optionsOf()
    takeAll(options, facts, randomOf(1))
    assert.throws(() => read(options.directory), /more than 9600 hours/)
    assert.throws(() => read(options.directory, { endpoint: "a" }), /needs `tenant`/)
  })

  it("are summed up by endpoint where there are not too many, in a bounded time", () => {
    const options = optionsOf()
    takeAll(options, factsOf(9, 50), randomOf(1))
    const db = new DatabaseSync(join(options.directory, "main.db"))
    const columns = ["tenant", "name", ...totalColumns, "spread"].join(", ")
    const copy = (tenant: string, names: number, hours: number) =>
      db.exec(
        `WITH RECURSIVE name(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM name WHERE n < ${names}),
           hour(h) AS (SELECT 0 UNION ALL SELECT h + 1 FROM hour WHERE h < ${hours - 1}),
           one AS (SELECT * FROM rollup WHERE kind = 1 LIMIT 1)
         INSERT INTO rollup (hour, kind, ${columns}) SELECT ${start} + h * ${hourMs}, 1,
           ${columns.replace("tenant, name", `'${tenant}', 'e' || n`)} FROM hour, name, one`
      )
    copy("small", 10, 100)
    copy("large", 1_000, 51)
    db.close()
    const began = performance.now()
    const { sums } = read(options.directory, { by: "endpoint", tenant: "small", limit: 5 })
    assert.deepStrictEqual(
      sums.map(({ name }) => name),
      ["small/e1", "small/e10", "small/e2", "small/e3", "small/e4", null]
    )
    for (const tenant of ["large", undefined])
      assert.throws(
        () =>
          read(options.directory, { by: "endpoint", ...(tenant === undefined ? {} : { tenant }) }),
        /more than 50000 sums of hours: ask for a shorter time/
      )
    assert.isBelow(performance.now() - began, 5_000)
  })

  it("are stored in bytes that say all of them", () => {
    const random = randomOf(10)
    for (let round = 0; round < 100; round++) {
      const summary = new Summary()
      for (let times = Math.floor(random() * 300); times > 0; times--)
        summary.note({
          ...{ kind: "delivered", attempt: Math.floor(random() * 30), status: 200 },
          ...{ at: 10 ** (random() * 9), eventAt: 0, durationMs: 10 ** (random() * 6) }
        })
      const again = summaryOf(summary.totals, bytesOf(summary))
      assert.deepStrictEqual(bytesOf(again), bytesOf(summary))
      assert.deepStrictEqual(again.spread.latency, summary.spread.latency)
      assert.deepStrictEqual(again.answers, summary.answers)
    }
  })
})

const nonNull = <A>(value: A | undefined): A => {
  assert.isDefined(value)
  return value as A
}
