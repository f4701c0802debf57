import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { Broker } from "../../../../src/broker/broker.ts"
import { natsClients } from "../../../../src/broker/clients.ts"
import type { Fact } from "../../../../src/domain/fact.ts"
import { Facts } from "../../../../src/history/facts.ts"
import { eventually, nth } from "../../../kit/engine.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"

const place = installations()

/** Facts of three events of acme and one of globex: all but one delivered, one at the third attempt. */
const story = Effect.gen(function* () {
  const facts = yield* Facts
  let stored = 0
  const append = (kind: Fact["kind"], more: Partial<Fact> = {}) =>
    facts.append(
      {
        ...{ v: 1, kind, at: 64_000, tenant: "acme", endpoint: "hook", type: "invoice.paid" },
        ...{ eventSeq: 1, eventAt: 0, round: "0", ...more }
      },
      `${stored++}`
    )
  const planned = { id: "hook", generation: "g", revision: 1, deadline: 0 }
  const plan = {
    part: 0,
    last: true,
    endpoints: [planned, { ...planned, id: "other" }],
    skipped: [{ id: "off", reason: "endpoint-disabled" }]
  }
  for (const eventSeq of [1, 2, 3]) yield* append("routed", { endpoint: "_", eventSeq, plan })
  yield* append("routed", { endpoint: "_", plan: { ...plan, part: 1 } })
  yield* append("routed", { tenant: "globex", endpoint: "_", plan })
  yield* append("attempt-failed", { attempt: 1 })
  yield* append("attempt-failed", { attempt: 2 })
  yield* append("delivered", { attempt: 3, durationMs: 0 })
  yield* append("delivered", { attempt: 1, eventSeq: 2 })
  yield* append("attempt-failed", { attempt: 1, eventSeq: 3 })
  yield* append("dead-lettered", { attempt: 1, eventSeq: 3, reason: "permanent", dead: 1 })
  yield* append("discarded", { eventSeq: 3, dead: 1 })
  yield* append("redelivered", { eventSeq: 3, round: "d1", dead: 1 })
  yield* append("circuit-opened")
})

const ofAcme = {
  tenant: "acme",
  events: 3,
  begun: 9,
  delivered: 2,
  deliveredLate: 0,
  skipped: 4,
  retries: 2,
  deadLettered: 1,
  discarded: 1,
  attempts: 5,
  successRate: 0.6667,
  meanAttempts: 1.67,
  attemptCounts: { "1": 2, "3-5": 1 },
  // Within 5% of 64 s.
  toSuccessMs: { p50: 65_340, p90: 65_340, p99: 65_340 },
  latencyMs: { p50: 0, p90: 0, p99: 0 }
}

const untold = {
  ...{ delivered: 0, deliveredLate: 0, retries: 0, deadLettered: 0, discarded: 0, attempts: 0 },
  ...{ successRate: null, meanAttempts: null },
  ...{ attemptCounts: {}, toSuccessMs: null, latencyMs: null }
}

