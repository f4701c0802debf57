import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { StreamSurvey } from "../../src/broker/survey-streams.ts"
import { statusJson } from "../../src/cli/status-json.ts"
import { newsOf, rangesText } from "../../src/cli/status-news.ts"
import { statusLines } from "../../src/cli/status-view.ts"
import type { Present, Role } from "../../src/cluster/roster.ts"
import type { PartitionSurvey, Survey } from "../../src/delivery/introspection/survey.ts"
import type { EndpointsSurvey } from "../../src/delivery/introspection/survey-endpoints.ts"
import { nth } from "../engine.ts"

const now = new Date("2026-06-03T10:32:00").getTime()
const minute = 60_000

const partition = (index: number, changes: Partial<PartitionSurvey> = {}): PartitionSurvey => ({
  partition: index,
  owner: `worker-${index % 3}`,
  unownedSince: undefined,
  told: {
    worker: `worker-${index % 3}`,
    since: now - 60 * minute,
    inFlight: 4,
    inLine: 3,
    prefetched: 12,
    attempts: 20_000,
    delivered: 19_900,
    durations: [0, 0, 0, 0, 0, 0, 0, 0, 18_000, 0, 0, 0, 0, 2_000]
  },
  new: 1_200,
  ackPending: 2_012,
  scheduled: 40_000,
  backlog: 120_000,
  backlogs: 15,
  ...changes
})

const everything: ReadonlyArray<Role> = ["router", "deliver"]
const someone = (id: string, startedAt = now - 60 * minute, roles = everything): Present => ({
  id,
  heartbeat: {
    v: 1,
    id,
    instance: "x",
    roles,
    host: "delivery-7.example",
    pid: 7,
    startedAt,
    partitions: []
  },
  partitions: [0, 1, 2, 3, 4, 5, 6, 7].filter((index) => id === `worker-${index % 3}`)
})

const endpoints: EndpointsSurvey = {
  total: 100_000,
  closed: 99_000,
  open: 0,
  halfOpen: 3,
  paused: 7,
  disabled: 990,
  unreadable: 0,
  longestOpen: []
}

const busy: Survey = {
  at: now,
  version: "2.15.1",
  cluster: "petrels-eu-west",
  account: { bytes: 4 * 1024 ** 3, limit: 10 * 1024 ** 3 },
  streams: [],
  room: {
    events: {
      name: "PETREL_EVENTS",
      bytes: 2 * 1024 ** 3,
      limit: 5 * 1024 ** 3,
      oldestAt: now - 24 * 60 * minute,
      maxAge: 7 * 24 * 60 * minute
    },
    history: {
      name: "PETREL_HISTORY",
      bytes: 1024 ** 3,
      limit: 2.5 * 1024 ** 3,
      oldestAt: now - 12 * 24 * 60 * minute,
      maxAge: 30 * 24 * 60 * minute
    },
    queues: 20 * 1024 ** 2,
    backlogs: 980 * 1024 ** 2
  },
  events: { stored: 12_345_678, pending: 4, inRouter: 3 },
  dead: { stored: 4_321, lastHour: 0, bytes: 1, limit: 100 },
  alerts: [],
  change: undefined,
  partitions: Array.from({ length: 8 }, (_, index) => partition(index)),
  workers: [someone("worker-0"), someone("worker-1"), someone("worker-2")],
  endpoints,
  oldest: { tenant: "acme", endpoint: "billing", place: "backlog", since: now - 125 * minute }
}

const Count = Schema.NullOr(Schema.Int)
const Unreadable = Schema.Struct({
  deliveries: Schema.Struct({ unreadable: Count }),
  partitions: Schema.Array(Schema.Struct({ unreadable: Count }))
})

const Room = Schema.Struct({ room: Schema.Record(Schema.String, Schema.Unknown) })

const plain = { colour: false, width: 80, height: 23 }
const codes = (survey: Survey) => {
  const { notices, problems } = newsOf(survey)
  return [problems.map(({ code }) => code), notices.map(({ code }) => code)]
}
const texts = (survey: Survey) => {
  const { notices, problems } = newsOf(survey)
  return [...problems, ...notices].map(({ text }) => text)
}
const led = (changes: Partial<StreamSurvey>): StreamSurvey => ({
  name: "PETREL_EVENTS",
  state: "led",
  info: undefined,
  behind: [],
  ...changes
})

