import { readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { afterAll, afterEach, beforeAll, vi } from "vitest"
import { beyondRemoved } from "../../src/broker/losses.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { readInput } from "../../src/operations/input.ts"
import { DeliveryQuery, type DeliveryRow } from "../../src/projection/delivery-log.ts"
import { OlderFiles } from "../../src/projection/file-problems.ts"
import { LogReader } from "../../src/projection/log-reader.ts"
import { ProjectionStore } from "../../src/projection/projection-store.ts"
import { mainFile } from "../../src/projection/segment.ts"
import { fewOf } from "../kit/long.ts"
import { randomFacts, randomOf } from "../kit/random-facts.ts"
import { storeDirectorySync } from "../kit/store-directory.ts"
import { foldedRows, saidBy } from "./folded-rows.ts"

const directories: Array<string> = []
afterEach(() => {
  vi.restoreAllMocks()
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true })
})

/** Options of files that hold few rows each, so that there are many. */
const optionsOf = (changes: { readonly maxBytes?: number; readonly keepMs?: number } = {}) => {
  const directory = storeDirectorySync("petrel-projection-")
  directories.push(directory)
  return { directory, keepMs: 1e12, maxBytes: 60_000, ...changes }
}

const nanosecondsOf = (fact: Fact) => `${fact.at}000000`

/** Takes facts from where the store is, in batches: after a fact with a probability of 5%. */
const takeAll = (store: ProjectionStore, facts: ReadonlyArray<Fact>, random: () => number) => {
  for (let seq = store.position.seq + 1; seq <= facts.length; seq++) {
    const fact = facts[seq - 1]
    if (fact !== undefined) store.take(JSON.stringify(fact), seq, nanosecondsOf(fact))
    if (random() < 0.05) store.commit()
  }
  store.commit()
}

const made = (facts: ReadonlyArray<Fact>, options = optionsOf(), random = randomOf(1)) => {
  const store = new ProjectionStore(options)
  takeAll(store, facts, random)
  store.close()
  return options.directory
}

/** The same in one file and one batch, for searches in many rows. */
const madeAtOnce = (facts: ReadonlyArray<Fact>) =>
  made(facts, optionsOf({ maxBytes: 1e9 }), () => 1)

/** Returns all rows of a query, page by page. */
const walk = (reader: LogReader, query: DeliveryQuery): ReadonlyArray<DeliveryRow> => {
  const rows: Array<DeliveryRow> = []
  let cursor: string | null = null
  do {
    const page = reader.find({ ...query, ...(cursor === null ? {} : { cursor }) })
    rows.push(...page.deliveries)
    assert.notStrictEqual(page.cursor, cursor ?? "")
    cursor = page.cursor
  } while (cursor !== null)
  return rows
}

const rowsIn = (directory: string, query: DeliveryQuery = {}) => {
  const reader = new LogReader(directory)
  const rows = walk(reader, query)
  reader.close()
  return rows
}

const repeatedIn = (directory: string) => {
  const store = new ProjectionStore({ ...optionsOf(), directory })
  const { repeatedAttempts } = store
  store.close()
  return repeatedAttempts
}

