import { assert, describe } from "@effect/vitest"
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { init } from "../../src/broker/init.ts"
import { inAccountOf, unheardTenants } from "../../src/broker/tenant-streams.ts"
import { readSurvey } from "../../src/delivery/introspection/survey.ts"
import { readRepeat, repeatOf } from "../../src/domain/origin.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { Facts } from "../../src/history/facts.ts"
import { conditionsOf } from "../../src/operations/status/status-conditions.ts"
import { quiet as idle } from "../kit/consistency.ts"
import {
  acknowledgeEvents,
  endpoint,
  eventAt,
  eventually,
  history,
  publish,
  testTopology
} from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import {
  messagesInEvents,
  publisherOf,
  story,
  tenants,
  withTenants,
  workerOn
} from "../kit/tenant-story.ts"

/** Makes the broker bring everything of acme's stream again: to it a source with a filter is another one. */
const bringAgain = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const { config } = yield* ask("look", () => jsm.streams.info(names.events))
  const sources = (config.sources ?? []).map((source) => {
    if (source.name !== names.tenantEvents("acme")) return source
    const { subject_transforms: _, ...rest } = source
    return { ...rest, filter_subject: names.subjects.eventsOf("acme") }
  })
  yield* ask("change the source", () => jsm.streams.update(names.events, { ...config, sources }))
})