describe("the screen of petrel status", () => {
  it("says it all in 24 lines of 80 columns", () => {
    assert.deepStrictEqual(statusLines(busy, plain), [
      "status      at 10:32:00",
      "broker      nats-server 2.15.1, cluster petrels-eu-west, 1 copy of each stream;",
      "            0 B stored",
      "room        events 40% of 5 GiB, history 40% of 2.5 GiB, dead 1% of 100 B,",
      "            queues 20 MiB, backlogs 980 MiB; in all 40% of 10 GiB",
      "events      12,345,678 stored, 4 not routed yet, 3 being routed or attempted",
      "deliveries  1,305,696 wait: 9,600 new, 16,000 for a retry, 320,000 scheduled for",
      "            one, 960,000 in 120 backlogs; 32 in flight, 24 in line",
      "oldest      acme/billing has waited for 2 h 5 min, in its backlog",
      "last hour   160,000 attempts, 99.5% delivered, p50 4 ms, p95 9 ms",
      "dead        4,321 dead letters, 0 of the last hour",
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

  it("has a problem where messages are unreadable, as far as any owner says", () => {
    const [first = partition(0), ...others] = busy.partitions
    const { told } = first
    assert(told !== undefined)
    const silent = { ...first, told: undefined }
    const found = (unreadable: number) => [...others, { ...first, told: { ...told, unreadable } }]
    const unreadable = (partitions: ReadonlyArray<PartitionSurvey>) =>
      Schema.decodeUnknownSync(Unreadable)(statusJson({ ...busy, partitions }))
    assert.deepStrictEqual(codes({ ...busy, partitions: found(0) }), [[], []])
    assert.deepStrictEqual(codes({ ...busy, partitions: found(1) }), [["unreadable"], []])
    assert.match(nth(texts({ ...busy, partitions: found(1) }), 0), /^1 waiting message .* it; /)
    assert.strictEqual(unreadable(found(3)).deliveries.unreadable, 3)
    // None of the others says: they are of an older version.
    assert.isNull(unreadable([silent]).deliveries.unreadable)
    assert.isNull(unreadable([silent]).partitions[0]?.unreadable)
  })

  it("shows as many workers as there is room for", () => {
    const workers = Array.from({ length: 30 }, (_, n) => someone(`w${n}`))
    const lines = statusLines({ ...busy, workers }, plain)
    assert.lengthOf(lines, 23)
    assert.strictEqual(lines.at(-3), "and 24 more: `petrel workers` shows all")
    assert.isAbove(statusLines({ ...busy, workers }, { ...plain, height: undefined }).length, 40)
  })

  it("has colour where bad news stands out by it, and words for it everywhere", () => {
    const bad = { ...busy, workers: [] }
    const line = (colour: boolean) => statusLines(bad, { ...plain, colour }).at(-2) ?? ""
    assert.match(line(false), /^problem {5}no worker is running/)
    assert.strictEqual(line(true), `\u001b[31m${line(false)}\u001b[39m`)
  })
})

describe("what is not as it should be", () => {
  it("is nothing where all is well", () => {
    assert.deepStrictEqual(codes(busy), [[], []])
  })

  it("is a partition that nobody has taken over in time, or not yet", () => {
    const orphans = (unownedSince: number | undefined) => ({
      ...busy,
      partitions: busy.partitions.map((one) =>
        one.partition < 2 ? { ...one, owner: undefined, told: undefined, unownedSince } : one
      )
    })
    assert.deepStrictEqual(codes(orphans(now - 9_000)), [[], ["partition-changing-hands"]])
    assert.deepStrictEqual(codes(orphans(now - 40_000)), [["partition-without-owner"], []])
    assert.match(
      texts(orphans(now - 40_000))[0] ?? "",
      /^partitions 0-1 have no owner for 40 s, so nothing there is delivered: look at the logs/
    )
    assert.deepStrictEqual(codes(orphans(undefined)), [["partition-without-owner"], []])
    const starting = { ...orphans(undefined), workers: [someone("w", now - 3_000)] }
    assert.deepStrictEqual(codes(starting), [[], ["partition-changing-hands"]])
  })

  it("is that nobody routes, though others deliver", () => {
    const workers = [someone("w", now - 60 * minute, ["deliver"])]
    assert.deepStrictEqual(codes({ ...busy, workers }), [["no-router"], []])
  })

  it("is that the number of partitions is being changed, and not that no worker is there", () => {
    const changing = { ...busy, workers: [], change: { from: 8, to: 32 } }
    assert.deepStrictEqual(codes(changing), [["repartitioning"], []])
  })

  it("is a stream that nobody leads, and a server that is missing or behind", () => {
    const behind = (offline: boolean) => [
      led({ behind: [{ server: "n2", offline, lag: 12 }] }),
      led({ name: "PETREL_DEAD", behind: [{ server: "n2", offline, lag: 1_200 }] })
    ]
    assert.deepStrictEqual(codes({ ...busy, streams: [led({ state: "leaderless" })] }), [
      ["stream-without-leader"],
      []
    ])
    assert.deepStrictEqual(texts({ ...busy, streams: behind(true) }), [
      "server n2 is offline, and 2 streams have a copy less: bring it back before another fails"
    ])
    assert.deepStrictEqual(texts({ ...busy, streams: behind(false) }), [
      "server n2 is behind by up to 1,200 with PETREL_EVENTS, PETREL_DEAD: if this stays, look at its log"
    ])
  })

  it("is that room runs out", () => {
    const dead = (bytes: number) => ({ ...busy, dead: { ...busy.dead, bytes } })
    assert.deepStrictEqual(codes(dead(79)), [[], []])
    assert.deepStrictEqual(codes(dead(80)), [[], ["dead-letters-full"]])
    assert.deepStrictEqual(codes(dead(95)), [["dead-letters-full"], []])
    const byTenant = new Map([
      ["globex", 12],
      ["acme", 9_100],
      ["initech", 1],
      ["umbrella", 3]
    ])
    assert.match(
      texts({ ...busy, dead: { ...busy.dead, bytes: 95, byTenant } })[0] ?? "",
      /95% full \(acme 9,100, globex 12, umbrella 3 and 1 other tenant\), and what ends then waits/
    )
    assert.deepStrictEqual(codes({ ...busy, account: { bytes: 99, limit: 100 } }), [
      ["storage-full"],
      []
    ])
  })

  it("is that events are refused, or the store of the account is full", () => {
    const { events, history } = busy.room
    const withEvents = (bytes: number, limit: number | undefined = 5 * 1024 ** 3) => ({
      ...busy,
      room: { ...busy.room, events: { ...events, bytes, limit } }
    })
    assert.deepStrictEqual(codes(withEvents(4 * 1024 ** 3)), [[], ["events-full"]])
    assert.deepStrictEqual(codes(withEvents(4.9 * 1024 ** 3)), [["events-full"], []])
    assert.deepStrictEqual(texts(withEvents(4.9 * 1024 ** 3)), [
      "PETREL_EVENTS is 98% full (4.9 GiB of 5 GiB), and refuses events when it is full; what it holds is delivered. Its oldest events are removed from 2026-06-09 10:32:00 on, 7 d old; to make room sooner, raise `petrel init --event-bytes`"
    ])
    const unbounded = { ...busy, room: { ...busy.room, events: { ...events, limit: undefined } } }
    assert.deepStrictEqual(codes(unbounded), [[], ["events-unbounded"]])
    const shortened = { ...history, bytes: history.limit }
    assert.deepStrictEqual(texts({ ...busy, room: { ...busy.room, history: shortened } }), [
      "PETREL_HISTORY is full and drops its oldest facts: it goes back 12 d instead of 30 d, and nothing before can be audited; raise `petrel init --history-bytes`"
    ])
  })

  it("is that what waits takes all the room there is for it, where that is bounded", () => {
    const { history } = busy.room
    const waiting = (backlogs: number) => ({ ...busy, room: { ...busy.room, backlogs } })
    assert.deepStrictEqual(codes(waiting(2.1 * 1024 ** 3)), [[], []])
    assert.deepStrictEqual(codes(waiting(2.2 * 1024 ** 3)), [["routing-held-back"], []])
    const [text = ""] = texts(waiting(3 * 1024 ** 3))
    assert.match(text, /^queues and backlogs take 3 GiB; at 2\.5 GiB events are not routed /)
    const unbounded = { ...history, limit: undefined }
    const { room } = busy
    assert.deepStrictEqual(
      codes({ ...busy, room: { ...room, backlogs: 1024 ** 4, history: unbounded } }),
      [[], []]
    )
  })

  it("says how full what is, and that nobody knows of the whole without a limit", () => {
    const line = (survey: Survey) =>
      statusLines(survey, { ...plain, width: undefined }).find((line) => line.startsWith("room"))
    const { account, room } = busy
    assert.match(line({ ...busy, account: undefined }) ?? "", /; in all \?$/)
    const unlimited = { ...busy, account: { bytes: account?.bytes ?? 0, limit: undefined } }
    assert.match(line(unlimited) ?? "", /; in all unknown, the account has no limit$/)
    const silent = { ...room.events, bytes: undefined, limit: undefined, oldestAt: undefined }
    const nothing = { ...unlimited, room: { ...room, events: silent, queues: undefined } }
    assert.match(line(nothing) ?? "", / events \?, .* queues \?, backlogs 980 MiB/)
    const { room: json } = Schema.decodeUnknownSync(Room)(statusJson(nothing))
    assert.deepStrictEqual(json, {
      events: { bytes: null, limitBytes: null, oldestAt: null },
      history: {
        bytes: room.history.bytes,
        limitBytes: room.history.limit,
        oldestAt: room.history.oldestAt
      },
      deadLetters: { bytes: 1, limitBytes: 100 },
      queues: { bytes: null },
      backlogs: { bytes: room.backlogs },
      waiting: { bytes: null, limitBytes: null },
      account: { bytes: account?.bytes, limitBytes: null }
    })
  })

  it("is what endpoints and deliveries suffer from", () => {
    const open = { tenant: "acme", endpoint: "billing", since: now - 2 * minute, why: "5 failures" }
    assert.deepStrictEqual(
      texts({
        ...busy,
        endpoints: { ...endpoints, open: 2, longestOpen: [open] },
        events: { ...busy.events, pending: 20_000 },
        dead: { ...busy.dead, lastHour: 1 }
      }),
      [
        "20,000 events wait to be routed: if they become more, start another worker",
        "2 endpoints have open circuits, the longest acme/billing since 10:30:00 (5 failures): see `petrel endpoint show acme/billing`",
        "1 delivery ended without success since 09:32:00: see `petrel dead list --since 1h`"
      ]
    )
  })
})

describe("numbers in ranges", () => {
  it("name each once", () => {
    assert.strictEqual(rangesText([0, 1, 2, 4, 6, 7]), "0-2, 4, 6-7")
    assert.strictEqual(rangesText([]), "")
  })
})