/** How many shared texts all files have. */
const texts = (directory: string) => {
  let count = 0
  for (const name of readdirSync(directory).filter((file) => file.endsWith(".db"))) {
    const db = new DatabaseSync(join(directory, name), { readOnly: true })
    if (db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'names'").get() !== undefined)
      count += Number(db.prepare("SELECT count(*) AS rows FROM names").get()?.rows)
    db.close()
  }
  return count
}

const seeds = fewOf(
  Array.from({ length: 12 }, (_, seed) => seed + 1),
  2
)

describe("the files of the projection", () => {
  it.each(seeds)("say what a fold over the facts says (seed %i)", (seed) => {
    const facts = randomFacts(seed, 600)
    assert.deepStrictEqual(saidBy(rowsIn(made(facts))), foldedRows(facts))
  })

  it.each(seeds)("say it after crashes within and between batches too (seed %i)", (seed) => {
    const facts = randomFacts(seed, 400)
    const random = randomOf(seed)
    const options = optionsOf()
    const { exec } = DatabaseSync.prototype
    let crashes = 0
    let left = 0
    vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(function (this: DatabaseSync, sql) {
      if (left > 0 && --left === 0) throw new Error("crash")
      exec.call(this, sql)
    })
    while (true) {
      let store: ProjectionStore | undefined
      left = crashes < 40 ? 1 + Math.floor(random() * 40) : 0
      try {
        store = new ProjectionStore(options)
        takeAll(store, facts, random)
        break
      } catch (error) {
        assert.strictEqual(String(error), "Error: crash")
        crashes++
      } finally {
        left = 0
        store?.close()
      }
    }
    assert.isAbove(crashes, 2)
    const direct = made(facts)
    assert.strictEqual(repeatedIn(options.directory), repeatedIn(direct))
    const crashed = rowsIn(options.directory)
    assert.deepStrictEqual(saidBy(crashed), foldedRows(facts))
    assert.deepStrictEqual(crashed, rowsIn(direct))
  })

  it("say the same of a history that was made again, whose sequences begin far up", () => {
    const facts = randomFacts(5, 300)
    const beyond = beyondRemoved(Date.UTC(2036, 0, 1))
    const options = optionsOf()
    const half = Math.floor(facts.length / 2)
    for (const [from, to] of [
      [0, half],
      [half, facts.length]
    ] as const) {
      const store = new ProjectionStore(options)
      assert.strictEqual(store.position.seq, from === 0 ? 0 : beyond + from)
      for (const [index, fact] of facts.slice(from, to).entries())
        store.take(JSON.stringify(fact), beyond + from + index + 1, nanosecondsOf(fact))
      store.commit()
      assert.strictEqual(store.position.seq, beyond + to)
      store.close()
    }
    const usual = made(facts)
    const moved = <Row extends { readonly seq: number }>(rows: ReadonlyArray<Row>) =>
      rows.map((row) => ({ ...row, seq: row.seq + beyond }))
    const rows = rowsIn(options.directory)
    assert.deepStrictEqual(rows, moved(rowsIn(usual)))
    const [here, there] = [options.directory, usual].map((directory) => {
      const reader = new LogReader(directory)
      const { attempts } = reader.findAttempts({ limit: 200 })
      const { rounds } = reader.get({ event: attempts[0]?.event ?? "" })
      reader.close()
      return { attempts, recorded: rounds.flatMap(({ recorded }) => recorded) }
    })
    assert.isAbove(there?.recorded.length ?? 0, 0)
    assert.deepStrictEqual(here?.attempts, moved(there?.attempts ?? []))
    assert.deepStrictEqual(here?.recorded, moved(there?.recorded ?? []))
  })

  it("count requests that were recorded twice, and no other facts", () => {
    const fact: Fact = {
      ...{ v: 1, kind: "attempt-failed", at: 2, tenant: "acme", endpoint: "e" },
      ...{ event: "acme.1", eventSeq: 1, eventAt: 1, type: "a", attempt: 1, worker: "one" }
    }
    const delivered: Fact = { ...fact, kind: "delivered", attempt: 2 }
    const again: Fact = { ...delivered, worker: "two" }
    const discarded: Fact = { ...fact, kind: "discarded", dead: 1 }
    assert.strictEqual(repeatedIn(made([fact, delivered])), 0)
    assert.strictEqual(repeatedIn(made([fact, delivered, again, fact, discarded])), 2)
  })

  it("begin to count anew where the history is read again", () => {
    const options = optionsOf()
    const facts = randomFacts(3, 600)
    made(facts, options)
    const before = repeatedIn(options.directory)
    assert.isAbove(before, 0)
    const store = new ProjectionStore(options)
    store.rewind(1, 0)
    takeAll(store, facts, randomOf(2))
    assert.strictEqual(store.repeatedAttempts, before)
    store.close()
  })

  it("are refused where an older version made them", () => {
    const options = optionsOf()
    made([], options)
    const db = new DatabaseSync(mainFile(options.directory))
    db.exec("PRAGMA user_version = 1")
    db.close()
    assert.throws(() => new ProjectionStore(options), OlderFiles)
  })

  it("show who is left out by a plan, and what a dead letter was sent again as", () => {
    const facts = randomFacts(3, 600)
    const rows = rowsIn(made(facts))
    const skipped = facts.filter(({ plan }) => (plan?.skipped.length ?? 0) > 0)
    assert.sameMembers(
      rows.filter(({ state }) => state === "skipped").map(({ eventSeq }) => eventSeq),
      [...new Set(skipped.map(({ eventSeq }) => eventSeq ?? 0))]
    )
  })

  it("show as what a dead letter was sent again, also in a later batch", () => {
    const about = {
      v: 1,
      tenant: "acme",
      endpoint: "a",
      event: "e",
      eventSeq: 1,
      eventAt: 1
    } as const
    const facts: ReadonlyArray<Fact> = [
      {
        ...about,
        kind: "dead-lettered",
        at: 2,
        round: "0",
        attempt: 3,
        reason: "attempts",
        dead: 7
      },
      { ...about, kind: "redelivered", at: 3, round: "d7", dead: 7 }
    ]
    const options = optionsOf()
    for (const length of [1, 2]) {
      const store = new ProjectionStore(options)
      takeAll(store, facts.slice(0, length), randomOf(1))
      store.close()
    }
    assert.deepStrictEqual(
      rowsIn(options.directory).map(({ redeliveredAs, round, state }) => [
        round,
        state,
        redeliveredAs
      ]),
      [
        ["d7", "waiting", null],
        ["0", "dead-lettered", "d7"]
      ]
    )
  })

  it("read facts again from any of them on, with the same result", () => {
    const facts = randomFacts(5, 500)
    const options = optionsOf()
    made(facts, options)
    const live = rowsIn(options.directory)
    const store = new ProjectionStore(options)
    store.rewind(1, 0)
    assert.deepStrictEqual(rowsIn(options.directory), [])
    takeAll(store, facts, randomOf(2))
    store.close()
    assert.deepStrictEqual(rowsIn(options.directory), live)
  })

  it("keep rows of facts that the history has no longer", () => {
    const facts = randomFacts(6, 500)
    const options = optionsOf()
    const before = rowsIn(made(facts, options)).filter(
      ({ seq, state }) => seq < 300 && state !== "waiting"
    )
    const store = new ProjectionStore(options)
    assert.strictEqual(store.rowsBefore(300), before.length)
    store.rewind(300, facts[299]?.at ?? 0)
    takeAll(store, facts, randomOf(2))
    store.close()
    const after = rowsIn(options.directory).filter(({ seq }) => seq < 300)
    assert.includeDeepMembers(
      after,
      before.filter(
        ({ late, redeliveredAs, state }) => !late && redeliveredAs === null && state === "delivered"
      )
    )
  })

  it("drop whole files of what is too old or too much, and the newest last", () => {
    const facts = randomFacts(7, 3_000)
    const options = optionsOf({ maxBytes: 120_000 })
    made(facts, options)
    const all = rowsIn(options.directory)
    const store = new ProjectionStore(options)
    assert.isAbove(store.retain(facts.at(-1)?.at ?? 0), 0)
    store.close()
    const kept = rowsIn(options.directory)
    const ended = (rows: ReadonlyArray<DeliveryRow>) =>
      rows.filter(({ state }) => state !== "waiting")
    assert.isAbove(ended(kept).length, 0)
    assert.deepStrictEqual(ended(kept), ended(all).slice(0, ended(kept).length))
    const aged = new ProjectionStore({ ...options, keepMs: 1 })
    aged.retain((facts.at(-1)?.at ?? 0) + 10)
    assert.strictEqual(aged.rows.ended, 0)
    aged.close()
  })

  it("keep the texts of rows no longer than the rows", () => {
    const options = optionsOf()
    const facts = Array.from({ length: 1_000 }, (_, index): Fact => {
      const about = { v: 1, tenant: "acme", endpoint: "e", eventAt: index, at: index } as const
      const of = { event: `e${index}`, eventSeq: index + 1, type: `type.${index}` }
      const failed = { kind: "attempt-failed", attempt: 1 } as const
      return { ...about, ...of, ...(index % 3 === 0 ? failed : { kind: "delivered", attempt: 1 }) }
    })
    made(facts, options)
    const delivered = facts
      .filter(({ kind }) => kind === "attempt-failed")
      .map((fact): Fact => ({ ...fact, kind: "delivered", attempt: 2 }))
    made([...facts, ...delivered], options)
    const store = new ProjectionStore({ ...options, keepMs: 100 })
    store.retain(1_000)
    const { ended, waiting } = store.rows
    store.close()
    assert.isAbove(ended, 0)
    assert.isBelow(ended, 500)
    assert.strictEqual(waiting, 0)
    // Each row has a type of its own; a tenant, an endpoint and no worker are those of all.
    const files = readdirSync(options.directory).filter((name) => name.endsWith(".db"))
    assert.isAtMost(texts(options.directory), ended + 2 * files.length)
    const [row] = rowsIn(options.directory)
    assert.deepStrictEqual(
      rowsIn(options.directory, { tenant: "acme", type: [row?.type ?? ""] }).map(
        ({ event }) => event
      ),
      [row?.event]
    )
  })

  it("refuse files of a newer version, and damaged ones", () => {
    const options = optionsOf()
    const db = new DatabaseSync(join(options.directory, "main.db"))
    db.exec("PRAGMA user_version = 99")
    db.close()
    assert.throws(() => new ProjectionStore(options), /newer version of Petrel/)
    const damaged = optionsOf()
    writeFileSync(
      join(damaged.directory, "main.db"),
      "no database, but long enough to be read as one"
    )
    assert.throws(() => new ProjectionStore(damaged), /not a database/)
  })

  it("know whether they are where they were opened", () => {
    const options = optionsOf()
    made(randomFacts(8, 100), options)
    const segment = readdirSync(options.directory).find((name) => /^segment-\d+\.db$/.test(name))
    for (const name of ["main.db", segment ?? ""]) {
      const store = new ProjectionStore(options)
      assert.isTrue(store.isInPlace)
      renameSync(join(options.directory, name), join(options.directory, "kept"))
      assert.isFalse(store.isInPlace)
      writeFileSync(join(options.directory, name), "")
      assert.isFalse(store.isInPlace)
      renameSync(join(options.directory, "kept"), join(options.directory, name))
      assert.isTrue(store.isInPlace)
      store.close()
    }
  })
})

describe("a page of the delivery log", () => {
  /** Files that these tests read, and do not change. */
  let many = ""
  beforeAll(() => {
    many = storeDirectorySync("petrel-projection-")
    made(randomFacts(9, 320), { ...optionsOf({ maxBytes: 24_000 }), directory: many })
  })
  afterAll(() => rmSync(many, { recursive: true }))

  const queries: ReadonlyArray<DeliveryQuery> = [
    {},
    { tenant: "acme" },
    { tenant: "other" },
    { tenant: "acme", endpoint: ["a"] },
    { tenant: "acme", state: ["waiting"] },
    { state: ["dead-lettered"] },
    { tenant: "acme", endpoint: ["b"], status: ["503"] },
    { status: ["299"] },
    { error: ["timeout"] },
    { type: ["invoice.*"] },
    { type: ["invoice.>"] },
    { type: [">"], tenant: "acme" },
    { type: ["user.created"], tenant: "acme" },
    { tenant: "acme", endpoint: ["a", "c"], status: ["503", "2xx"] },
    { state: ["waiting", "dead-lettered"], type: ["user.created", "inv*", "none"] },
    { status: ["4xx", "503"] },
    { status: ["404"] },
    { status: ["none", "299"] },
    { tenant: "acme", status: ["none"] },
    { tenant: "acme", status: ["404"] },
    { tenant: "acme", endpoint: ["a"], status: ["404"], state: ["delivered"] },
    { event: "acme.e1*" },
    { event: "acme.e1" },
    { since: Date.UTC(2026, 0, 1) + 200_000, until: Date.UTC(2026, 0, 1) + 400_000 }
  ]
  const matches = (query: DeliveryQuery, row: DeliveryRow): boolean => {
    const begins = (asked: string, text: string | null) =>
      /[*>]$/.test(asked) ? (text ?? "").startsWith(asked.slice(0, -1)) : text === asked
    const isOneOf = <A>(asked: ReadonlyArray<A> | undefined, value: A) =>
      asked === undefined || asked.includes(value)
    const status = String(row.status)
    return (
      (query.tenant ?? row.tenant) === row.tenant &&
      isOneOf(query.endpoint, row.endpoint) &&
      isOneOf(query.state, row.state) &&
      (isOneOf(query.status, status) ||
        isOneOf(query.status, `${status[0]}xx`) ||
        (query.status?.includes("none") === true && (row.status === null || row.error !== null))) &&
      isOneOf<string | null>(query.error, row.error) &&
      begins(query.event ?? "*", row.event) &&
      (query.type?.some((one) => begins(one, row.type)) ?? true) &&
      row.at >= (query.since ?? 0) &&
      row.at <= (query.until ?? Number.MAX_SAFE_INTEGER)
    )
  }

  it("leads, page by page, to all rows that match and no others, newest first", () => {
    const reader = new LogReader(many)
    const all = walk(reader, { limit: 100 })
    assert.isAbove(all.length, 100)
    for (const query of queries)
      for (const limit of [1, 7, 100])
        assert.deepStrictEqual(
          walk(reader, { ...query, limit }),
          all.filter((row) => matches(query, row)),
          JSON.stringify(query)
        )
    reader.close()
  })

  it.each(["*.created", "invoice.*.paid", "inv>", "a.>.b", "invoice.**"])(
    "refuses types that match no beginning, such as %s",
    (type) => {
      const problems = Result.getOrThrow(Result.flip(readInput(DeliveryQuery, { type: [type] })))
      assert.lengthOf(problems, 1)
      assert.match(problems[0]?.message ?? "", /must be an event type .* such as invoice\.\*/)
    }
  )

  it("leads back to where it came from, whatever time it has", () => {
    for (const budgetMs of [1e9, 0]) {
      const reader = new LogReader(many, budgetMs)
      for (const query of queries) {
        const all = walk(reader, { ...query, limit: 200 })
        let page = reader.find({ ...query, limit: 7 })
        assert.isNull(page.previous)
        while (page.cursor !== null) page = reader.find({ ...query, limit: 7, cursor: page.cursor })
        const back = [page.deliveries]
        while (page.previous !== null) {
          page = reader.find({ ...query, limit: 7, cursor: page.previous })
          back.unshift(page.deliveries)
        }
        assert.deepStrictEqual(back.flat(), all, JSON.stringify(query))
        // What is older than the first page is all but this.
        const rest = page.cursor === null ? [] : walk(reader, { ...query, cursor: page.cursor })
        assert.deepStrictEqual([...page.deliveries, ...rest], all, JSON.stringify(query))
      }
      reader.close()
    }
  })

  it("has what begins with a text also where other tenants have thousands of types that do", () => {
    const facts = Array.from({ length: 5_100 }, (_, index): Fact => {
      const tenant = index % 100 === 0 ? "acme" : "globex"
      const about = { v: 1, tenant, endpoint: "e", eventAt: index, at: index } as const
      const of = { event: `e${index}`, eventSeq: index + 1, type: `inv.${index}` }
      return { ...about, ...of, kind: "delivered", attempt: 1 }
    })
    const directory = madeAtOnce(facts)
    const types = (type: string) =>
      rowsIn(directory, { tenant: "acme", type: [type] }).map((row) => row.type)
    assert.strictEqual(types("inv.*").length, 51)
    assert.deepStrictEqual(types("inv.21*"), ["inv.2100"])
    assert.deepStrictEqual(types("out.*"), [])
  })

  it("goes on from where its time was over, without rows lost or twice", () => {
    const [patient, hurried] = [new LogReader(many), new LogReader(many, 0)]
    for (const query of queries) {
      assert.deepStrictEqual(walk(hurried, query), walk(patient, query), JSON.stringify(query))
    }
    patient.close()
    hurried.close()
  })

  it("says how far it has searched where its time was over", () => {
    const facts = Array.from({ length: 9_000 }, (_, index): Fact => {
      const about = { v: 1, tenant: "acme", endpoint: "e", eventAt: index, at: index } as const
      const of = { event: `e${index}`, eventSeq: index + 1, type: "a" }
      return { ...about, ...of, kind: "delivered", attempt: 1, status: 200 }
    })
    const reader = new LogReader(madeAtOnce(facts), 0)
    const page = reader.find({ status: ["299"] })
    assert.deepStrictEqual(page.deliveries, [])
    assert.isNumber(page.searchedUntil)
    assert.deepStrictEqual(walk(reader, { status: ["299"] }), [])
    reader.close()
  })

  it("refuses a cursor that is none, or of another query", () => {
    const reader = new LogReader(made(randomFacts(9, 100)))
    const { cursor } = reader.find({ limit: 1 })
    assert.throws(() => reader.find({ tenant: "acme", cursor: cursor ?? "" }), /of another query/)
    for (const broken of ["", "x", "zzzzzzzzzzz-aaaaaaaa", "-1-aaaaaaaa", `${cursor}0`])
      assert.throws(() => reader.find({ cursor: broken }), /cursor must be|of another query/)
    assert.throws(() => reader.find({ endpoint: ["a"] }), /needs `tenant`/)
    reader.close()
  })

  it("finds one delivery among more of its event than are shown", () => {
    const about = { event: "acme.big", eventSeq: 1, eventAt: 1, type: "invoice.paid" }
    const parts = [0, 1, 2].map((part): Fact => {
      const endpoints = Array.from({ length: 700 }, (_, n) => ({
        id: `e${part}x${n}`,
        ...{ generation: "g", revision: 1, deadline: 9e8 }
      }))
      const plan = { part, last: part === 2, endpoints, skipped: [] }
      return { v: 1, kind: "routed", at: 1, tenant: "acme", endpoint: "_", ...about, plan }
    })
    const ends = parts.flatMap(({ plan }) =>
      (plan?.endpoints ?? []).map(
        ({ id }): Fact => ({
          ...{ v: 1, kind: "delivered", at: 2, tenant: "acme", endpoint: id, ...about },
          ...{ round: "0", attempt: 1, status: 200 }
        })
      )
    )
    for (const facts of [parts, [...parts, ...ends]]) {
      const reader = new LogReader(madeAtOnce(facts))
      const of = (endpoint: string, tenant = "acme") =>
        reader.get({ event: about.event, tenant, endpoint }).rounds.map((one) => one.endpoint)
      for (const id of ["e0x0", "e1x350", "e2x699"]) assert.deepStrictEqual(of(id), [id])
      assert.deepStrictEqual(of("none"), [])
      assert.deepStrictEqual(of("e0x0", "globex"), [])
      const { rounds } = reader.get({ event: about.event, tenant: "acme" })
      assert.lengthOf(rounds, 1_000)
      assert.strictEqual(rounds.at(-1)?.endpoint, "e2x699")
      reader.close()
    }
  })

  it("shows a delivery with its attempts, each with its fact", () => {
    const facts = randomFacts(10, 600)
    const reader = new LogReader(made(facts))
    const row = walk(reader, {}).find(({ attempts }) => attempts > 2)
    const { rounds } = reader.get({ event: row?.event ?? "", endpoint: row?.endpoint ?? "" })
    const found = rounds.find(({ round }) => round === row?.round)
    assert.isAbove(found?.recorded.length ?? 0, 1)
    for (const { number, seq } of found?.recorded ?? [])
      assert.strictEqual(facts[seq - 1]?.attempt, number)
    assert.deepStrictEqual(reader.get({ event: "none" }).rounds, [])
    const { tenant = "" } = facts[0] ?? {}
    const own = { event: `${tenant}.as-published`, tenant }
    const named = new LogReader(made(facts.map((fact) => ({ ...fact, event: own.event }))))
    const all = named.get(own).rounds
    assert.isAbove(all.length, 0)
    assert.deepStrictEqual(named.get({ event: "as-published", tenant }).rounds, all)
    assert.deepStrictEqual(named.get({ event: "as-published" }).rounds, [])
    named.close()
    reader.close()
  })
})
