import { assert, describe, it } from "@effect/vitest"
import { statusLines } from "../../../../src/cli/commands/status/status.ts"
import type { Survey } from "../../../../src/delivery/introspection/survey.ts"
import { statusOf } from "../../../../src/operations/status/status-report.ts"
import { busy, comingIn, now, someone } from "../../../operations/status/surveys.ts"

const plain = { colour: false, width: 80, height: 23 }

describe("the screen of petrel status", () => {
  it("says it all in 24 lines of 80 columns", () => {
    assert.deepStrictEqual(statusLines(statusOf(busy), plain), [
      "status      at 10:32:00",
      "broker      nats-server 2.15.1, cluster petrels-eu-west, 1 copy of each stream;",
      "            0 B stored",
      "storage     events 40% of 5 GiB, history 40% of 2.5 GiB, dead 1% of 100 B,",
      "            queues 20 MiB, backlogs 500 MiB; in total 40% of 10 GiB",
      "events      12,345,678 stored, 4 not routed yet, 3 being routed or attempted",
      "deliveries  1,305,696 wait: 9,600 new, 16,000 for a retry, 320,000 scheduled for",
      "            one, 960,000 in 120 backlogs; 32 in flight, 24 in line",
      "oldest      acme/billing has waited for 2 h 5 min, in its backlog",
      "last hour   160,000 attempts, 99.5% delivered, p50 4 ms, p95 9 ms",
      "dead        4,321 dead letters, 1,234 open, 0 of the last hour",
      "endpoints   100,000: 99,000 closed, 0 open, 3 half-open, 7 paused, 990 disabled",
      "",
      "worker    host                since     roles           partitions  in flight",
      "worker-0  delivery-7.example  09:32:00  router,deliver  0, 3, 6     12",
      "worker-1  delivery-7.example  09:32:00  router,deliver  1, 4, 7     12",
      "worker-2  delivery-7.example  09:32:00  router,deliver  2, 5        8",
      "",
      "all is well"
    ])
  })

  it("says what comes in, who takes it, and what refuses", () => {
    const lines = (changes: Partial<Survey>) =>
      statusLines(statusOf({ ...busy, ...changes }), { ...plain, width: undefined })
    assert.deepStrictEqual(
      lines({ incoming: comingIn }).filter((line) => /^(incoming|outbox|notice)/.test(line)),
      [
        "incoming    12,000 came in within 3 d, 5 not in the event stream yet; 10% of 200 MiB; 9 in quarantine; 2 gateways with 6 requests under way",
        "outbox      shop: 4 rows wait, the oldest for 9 s, 1 set aside, the database is away",
        "notice      acme/stripe has refused every request since 10:30:00 UTC (11 in a row): see `petrel source show acme/stripe`",
        "notice      the outbox shop is not published (the database is away): the log of the relay says more; start one with `petrel outbox` if none runs, or run `petrel outbox forget shop` if the outbox is retired"
      ]
    )
    const [shop] = comingIn.outboxes
    if (shop === undefined) return assert.fail("there is an outbox")
    const rows = (changes: Partial<typeof shop>) =>
      lines({ incoming: { ...comingIn, outboxes: [{ ...shop, ...changes }] } }).find((line) =>
        line.startsWith("outbox")
      )
    assert.strictEqual(
      rows({ countedAt: now - 60_000, pending: 0, oldestMs: 0 }),
      "outbox      shop: no row waited at 10:31:00, 1 set aside, the database is away"
    )
    assert.strictEqual(
      rows({ at: now - 60_000 }),
      "outbox      shop: 4 rows waited at 10:31:00, the oldest for 9 s, 1 set aside, its relay has been silent for 1 min, the database is away"
    )
    const nothing = { ...comingIn, events: 0, oldestAt: null, notCopied: 0, gateways: [] }
    assert.include(
      lines({ incoming: { ...nothing, quarantined: new Map(), outboxes: [] } }),
      "incoming    nothing has come in; 10% of 200 MiB; 0 in quarantine; 0 gateways"
    )
  })

  it("says that nothing waits only where no event waits to be routed either", () => {
    const nothing = { new: 0, ackPending: 0, scheduled: 0, backlog: 0, inFlight: 0, inLine: 0 }
    const partitions = busy.partitions.map((one) => ({ ...one, ...nothing }))
    const oldest = (counts: Partial<Survey["events"]["counts"]>) =>
      statusLines(
        statusOf({
          ...{ ...busy, oldest: null, partitions },
          events: { ...busy.events, counts: { ...busy.events.counts, ...counts } }
        }),
        plain
      ).find((line) => line.startsWith("oldest"))
    assert.strictEqual(
      oldest({ oldestUnroutedAt: busy.at - 44_000 }),
      "oldest      an event has waited for 44 s to be routed"
    )
    assert.strictEqual(oldest({ oldestUnroutedAt: null }), "oldest      nothing waits")
    const lines = (changes: Partial<Survey>) =>
      statusLines(statusOf({ ...busy, oldest: null, ...changes }), { ...plain, width: undefined })
    assert.include(lines({ partitions }), "deliveries  none waits")
    assert.include(lines({}), "oldest      not known")
    const uncounted = partitions.map((one) =>
      one.partition < 2 ? { ...one, new: null, ackPending: null, scheduled: null } : one
    )
    for (const line of [
      "deliveries  what waits in 2 of 8 partitions is not known",
      "oldest      not known"
    ])
      assert.include(lines({ partitions: uncounted }), line)
  })

  it("names no number of backlogs while one partition's could not be counted", () => {
    const survey = {
      ...busy,
      partitions: busy.partitions.map((one) =>
        one.partition === 0 ? { ...one, endpointsWithBacklog: null } : one
      )
    }
    const status = statusOf(survey)
    assert.strictEqual(status.endpoints?.withBacklog, null)
    const lines = statusLines(status, { ...plain, width: undefined })
    assert.match(
      lines.find((line) => line.startsWith("deliveries")) ?? "",
      /, 960,000 in backlogs; /
    )
  })

  it("says that deliveries count twice while they are moved to other partitions", () => {
    const moving = statusLines(statusOf({ ...busy, change: { from: 8, to: 16 } }), {
      ...plain,
      width: undefined
    })
    const found = (begin: string) => moving.find((line) => line.startsWith(begin)) ?? ""
    assert.match(
      found("deliveries"),
      /^deliveries +1,305,696 wait: .*; those that are being moved count twice$/
    )
    assert.match(found("problem"), /from 8 to 16, .* being moved count twice/)
  })

  it("shows as many workers as there is room for", () => {
    const workers = Array.from({ length: 30 }, (_, n) => someone(`w${n}`))
    const lines = statusLines(statusOf({ ...busy, workers }), plain)
    assert.lengthOf(lines, 23)
    assert.strictEqual(lines.at(-3), "and 24 more: `petrel workers` shows all")
    assert.isAbove(
      statusLines(statusOf({ ...busy, workers }), { ...plain, height: undefined }).length,
      40
    )
  })

  it("has colour where bad news stands out by it, and words for it everywhere", () => {
    const bad = { ...busy, workers: [] }
    const line = (colour: boolean) => statusLines(statusOf(bad), { ...plain, colour }).at(-2) ?? ""
    assert.match(line(false), /^problem {5}no worker is running/)
    assert.strictEqual(line(true), `\u001b[31m${line(false)}\u001b[39m`)
  })

  it("says how full what is, and that nobody knows of the whole without a limit", () => {
    const line = (survey: Survey) =>
      statusLines(statusOf(survey), { ...plain, width: undefined }).find((line) =>
        line.startsWith("storage")
      )
    const { account, space } = busy
    const unknown = { bytes: null, limitBytes: null }
    assert.match(line({ ...busy, account: unknown }) ?? "", /; in total \?$/)
    const unlimited = { ...busy, account: { ...account, limitBytes: null } }
    assert.match(line(unlimited) ?? "", /; in total unknown, the account has no limit$/)
    const silent = { ...space.events, space: { ...unknown, oldestAt: null } }
    const nothing = { ...unlimited, space: { ...space, events: silent, queues: unknown } }
    assert.match(line(nothing) ?? "", / events \?, .* queues \?, backlogs 500 MiB/)
  })
})