describe("tenants with streams of their own", () => {
  story("get all of their events delivered, though another uses the same ids", (server) =>
    Effect.gen(function* () {
      const { requests, received, url } = yield* receiver()
      for (const tenant of tenants) yield* endpoint({ tenant, url: `${url}/${tenant}` })
      yield* workerOn(server)
      for (const tenant of tenants) {
        const { publish } = yield* publisherOf(server, tenant)
        for (const n of [1, 2]) yield* publish(`events.${tenant}.invoice.paid`, `${n}`, `same-${n}`)
      }
      yield* received(4)
      assert.deepStrictEqual(
        requests.map(({ headers, path }) => `${path} ${headers["webhook-id"]}`).sort(),
        ["/acme same-1", "/acme same-2", "/globex same-1", "/globex same-2"]
      )
      yield* idle
      const { cautions, judgement } = yield* audit({})
      assert.strictEqual(judgement.verdict, "clean")
      assert.deepStrictEqual(cautions, [])
      assert.deepInclude(judgement.tally, { begun: 4, delivered: 4, repeated: 0 })
      // Each is still one event for its own tenant.
      const { publish } = yield* publisherOf(server, "acme")
      assert.isTrue((yield* publish("events.acme.invoice.paid", "1", "same-1")).duplicate)
    })
  )

  story("publish for nobody else, and no alerts", (server) =>
    Effect.gen(function* () {
      const { connection, publish } = yield* publisherOf(server, "acme")
      for (const subject of ["events.globex.a", "events.acme.petrel.alert.x", "$JS.API.INFO"]) {
        const outcome = yield* Effect.result(publish(subject, "{}", "x"))
        assert.strictEqual(outcome._tag, "Failure", subject)
      }
      const jsm = yield* Effect.promise(() =>
        jetstreamManager(connection, { checkAPI: false, timeout: 500 })
      )
      const purge = Effect.tryPromise(() => jsm.streams.purge("PETREL_EVENTS_acme"))
      assert.strictEqual((yield* Effect.result(purge))._tag, "Failure")
    })
  )

  story(
    "are named by the status where their stream is full, which refuses their events",
    (server) =>
      Effect.gen(function* () {
        const { publish } = yield* publisherOf(server, "acme")
        yield* publish("events.acme.a", "x".repeat(500_000))
        yield* publish("events.acme.a", "x".repeat(500_000))
        assert.strictEqual(
          (yield* Effect.result(publish("events.acme.a", "x".repeat(500_000))))._tag,
          "Failure"
        )
        const { problems } = conditionsOf(yield* readSurvey)
        assert.match(
          problems.find(({ code }) => code === "events-full")?.text ?? "",
          /^PETREL_EVENTS_acme is 9\d(\.\d)?% full .*--tenant-bytes/
        )
      }),
    { ...withTenants, tenantBytes: 1024 * 1024 }
  )

  story(
    "are named by the status where somebody changed, sealed or removed their stream",
    (server) =>
      Effect.gen(function* () {
        const { names } = yield* Broker
        const name = names.tenantEvents("acme")
        const { received, url } = yield* receiver()
        for (const tenant of tenants) yield* endpoint({ tenant, url: `${url}/${tenant}` })
        yield* workerOn(server)
        const { publish } = yield* publisherOf(server, "acme")
        const inAcme = (change: (jsm: JetStreamManager) => Promise<unknown>) =>
          inAccountOf("acme", (jsm) => Effect.promise(() => change(jsm)))
        const problemOf = (code: string) =>
          Effect.map(
            readSurvey,
            (survey) => conditionsOf(survey).problems.find((one) => one.code === code)?.text ?? ""
          )
        yield* inAcme((jsm) => jsm.streams.update(name, { max_msgs_per_subject: 1 }))
        assert.include(
          yield* problemOf("stream-changed"),
          `${name} was changed with another tool (max_msgs_per`
        )
        const changed = yield* init(withTenants)
        assert.deepInclude(changed, {
          ...{ what: `stream ${name}`, change: "updated" },
          fields: ["max_msgs_per_subject"]
        })
        assert.strictEqual(yield* problemOf("stream-changed"), "")
        const { ask, jsm } = yield* natsClients
        const window = { duplicate_window: 60_000_000_000 }
        // The client's type does not have it.
        const sealing: object = { sealed: true }
        yield* ask("change", () => jsm.streams.update(names.events, window))
        assert.include(
          yield* problemOf("stream-changed"),
          `${names.events} was changed with another tool (dupl`
        )
        // Sealed, it refuses its tenant's events, and keeps nothing else from being changed.
        yield* inAcme((jsm) => jsm.streams.update(name, sealing))
        assert.include(yield* problemOf("stream-sealed"), name)
        const others = yield* init(withTenants)
        assert.deepInclude(others, { what: `stream ${name}`, change: "unchanged", fields: [] })
        assert.strictEqual(yield* problemOf("stream-changed"), "")
        yield* inAcme((jsm) => jsm.streams.delete(name))
        assert.include(
          yield* problemOf("stream-missing"),
          `${name} is missing: run \`petrel init\``
        )
        assert.strictEqual(yield* problemOf("source-silent"), "")
        yield* init(withTenants)
        assert.strictEqual(yield* problemOf("stream-missing"), "")
        yield* publish("events.acme.invoice.paid", "{}", "after")
        yield* received(1)
      })
  )

  story("are audited without another one whose stream is gone, which an audit of all names", () =>
    Effect.gen(function* () {
      const { names } = yield* Broker
      const name = names.tenantEvents("acme")
      yield* inAccountOf("acme", (jsm) => Effect.promise(() => jsm.streams.delete(name)))
      const { message } = yield* Effect.flip(audit({}))
      assert.match(
        message,
        /the account of acme must answer.*`petrel audit --tenant` works for other/
      )
      const { judgement } = yield* audit({ tenant: "globex" })
      assert.strictEqual(judgement.verdict, "clean")
    })
  )

  for (const restarted of [false, true])
    story(
      `get nothing twice that a source brings twice${restarted ? ", also by another worker" : ""}`,
      (server) =>
        Effect.gen(function* () {
          const { requests, received, url } = yield* receiver()
          for (const id of ["one", "two"]) yield* endpoint({ id, url: `${url}/${id}` })
          const { publish } = yield* publisherOf(server, "acme")
          const facts = yield* history
          const send = Effect.gen(function* () {
            yield* workerOn(server)
            for (const n of [1, 2, 3]) yield* publish("events.acme.a", `${n}`, `id-${n}`)
            yield* received(6)
            yield* idle
          })
          yield* restarted ? Effect.scoped(send) : send
          yield* bringAgain
          yield* eventually(messagesInEvents, (count) => count === 6)
          if (restarted) yield* workerOn(server, "w2")
          yield* facts.planned(6)
          yield* publish("events.acme.a", "4", "id-4")
          yield* received(8)
          yield* idle
          assert.deepStrictEqual(requests.map(({ body }) => body.toString()).sort(), [
            "1",
            "1",
            "2",
            "2",
            "3",
            "3",
            "4",
            "4"
          ])
          assert.deepStrictEqual(
            facts
              .plans()
              .map(({ reason }) => readRepeat(reason))
              .flatMap((first) => (typeof first === "object" ? first.eventSeq : []))
              .sort(),
            [1, 2, 3]
          )
          const { judgement } = yield* audit({})
          assert.strictEqual(judgement.verdict, "clean")
          assert.deepInclude(judgement.events, { stored: 7, repeated: 3, deliveredAgain: 0 })
          assert.deepInclude(judgement.tally, { begun: 8, delivered: 8, repeated: 0 })
        })
    )

  story("get what a source brings again where the first is not there any more", (server) =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      const { received, requests, url } = yield* receiver()
      yield* endpoint({ url })
      const facts = yield* history
      const { publish } = yield* publisherOf(server, "acme")
      yield* workerOn(server)
      for (const n of [1, 2, 3]) yield* publish("events.acme.a", `${n}`, `id-${n}`)
      yield* received(3)
      yield* idle
      yield* ask("lose it", () => jsm.streams.deleteMessage(names.events, 2))
      yield* bringAgain
      yield* facts.planned(6)
      yield* received(4)
      yield* idle
      assert.deepStrictEqual(requests.map(({ body }) => body.toString()).sort(), [
        "1",
        "2",
        "2",
        "3"
      ])
    })
  )

  story("get what was published while nothing was taken from their stream", (server) =>
    Effect.gen(function* () {
      const { ask, jsm, names } = yield* natsClients
      for (const n of [1, 2]) yield* publish("old", `${n}`)
      yield* eventually(messagesInEvents, (count) => count === 2)
      // As when the oldest events have expired.
      yield* ask("expire", () => jsm.streams.deleteMessage(names.events, 1))
      const { config } = yield* ask("look", () => jsm.streams.info(names.events))
      const sources = (config.sources ?? []).filter(
        ({ name }) => name !== names.tenantEvents("acme")
      )
      yield* ask("cut off", () => jsm.streams.update(names.events, { ...config, sources }))
      const { publish: publishAsAcme } = yield* publisherOf(server, "acme")
      yield* publishAsAcme("events.acme.a", "1", "id-1")
      yield* publish("new", "3")
      yield* eventually(messagesInEvents, (count) => count === 2)
      yield* init(withTenants)
      yield* eventually(messagesInEvents, (count) => count === 3)
    })
  )

  story("are told of an event that the router left out as a repeat, and that is none", () =>
    Effect.gen(function* () {
      const facts = yield* Facts
      yield* publish("a", "1")
      yield* publish("a", "2")
      yield* eventually(messagesInEvents, (count) => count === 2)
      yield* acknowledgeEvents(2)
      for (const eventSeq of [1, 2])
        yield* facts.append(
          {
            ...{ v: 1, kind: "routed", at: Date.now(), tenant: "acme", endpoint: "_" },
            ...{ eventSeq, eventAt: yield* eventAt(eventSeq) },
            plan: { part: 0, last: true, endpoints: [], skipped: [] },
            ...(eventSeq === 1
              ? {}
              : { reason: repeatOf({ eventSeq: 1, eventAt: yield* eventAt(1) }) })
          },
          `routed.${eventSeq}`
        )
      const { problems, verdict } = (yield* audit({})).judgement
      assert.strictEqual(verdict, "problems")
      assert.deepStrictEqual(
        problems.list.map(({ eventSeq, kind }) => [kind, eventSeq]),
        [["unrouted", 2]]
      )
    })
  )
})