describe("petrel history totals", () => {
  it.live("sums up by tenant what happened within an hour, or a day", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        yield* story
        const totals = (...args: ReadonlyArray<string>) =>
          run("history", "totals", ...flags, ...args)
        const [json, table, days, none, wrong] = yield* Effect.all(
          [
            totals("--json"),
            totals("--tenant", "acme"),
            totals("--by", "day", "--tenant", "acme", "--json"),
            totals("--until", "2020-01-01"),
            totals("--by", "week")
          ],
          { concurrency: 2 }
        )
        assert.strictEqual(json.code, 0, json.err.join("\n"))
        const [acme, globex] = json.out.map((line) => parse(line))
        const begins = String(acme?.begins)
        assert.match(begins, /T\d\d:00:00\.000Z$/)
        assert.deepStrictEqual(acme, { begins, by: "hour", ...ofAcme })
        assert.deepStrictEqual(globex, {
          ...{ begins, by: "hour", tenant: "globex", events: 1, begun: 2, skipped: 1 },
          ...untold
        })
        assert.lengthOf(json.out, 2)

        const from = begins.slice(0, 16).replace("T", " ")
        assert.deepStrictEqual(table.out, [
          "hour (UTC)        tenant  events  delivered  dead letters  attempts  retries  success  mean attempts",
          `${from}  acme         3          2             1         5        2    66.6%           1.67`,
          "",
          "attempts taken   1: 2, 3-5: 1",
          "time to success  p50 1 min 5 s, p90 1 min 5 s, p99 1 min 5 s",
          "latency          p50 0 ms, p90 0 ms, p99 0 ms"
        ])
        const day = `${begins.slice(0, 10)}T00:00:00.000Z`
        assert.deepStrictEqual(parse(nth(days.out, 0)), { begins: day, by: "day", ...ofAcme })
        assert.deepStrictEqual([none.out, none.err], [[], ["Nothing in the history matches."]])
        assert.strictEqual(wrong.code, 2)
        assert.match(wrong.err.join("\n"), /must be one of hour, day/)
      })
    )
  })

  it.live("sums up by endpoint or by type, worst first, with a remainder", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        yield* story
        const totals = (...args: ReadonlyArray<string>) =>
          run("history", "totals", ...flags, ...args)
        const [json, table, types, ofGlobex, both, limited] = yield* Effect.all(
          [
            totals("--by-endpoint", "--json", "--limit", "2"),
            totals("--by-endpoint", "--limit", "2"),
            totals("--by-type", "--json"),
            totals("--by-endpoint", "--tenant", "globex", "--json"),
            totals("--by-endpoint", "--by", "day"),
            totals("--limit", "3")
          ],
          { concurrency: 2 }
        )
        const brief = (lines: ReadonlyArray<string>) =>
          lines
            .map((line) => parse(line))
            .map(({ begun, events, name, others, skipped }) => [
              name,
              others,
              events,
              begun,
              skipped
            ])
        assert.deepStrictEqual(brief(json.out), [
          ["acme/hook", undefined, 4, 5, 0],
          ["acme/off", undefined, 0, 0, 4],
          [null, 4, 6, 6, 1]
        ])
        assert.deepInclude(parse(nth(json.out, 0)), {
          ...{ by: "endpoint", delivered: 2, deadLettered: 1, attempts: 5, meanAttempts: 1.67 },
          attemptCounts: ofAcme.attemptCounts
        })
        assert.deepStrictEqual(
          [nth(table.out, 1), nth(table.out, 3)].map((line) => line.split(/ {2,}/)),
          [
            [
              ...["acme/hook", "4", "2", "1", "5", "2", "66.6%", "1.67"],
              ...["1 min 5 s", "1 min 5 s", "0 ms", "0 ms"]
            ],
            ["and 4 more endpoints", "6", "0", "0", "0", "0", "-", "-", "-", "-", "-", "-"]
          ]
        )
        assert.strictEqual(nth(table.out, 5), "attempts taken   1: 2, 3-5: 1")
        assert.deepStrictEqual(brief(types.out), [["invoice.paid", undefined, 4, 11, 5]])
        assert.deepStrictEqual(
          ofGlobex.out.map((line) => parse(line).name),
          ["globex/hook", "globex/off", "globex/other"]
        )
        assert.match(nth(both.err, 0), /--by, --by-endpoint and --by-type cannot be combined/)
        assert.match(nth(limited.err, 0), /--limit needs --by-endpoint or --by-type/)
      })
    )
  })

  it.live("says since when it counts where the history has dropped what was stored before", () => {
    const { flags, run: inside } = place({ historyBytes: 20_000 })
    return inside(
      Effect.gen(function* () {
        const { names, streamInfo } = yield* Broker
        const state = Effect.map(streamInfo("look", names.history), (info) => info.state)
        yield* story
        const totals = (...args: ReadonlyArray<string>) =>
          run("history", "totals", ...flags, ...args)
        assert.deepStrictEqual((yield* totals("--json")).err, [])
        const facts = yield* Facts
        for (let n = 0; (yield* state).first_seq === 1; n++)
          yield* facts.append(
            { v: 1, kind: "delivered", at: 0, tenant: "acme", endpoint: "hook", attempt: 1 },
            `more-${n}`
          )
        const { first_ts } = yield* state
        const oldest = new Date(first_ts).toISOString()
        const said = [`Counted since ${oldest}: the history has dropped what was stored before.`]
        for (const args of [[], ["--json"], ["--by-type"]])
          assert.deepStrictEqual((yield* totals(...args)).err, said, args.join())
        assert.deepStrictEqual((yield* totals("--since", "2026-01-01")).err, said)
        const later = new Date(Date.parse(first_ts) + 1).toISOString()
        assert.deepStrictEqual((yield* totals("--since", later, "--json")).err, [])
      })
    )
  })

  it.live(
    "counts what was stored within the times that are given, and passes over what is no fact",
    () => {
      const { flags, run: inside } = place()
      return inside(
        Effect.gen(function* () {
          const { ask, js, names } = yield* natsClients
          yield* story
          const stored = yield* Clock.currentTimeMillis
          const edge = yield* eventually(Clock.currentTimeMillis, (now) => now > stored + 1)
          const subject = names.subjects.fact("acme", "hook", "ok", "delivered")
          yield* ask("publish", () => js.publish(subject, "garbage"))
          const late = { v: 1, kind: "delivered", at: 0, tenant: "acme", attempt: 1 }
          yield* ask("publish", () => js.publish(subject, JSON.stringify(late)))
          const until = new Date(edge - 1).toISOString()
          const before = yield* run("history", "totals", "--json", "--until", until, ...flags)
          const since = new Date(edge).toISOString()
          const after = yield* run("history", "totals", "--json", "--since", since, ...flags)
          const sums = (lines: ReadonlyArray<string>) =>
            ["events", "attempts"].map((field) =>
              lines.reduce((all, line) => all + Number(parse(line)[field]), 0)
            )
          assert.deepStrictEqual(sums(before.out), [4, 5])
          assert.deepStrictEqual(sums(after.out), [0, 1])
          assert.match(after.err.join("\n"), /skipped records that are not facts in .*: 1/)
        })
      )
    }
  )
})
