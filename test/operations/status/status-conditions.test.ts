import { assert, describe, it } from "@effect/vitest"
import type { StreamInfo } from "@nats-io/jetstream"
import { beyondRemoved } from "../../../src/broker/losses.ts"
import type { Survey } from "../../../src/delivery/introspection/survey.ts"
import { conditionsOf } from "../../../src/operations/status/status-conditions.ts"
import {
  busy,
  comingIn,
  endpoints,
  led,
  minute,
  now,
  partition,
  silent,
  someone
} from "./surveys.ts"

const codes = (survey: Survey) => {
  const { notices, problems } = conditionsOf(survey)
  return [problems.map(({ code }) => code), notices.map(({ code }) => code)]
}
const texts = (survey: Survey) => {
  const { notices, problems } = conditionsOf(survey)
  return [...problems, ...notices].map(({ text }) => text)
}
const counted = (counts: Partial<Survey["events"]["counts"]>) => ({
  ...busy.events,
  counts: { ...busy.events.counts, ...counts }
})
const fared = (counts: Partial<typeof endpoints.counts>) => ({
  ...endpoints,
  counts: { ...endpoints.counts, ...counts }
})

describe("what is not as it should be", () => {
  it("is nothing where all is well", () => {
    assert.deepStrictEqual(codes(busy), [[], []])
  })

  it("is a partition that nobody has taken over in time, or not yet", () => {
    const orphans = (unownedSince: number | null) => ({
      ...busy,
      partitions: busy.partitions.map((one) =>
        one.partition < 2 ? { ...one, ...silent, owner: null, unownedSince } : one
      )
    })
    assert.deepStrictEqual(codes(orphans(now - 9_000)), [[], ["partition-changing-hands"]])
    assert.deepStrictEqual(codes(orphans(now - 40_000)), [["partition-without-owner"], []])
    assert.match(
      texts(orphans(now - 40_000))[0] ?? "",
      /^partitions 0-1 have no owner for 40 s, so nothing there is delivered: look at the logs/
    )
    assert.deepStrictEqual(codes(orphans(null)), [["partition-without-owner"], []])
    const starting = { ...orphans(null), workers: [someone("w", now - 3_000)] }
    assert.deepStrictEqual(codes(starting), [[], ["partition-changing-hands"]])
  })

  it("is an owner that answers nobody, and then no hand-over of it that failed", () => {
    const withheld = [0, 3, 6].map((partition) => ({ partition, owner: "worker-0" }))
    const { heartbeat, ...one } = someone("w")
    const workers = [{ ...one, heartbeat: heartbeat && { ...heartbeat, withheld } }]
    assert.deepStrictEqual(codes({ ...busy, workers }), [[], ["hand-over-unanswered"]])
    const dead = (...owners: ReadonlyArray<string>) => ({
      ...busy,
      workers,
      partitions: busy.partitions.map((one) =>
        owners.includes(one.owner ?? "") ? { ...one, ...silent } : one
      )
    })
    assert.deepStrictEqual(codes(dead("worker-0")), [[], ["owner-silent"]])
    assert.deepStrictEqual(
      texts(dead("worker-0", "worker-1")).map((text) => text.replace(/:.*/, "")),
      [
        "worker worker-0 has partitions 0, 3, 6 and does not answer",
        "worker worker-1 has partitions 1, 4, 7 and does not answer"
      ]
    )
  })

  it("is that the endpoints are not counted, unless their stream is the cause", () => {
    const uncounted = { ...busy, endpoints: undefined }
    assert.deepStrictEqual(codes(uncounted), [[], ["endpoints-not-counted"]])
    const refused = { ...uncounted, endpointsUnread: "no permission" }
    assert.deepStrictEqual(codes(refused), [[], ["endpoints-not-counted"]])
    assert.notInclude(texts(refused).join(), "20 s")
    assert.match(texts(refused).join(), /cannot be read, .*: no permission$/)
    const missing = led({ name: "KV_PETREL_endpoints", state: "missing" })
    assert.notInclude(codes({ ...uncounted, streams: [missing] }).flat(), "endpoints-not-counted")
  })

  it("is a backlog in which neighbours have one place", () => {
    const inexact = (...of: ReadonlyArray<number>) => ({
      ...busy,
      partitions: busy.partitions.map((one) => ({
        ...one,
        isBacklogInexact: of.includes(one.partition)
      }))
    })
    assert.deepStrictEqual(codes(inexact(3)), [["backlog-inexact"], []])
    assert.match(texts(inexact(3))[0] ?? "", /^the backlog of partition 3 has sequences beyond/)
    assert.match(texts(inexact(3, 5))[0] ?? "", /^the backlogs of partitions 3, 5 have sequences/)
  })

  it("is that events of the last hour go to nobody", () => {
    const last = { at: now - minute, tenant: "acme", event: "x", reason: "acme names no type" }
    const unroutable = (count: number) => ({ ...busy, unroutable: { count, last } })
    assert.deepStrictEqual(codes(unroutable(1)), [[], ["events-unroutable"]])
    assert.match(
      texts(unroutable(1))[0] ?? "",
      /^1 event of the last hour goes to no endpoint, the last at .* \(acme names no type\)/
    )
    assert.match(
      texts(unroutable(2))[0] ?? "",
      /^2 events of the last hour go to no endpoint, the last at /
    )
  })

  it("is that nobody routes, though others deliver", () => {
    const workers = [someone("w", now - 60 * minute, ["deliver"])]
    assert.deepStrictEqual(codes({ ...busy, workers }), [["no-router"], []])
  })

  it("is that workers say that they are not ready, at first as a notice", () => {
    const says = (worker: string, ms: number, ...problems: ReadonlyArray<string>) => ({
      ...{ worker, ms, problems }
    })
    const closed = "the history takes no facts"
    const fresh = { ...busy, unready: [says("w", 3_000, closed, "the endpoints are unknown")] }
    assert.deepStrictEqual(codes(fresh), [[], ["worker-not-ready"]])
    assert.strictEqual(
      texts(fresh)[0],
      "worker w has not been ready for 3 s: the history takes no facts; the endpoints are unknown"
    )
    const lasting = Array.from({ length: 7 }, (_, index) => says(`w${index}`, 90_000, closed))
    const many = { ...busy, unready: [...lasting, says("x", 90_000, "another")] }
    assert.deepStrictEqual(codes(many), [["worker-not-ready", "worker-not-ready"], []])
    assert.match(
      texts(many)[0] ?? "",
      /^workers w0, w1, w2, w3, w4, 2 more have not been ready for 1 min 30 s: the history takes no facts\. If/
    )
    const unseen = { ...fresh, workers: [] }
    assert.deepStrictEqual(codes(unseen), [["no-worker"], ["worker-not-ready"]])
    assert.match(texts(unseen)[0] ?? "", /^no worker is ready, .* say below what keeps them/)
  })

  it("is that the clock of a worker is off, though another one has the right time", () => {
    const offBy = (clockSkewMs: number) => {
      const late = someone("late")
      const heartbeat = late.heartbeat && { ...late.heartbeat, clockSkewMs }
      return { ...busy, workers: [someone("w"), { ...late, heartbeat }] }
    }
    assert.deepStrictEqual(codes(offBy(0)), [[], []])
    assert.deepStrictEqual(codes(offBy(5_000)), [[], ["clock-off"]])
    assert.deepStrictEqual(codes(offBy(-600_000)), [["clock-wrong"], []])
    assert.match(
      texts(offBy(-600_000))[0] ?? "",
      /: late on delivery-7.example \(600.0 s behind\); correct/
    )
    const all = Array.from({ length: 7 }, (_, index) => {
      const one = someone(`w${index}`)
      return { ...one, heartbeat: one.heartbeat && { ...one.heartbeat, clockSkewMs: 90_000 } }
    })
    assert.match(texts({ ...busy, workers: all })[0] ?? "", /w4 on [^,]*, 2 more; correct/)
  })

  it("is that events wait and none is routed, whatever the cause", () => {
    const events = (oldestMs: number, idleMs: number | undefined) => ({
      ...busy,
      events: {
        ...busy.events,
        counts: { ...busy.events.counts, oldestUnroutedAt: now - oldestMs },
        lastRoutedAt: idleMs === undefined ? undefined : now - idleMs
      }
    })
    assert.deepStrictEqual(codes(events(20_000, undefined)), [[], []])
    assert.deepStrictEqual(codes(events(40_000, 20_000)), [[], []])
    assert.deepStrictEqual(codes(events(40_000, 31_000)), [["routing-stopped"], []])
    assert.deepStrictEqual(codes(events(40_000, undefined)), [["routing-stopped"], []])
    assert.match(
      texts(events(40_000, 31_000))[0] ?? "",
      /^7 events wait to be routed, the oldest for 40 s, and none has been routed for 31 s: if no other/
    )
    // One event is held up, and others are not.
    assert.deepStrictEqual(codes(events(6 * minute, 100)), [[], ["event-held"]])
  })

  it("is that events pass a flood, and whose it is", () => {
    const bypass = {
      consumer: "bypass-1-2",
      tenants: new Set(["calm", "other"]),
      flooding: ["acme"],
      from: undefined,
      until: undefined
    }
    const flooded = { ...busy, events: counted({ waitingForRouter: 900 }) }
    assert.deepStrictEqual(texts({ ...flooded, bypass }), [
      "events of acme arrive faster than they are routed: within seconds, those of 2 other tenants will pass them"
    ])
    assert.deepStrictEqual(texts({ ...flooded, bypass: { ...bypass, from: 7 } }), [
      "events of acme arrive faster than they are routed, and those of 2 other tenants pass them: if this lasts, start another worker, or ask acme to publish more slowly"
    ])
    const closing = { ...bypass, from: 7, until: 8 }
    assert.deepStrictEqual(codes({ ...flooded, bypass: closing }), [[], []])
    const over = { ...busy, events: counted({ waitingForRouter: 0 }) }
    assert.deepStrictEqual(codes({ ...over, bypass: { ...bypass, from: 7 } }), [[], []])
  })

  it("is that somebody changed a stream or a consumer, and which way back there is", () => {
    const restricted = [
      { name: "PETREL_DELIVERIES_0", fields: ["num_replicas", "max_age"] },
      { name: "PETREL_DEAD", fields: ["sealed"] }
    ]
    const survey = {
      ...busy,
      restricted,
      // Why it acknowledges nothing is known.
      writeErrors: [{ stream: "PETREL_DEAD", ms: 20_000 }],
      events: { ...busy.events, restrictions: ["pause_until"] },
      partitions: [partition(0), partition(1, { restrictions: ["max_deliver"] })]
    }
    assert.deepStrictEqual(codes(survey), [
      ["stream-changed", "stream-changed", "stream-sealed", "consumer-changed"],
      []
    ])
    assert.deepStrictEqual(texts(survey), [
      "PETREL_DELIVERIES_0 was changed with another tool (max_age), so that messages are dropped, refused, not acknowledged or not found there: `petrel init` changes this back",
      "PETREL_DELIVERIES_0 has fewer copies than other streams (num_replicas was changed with another tool), so that one lost server can stop delivery or take messages with it: `petrel init` changes this back",
      "PETREL_DEAD was made to refuse what Petrel has to do there (sealed), and the broker cannot undo this: once the content is no longer needed, remove the stream, run `petrel init`, which says what may be lost, then restart the workers",
      "the consumers of the routers, partition 1 were changed with another tool (pause_until, max_deliver), so that messages are held back there: `petrel init` changes this back"
    ])
  })

  it("is that the routers' consumer is gone", () => {
    const survey = { ...busy, events: { ...busy.events, isRouterMissing: true } }
    assert.deepStrictEqual(codes(survey), [["router-consumer-missing"], []])
  })

  it("is that events left the stream unrouted", () => {
    const survey = { ...busy, events: counted({ lost: 101 }) }
    assert.deepStrictEqual(codes(survey), [["events-lost"], []])
    assert.match(
      texts(survey)[0] ?? "",
      /^101 events left the event stream before they were routed: removed by hand .*, or refused by a full disk and never acknowledged/
    )
    const remade = { ...busy, events: counted({ lost: beyondRemoved(now) - 7 }) }
    assert.deepStrictEqual(codes(remade), [["events-lost"], []])
    assert.match(
      texts(remade)[0] ?? "",
      /^the event stream was removed and made again: .* their number is not known/
    )
  })

  it("is that the number of partitions is being changed, and not that no worker is there", () => {
    const changing = { ...busy, workers: [], change: { from: 8, to: 32 } }
    assert.deepStrictEqual(codes(changing), [["repartitioning"], []])
  })

  it("is a source that lost what was copied from it", () => {
    const lost = (source: string) => ({
      ...{ target: "PETREL_EVENTS", source, restarts: 0 },
      ...{ start: 4, from: 4, to: 6, copied: 9 }
    })
    const survey = { ...busy, sources: [lost("PETREL_EVENTS_acme"), lost("PETREL_EVENTS_globex")] }
    assert.deepStrictEqual(codes(survey), [["source-diverged"], []])
    assert.deepStrictEqual(texts(survey), [
      "the broker lost messages 4 to 6 of PETREL_EVENTS_acme after PETREL_EVENTS had copied them, and whatever takes their sequences is not copied, and the same holds for 1 other source: run `petrel init`, which restarts the copying"
    ])
  })

  it("is a stream that takes nothing, as a restore or a conversion was broken off", () => {
    const taking = (name: string, ...subjects: ReadonlyArray<string>) =>
      led({ name, info: { config: { subjects } } as StreamInfo })
    const open = { ...busy, streams: [taking("PETREL_EVENTS", "events.>"), taking("PETREL_DEAD")] }
    assert.deepStrictEqual(codes(open), [[], []])
    const closed = { ...busy, streams: [taking("PETREL_EVENTS", "petrel.removed.PETREL_EVENTS")] }
    assert.deepStrictEqual(codes(closed), [["stream-closed"], []])
    assert.match(texts(closed)[0] ?? "", /^PETREL_EVENTS accepts no messages, .*`petrel restore`/)
  })

  it("is a source that is not heard of, though nothing of it is said to be missing", () => {
    const quietFor = (seconds: number) => {
      const sources = [
        { name: "PETREL_EVENTS_acme", lag: 0, active: seconds * 1e9 },
        { name: "PETREL_OWN_EVENTS", lag: 0, active: 9e8 }
      ]
      return { ...busy, streams: [led({ info: { config: {}, sources } as StreamInfo })] }
    }
    assert.deepStrictEqual(codes(quietFor(4)), [[], []])
    assert.deepStrictEqual(codes(quietFor(15)), [[], ["source-silent"]])
    assert.match(
      texts(quietFor(15))[0] ?? "",
      /^PETREL_EVENTS has received nothing from PETREL_EVENTS_acme for 15 s: messages that are published there are ackn/
    )
    assert.deepStrictEqual(codes(quietFor(61)), [["source-silent"], []])
  })

  it("is a source that the leader of a stream has never heard of", () => {
    const neverHeard = (ledForSeconds?: number, madeSeconds = 3_600) => {
      const sources = [{ name: "PETREL_EVENTS_acme", lag: 0, active: -1 }]
      const ts = "2026-11-30T18:11:00Z"
      const before = (seconds: number) => new Date(Date.parse(ts) - seconds * 1e3).toISOString()
      const [created, leader_since] = [before(madeSeconds), before(ledForSeconds ?? 0)]
      const cluster = { leader: "n0", ...(ledForSeconds === undefined ? {} : { leader_since }) }
      const info: Partial<StreamInfo> = { cluster, created, sources, ts }
      return { ...busy, streams: [led({ info: { config: {}, ...info } as StreamInfo })] }
    }
    assert.deepStrictEqual(codes(neverHeard(4)), [[], []])
    assert.deepStrictEqual(codes(neverHeard(15)), [[], ["source-silent"]])
    assert.match(texts(neverHeard(15))[0] ?? "", / has received nothing from .* for 15 s: /)
    assert.deepStrictEqual(codes(neverHeard(61)), [["source-silent"], []])
    // A server that is alone does not say since when.
    assert.deepStrictEqual(codes(neverHeard()), [[], ["source-silent"]])
    assert.match(texts(neverHeard())[0] ?? "", / has received nothing from .* yet: /)
    assert.deepStrictEqual(codes(neverHeard(undefined, 4)), [[], []])
  })

  it("is an endpoint that was suspended: what waits there expires", () => {
    const survey = { ...busy, endpoints: fared({ suspended: 2 }) }
    assert.deepStrictEqual(codes(survey), [[], ["endpoint-suspended"]])
    assert.match(
      texts(survey)[0] ?? "",
      /^2 endpoints are suspended, and the deliveries that wait there expire: /
    )
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
      "server n2 is offline or does not answer, so 2 streams have one copy fewer: bring it back before another fails; a server whose disk was full needs free space and a restart"
    ])
    assert.deepStrictEqual(texts({ ...busy, streams: behind(false) }), [
      "server n2 is up to 1,200 messages behind with its copies of PETREL_EVENTS, PETREL_DEAD: if this lasts, look at its log; a server whose disk was full needs free space and a restart"
    ])
  })

  it("is a server that is silent about some of its copies only: it runs", () => {
    const replicas = [{ name: "n2", current: true, active: 1, lag: 0 }]
    const healthy = led({ info: { config: {}, cluster: { leader: "n1", replicas } } as StreamInfo })
    const behind = led({ name: "PETREL_DEAD", behind: [{ server: "n2", offline: true, lag: 0 }] })
    assert.deepStrictEqual(texts({ ...busy, streams: [healthy, behind] }), [
      "server n2 is behind with its copies of PETREL_DEAD: if this lasts, look at its log; a server whose disk was full needs free space and a restart"
    ])
  })

  it("is that endpoints that were made again wait for what nobody has set yet", () => {
    const survey = { ...busy, endpoints: { ...endpoints, incomplete: 2 } }
    assert.deepStrictEqual(codes(survey), [[], ["endpoint-incomplete"]])
    assert.match(
      texts(survey)[0] ?? "",
      /^2 endpoints were made again without a URL, secret or header that the history/
    )
  })

  it("is that space runs out", () => {
    const dead = (bytes: number) => ({ ...busy, dead: { ...busy.dead, bytes } })
    assert.deepStrictEqual(codes(dead(79)), [[], []])
    assert.deepStrictEqual(codes(dead(80)), [[], ["dead-letters-full"]])
    assert.deepStrictEqual(codes(dead(95)), [["dead-letters-full"], []])
    const byTenant = { globex: 12, acme: 9_100, initech: 1, umbrella: 3 }
    assert.match(
      texts({ ...busy, dead: { ...busy.dead, bytes: 95, byTenant } })[0] ?? "",
      /95% full \(acme 9,100, globex 12, umbrella 3 and 1 other tenant\)\. While it is full, deliveries that end without success wait/
    )
    assert.deepStrictEqual(codes({ ...busy, account: { bytes: 99, limitBytes: 100 } }), [
      ["storage-full"],
      []
    ])
  })

  it("is that no gateway takes what comes from sources", () => {
    const noGateway = (unserved: number) =>
      texts({ ...busy, incoming: { ...comingIn, gateways: [], unserved } }).filter((text) =>
        text.startsWith("no gateway")
      )
    assert.deepStrictEqual(noGateway(0), [])
    assert.match(
      noGateway(2).join(),
      /nothing comes in from 2 sources: start one with `petrel ingest`/
    )
  })

  it("is that the broker does not acknowledge what gateways store", () => {
    const [first, second] = comingIn.gateways
    if (first === undefined || second === undefined) return assert.fail("there are two gateways")
    const silent = (problem: object) =>
      texts({ ...busy, incoming: { ...comingIn, gateways: [{ ...first, ...problem }, second] } })
    const said = `the broker does not store what 1 gateway (on ${first.host}) took in, so providers are told to send it again (it is full)`
    assert.isFalse(silent({}).join().includes("does not store"))
    assert.include(silent({ problem: "it is full" }).join(), said)
    const outdated = `the broker does not show the sources to 1 gateway (on ${first.host})`
    assert.include(silent({ isOutdated: true }).join(), outdated)
  })

  it("is that outboxes are not published", () => {
    const [shop] = comingIn.outboxes
    if (shop === undefined) return assert.fail("there is an outbox")
    const { problem, problemMs, ...well } = shop
    const said = (...outboxes: typeof comingIn.outboxes) =>
      texts({ ...busy, incoming: { ...comingIn, outboxes } }).filter((text) =>
        text.includes("not published")
      )
    assert.deepStrictEqual(said(well), [])
    assert.match(
      said({ ...well, at: now - minute }, shop).join(),
      /^2 outboxes are not published, such as shop \(its relay has been silent for 1 min; `petrel outbox status` shows all\)/
    )
  })

  it("is that sources refuse what comes, at all gateways or at some of them", () => {
    const refusing = (gateways: typeof comingIn.gateways) =>
      texts({ ...busy, incoming: { ...comingIn, gateways } }).filter((text) =>
        text.startsWith("acme/stripe has refused")
      )
    const [first, second] = comingIn.gateways
    assert.match(
      refusing(comingIn.gateways).join(),
      /^acme\/stripe has refused every request since /
    )
    if (first === undefined || second === undefined) return assert.fail("there are two gateways")
    assert.match(
      refusing([{ ...first, refusing: [] }, second]).join(),
      /^acme\/stripe has refused every request to 1 of 2 gateways \(on edge-1\) since .* \(11 in a row\)/
    )
  })

  it("is that what comes in is refused, and not that it is kept to be recognised", () => {
    const intake = (bytes: number, notCopied: number | null = 0): Survey => ({
      ...busy,
      incoming: { ...comingIn, bytes, limitBytes: 100, notCopied }
    })
    const usual = codes({ ...busy, incoming: comingIn })
    assert.deepStrictEqual(codes(intake(94)), usual)
    assert.deepStrictEqual(codes(intake(95)), [[...(usual[0] ?? []), "intake-full"], usual[1]])
    assert.match(
      texts(intake(95, 1)).join(),
      /^the intake is 95% full \(limit: 100 B\), .* \(1 has not\)/
    )
    assert.match(texts(intake(95, null)).join(), /how many have not is not known/)
  })

  it("is that events are refused, or the store of the account is full", () => {
    const { events, history } = busy.space
    const withEvents = (changes: Partial<typeof events.space>) => ({
      ...busy,
      space: { ...busy.space, events: { ...events, space: { ...events.space, ...changes } } }
    })
    assert.deepStrictEqual(codes(withEvents({ bytes: 4 * 1024 ** 3 })), [[], ["events-full"]])
    assert.deepStrictEqual(codes(withEvents({ bytes: 4.9 * 1024 ** 3 })), [["events-full"], []])
    assert.deepStrictEqual(texts(withEvents({ bytes: 4.9 * 1024 ** 3 })), [
      "PETREL_EVENTS is 98% full (4.9 GiB of 5 GiB), and refuses events once it is full; the events that it holds are delivered; from 2026-06-09 10:32:00 UTC on, its oldest events are removed at the age of 7 d; raise `petrel init --event-bytes` to make space sooner"
    ])
    const ownEvents = {
      ...{ name: "PETREL_OWN_EVENTS", maxAge: events.maxAge },
      space: { ...events.space, bytes: 1020 * 1024 ** 2, limitBytes: 1024 ** 3 }
    }
    const withOwn = { ...busy, space: { ...busy.space, ownEvents } }
    assert.deepStrictEqual(codes(withOwn), [["events-full"], []])
    assert.match(
      texts(withOwn)[0] ?? "",
      /^PETREL_OWN_EVENTS is 99.6% full .*`petrel init --tenant-bytes`/
    )
    const tenantEvents = [0.5, 0.9, 0.99, 0.97].map((share, index) => ({
      ...{ name: `PETREL_EVENTS_t${index}`, maxAge: events.maxAge },
      space: { ...events.space, bytes: share * 1024 ** 3, limitBytes: 1024 ** 3 }
    }))
    const withTenants = (streams: typeof tenantEvents): Survey => ({
      ...busy,
      space: { ...busy.space, tenantEvents: streams }
    })
    assert.deepStrictEqual(codes(withTenants(tenantEvents.slice(0, 1))), [[], []])
    assert.deepStrictEqual(codes(withTenants(tenantEvents.slice(0, 2))), [[], ["events-full"]])
    assert.deepStrictEqual(codes(withTenants(tenantEvents)), [["events-full"], []])
    assert.match(
      texts(withTenants(tenantEvents))[0] ?? "",
      /^PETREL_EVENTS_t2 is 99% full .*for all tenants; the same holds for 1 other tenant$/
    )
    assert.deepStrictEqual(codes(withEvents({ limitBytes: null })), [[], ["events-unbounded"]])
    const shortened = { ...history, space: { ...history.space, bytes: history.space.limitBytes } }
    assert.deepStrictEqual(texts({ ...busy, space: { ...busy.space, history: shortened } }), [
      "PETREL_HISTORY is full and drops its oldest facts: it goes back 12 d instead of 30 d, and nothing older can be audited; raise `petrel init --history-bytes`"
    ])
  })

  it("is what an audit has found missing; another alert is a notice", () => {
    const alert = (name: "deliveries-missing" | "events-unrouted") => ({
      tenant: "_",
      endpoint: "_",
      alert: {
        ...({ id: "a", name, about: "system", level: "critical", unit: "audits" } as const),
        ...{ threshold: 1, windowMs: 600_000, raisedAt: busy.at - 60_000 }
      }
    })
    const alerts = [alert("events-unrouted"), alert("deliveries-missing")]
    assert.deepStrictEqual(codes({ ...busy, alerts }), [["deliveries-missing"], ["alert-raised"]])
  })

  it("is what is in quarantine now, whatever there was when the alert was stored", () => {
    const alert = {
      ...({
        id: "a",
        name: "quarantined",
        about: "tenant",
        level: "warn",
        unit: "requests"
      } as const),
      ...{ threshold: 1, windowMs: 600_000, raisedAt: busy.at - 60_000, value: 1, currentValue: 5 }
    }
    const noticeWith = (incoming: Survey["incoming"]) =>
      conditionsOf({
        ...{ ...busy, incoming },
        alerts: [{ tenant: "globex", endpoint: "_", alert }]
      }).notices.find(({ code }) => code === "alert-raised")?.text ?? ""
    assert.match(noticeWith(comingIn), /: 1 request is in quarantine .*; now 7$/)
    assert.match(noticeWith({ ...comingIn, quarantined: new Map() }), /; now 0$/)
    assert.match(noticeWith(undefined), /; now 5$/)
  })

  it("is of many tenants' alerts the worst few, and how many others there are", () => {
    const about = (tenant: string, level: "critical" | "warn") => ({
      ...{ tenant, endpoint: "_" },
      alert: {
        ...({ id: tenant, name: "success-low", about: "tenant", level, unit: "percent" } as const),
        ...{ threshold: 99, value: 96, windowMs: 600_000, raisedAt: busy.at - 60_000 }
      }
    })
    const tenants = (count: number) =>
      Array.from({ length: count }, (_, n) => about(`t${n}`, "warn"))
    assert.strictEqual(conditionsOf({ ...busy, alerts: tenants(6) }).notices.length, 6)
    const many = [...tenants(200), about("worst", "critical")]
    const { notices } = conditionsOf({ ...busy, alerts: many })
    assert.strictEqual(notices.length, 6)
    assert.match(notices[0]?.text ?? "", /^worst \(success-low/)
    assert.deepStrictEqual(notices[5], {
      code: "more-alerts",
      text: "196 more alerts are raised about 196 tenants: `petrel alerts list` names them"
    })
    const bad = Array.from({ length: 9 }, (_, n) => about(`t${n}`, "critical"))
    assert.match(
      conditionsOf({ ...busy, alerts: bad }).notices[5]?.text ?? "",
      /^4 more alerts are raised about 4 tenants, 4 of them critical: /
    )
  })

  it("is that the broker stores nothing more somewhere, unless there is no leader", () => {
    const unanswered = [
      { stream: "PETREL_HISTORY", ms: 40_000 },
      { stream: "PETREL_DEAD", ms: 1 }
    ]
    const [text = ""] = texts({ ...busy, writeErrors: unanswered })
    assert.match(
      text,
      /^for 40 s the broker has acknowledged no message for PETREL_HISTORY, nor for 1 other stream: a write to its disk has failed/
    )
    const known = { stream: "PETREL_DEAD", reason: "read-only file system" }
    const [named = ""] = texts({ ...busy, writeErrors: [...unanswered, known] })
    assert.match(
      named,
      /^the broker's disk stores nothing more for PETREL_DEAD \(read-only file system\)/
    )
    const name = "PETREL_HISTORY"
    const leaderless = { name, state: "leaderless", info: undefined, behind: [] } as const
    assert.deepStrictEqual(
      codes({ ...busy, streams: [leaderless], writeErrors: [{ stream: name, ms: 40_000 }] })[0],
      ["stream-without-leader"]
    )
  })

  it("is that nobody delivers what is in the queues, where they are bounded", () => {
    const queued = (bytes: number, limitBytes: number | null = 1_260 * 1024 ** 2) => ({
      ...busy,
      space: { ...busy.space, queues: { bytes, limitBytes } }
    })
    assert.deepStrictEqual(codes(queued(1 * 1024 ** 3)), [[], []])
    assert.deepStrictEqual(codes(queued(1.1 * 1024 ** 3)), [["queues-full"], []])
    const [text = ""] = texts(queued(2 * 1024 ** 3))
    assert.match(
      text,
      /^queues take 2 GiB of 1\.2 GiB because no worker, or too few, deliver what is in them/
    )
    assert.deepStrictEqual(codes(queued(1024 ** 4, null)), [[], []])
  })

  it("is that each tenant has a share of the backlogs, and who has most", () => {
    const waiting = (bytes: number, limitBytes: number | null = 1_260 * 1024 ** 2) => ({
      ...busy,
      space: { ...busy.space, backlogs: { bytes, limitBytes } }
    })
    assert.deepStrictEqual(codes(waiting(0.6 * 1024 ** 3)), [[], []])
    assert.deepStrictEqual(codes(waiting(0.7 * 1024 ** 3)), [["backlogs-crowded"], []])
    const [text = ""] = texts(waiting(1024 ** 3))
    assert.match(text, /^backlogs take 1 GiB of 1\.2 GiB: each tenant now has an equal share/)
    const waitingByTenant = new Map([
      ["acme", 12_000],
      ["globex", 30],
      ["initech", 7],
      ["umbrella", 1]
    ])
    const [named = ""] = texts({ ...waiting(1024 ** 3), waitingByTenant })
    assert.include(named, "(acme 12,000, globex 30, initech 7 and 1 other tenant): each tenant")
    assert.deepStrictEqual(codes(waiting(1024 ** 4, null)), [[], []])
  })

  it("is what endpoints and deliveries suffer from", () => {
    const open = { tenant: "acme", endpoint: "billing", since: now - 2 * minute, why: "5 failures" }
    assert.deepStrictEqual(
      texts({
        ...busy,
        endpoints: { ...fared({ open: 2 }), longestOpen: [open] },
        events: counted({ waitingForRouter: 20_000 }),
        dead: { ...busy.dead, lastHour: 1 }
      }),
      [
        "20,000 events wait to be routed: if their number grows, start another worker",
        "2 endpoints have open circuits, the longest acme/billing since 10:30:00 UTC (5 failures): see `petrel endpoint show acme/billing`",
        "1 delivery ended without success since 09:32:00 UTC: see `petrel dead list --since 1h`"
      ]
    )
  })
})