describe("an installation that publishers publish to directly", () => {
  story(
    "goes on as it was when a tenant gets a stream of its own",
    (server) =>
      Effect.gen(function* () {
        const { requests, received, url } = yield* receiver()
        for (const tenant of ["acme", "initech"])
          yield* endpoint({ tenant, url: `${url}/${tenant}` })
        yield* publish("before", "{}", { "Nats-Msg-Id": "x" })
        const changes = yield* init({ ...withTenants, tenants: ["acme"] })
        assert.deepInclude(changes, {
          what: "stream PETREL_EVENTS_acme",
          change: "created",
          fields: []
        })
        yield* workerOn(server)
        const { publish: publishAsAcme } = yield* publisherOf(server, "acme")
        yield* publishAsAcme("events.acme.after", "{}", "y")
        const { publish: publishAsOperator } = yield* publisherOf(server, "operator")
        yield* publishAsOperator("events.initech.after", "{}", "y")
        yield* received(3)
        assert.deepStrictEqual(requests.map(({ path }) => path).sort(), [
          "/acme",
          "/acme",
          "/initech"
        ])
        const again = yield* init(withTenants)
        assert.deepStrictEqual(
          again.filter(({ change }) => change !== "unchanged").map(({ what }) => what),
          ["stream PETREL_EVENTS_globex", "stream PETREL_EVENTS"]
        )
        yield* idle
        assert.strictEqual((yield* audit({})).judgement.verdict, "clean")
      }),
    testTopology
  )

  story(
    "is left alone where the account of a tenant cannot be reached",
    () =>
      Effect.gen(function* () {
        const refusal = yield* Effect.flip(init(withTenants))
        assert.include(
          refusal.message,
          "the account of acme does not answer on petrel.tenants.acme.api.>"
        )
        yield* publish("after")
        assert.strictEqual(yield* messagesInEvents, 1)
      }),
    testTopology,
    "$JS.API.>"
  )

  story(
    "is left alone where the account of a tenant has no room for its stream",
    () =>
      Effect.gen(function* () {
        const refusal = yield* Effect.flip(init({ ...withTenants, tenantBytes: 3 * 1024 ** 3 }))
        assert.strictEqual(
          refusal.message,
          "the account of acme may store 1024 MiB and has too little left for its stream, which is to take 3072 MiB: raise its max_file to 3072 MiB in the broker's configuration, or choose less with `petrel init --tenant-bytes`"
        )
        yield* publish("after")
        assert.strictEqual(yield* messagesInEvents, 1)
      }),
    testTopology
  )
})

story(
  "a tenant is named whose stream delivers to nobody",
  () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* unheardTenants, { unheard: tenants, pending: [] })
    }),
  withTenants,
  ".events.>"
)
