import { assert, describe, it } from "@effect/vitest"
import type { StreamConfig } from "@nats-io/jetstream"
import { DiscardPolicy } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { readInstalled, readLayout, TopologyError } from "../../src/broker/installed.ts"
import type { TopologyOptions } from "../../src/broker/topology.ts"
import { defaultTopology, wanted } from "../../src/broker/topology.ts"
import { readSurvey } from "../../src/delivery/introspection/survey.ts"
import { makeNames } from "../../src/domain/names.ts"
import { erasableHistory, testTopology } from "../kit/engine.ts"
import type { TestServer } from "../kit/nats-server.ts"
import { startServer } from "../kit/nats-server.ts"

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

let installations = 0

/** Runs on a part of the server where no init has been run. */
const bare = <A, E>(effect: Effect.Effect<A, E, Broker>) =>
  Effect.suspend(() => {
    const name = `b${installations++}`
    return Effect.provide(
      effect,
      connectTo({ url: server.url, prefix: `${name.toUpperCase()}_`, eventRoot: `${name}e` })
    )
  })

const options = (changes: Partial<TopologyOptions> = {}) => ({ ...testTopology, ...changes })

const makeFirst = (count: number, topology: TopologyOptions) =>
  Effect.gen(function* () {
    const { ask, connection, jsm, names } = yield* natsClients
    const items = wanted(names, topology, connection.info?.max_payload ?? 0)
    for (const { consumer, stream } of items.slice(0, count)) {
      yield* ask("add", () => jsm.streams.add(stream))
      if (consumer !== undefined) yield* ask("add", () => jsm.consumers.add(stream.name, consumer))
    }
    return items.length
  })

describe("the streams", () => {
  it("are compressed where there is one copy of each alone", () => {
    const compressed = (replicas: number) =>
      wanted(makeNames("PETREL_", "events"), options({ replicas }), 1_048_576)
        .filter(({ stream }) => stream.compression === "s2")
        .map(({ stream }) => stream.name)
    assert.deepStrictEqual(compressed(1), ["PETREL_HISTORY", "PETREL_CONFIGURATION"])
    assert.deepStrictEqual(compressed(3), [])
  })
})

describe.concurrent("init", () => {
  it.live("makes everything, and the second time changes nothing", () =>
    bare(
      Effect.gen(function* () {
        const first = yield* init(options())
        assert.deepStrictEqual(new Set(first.map(({ change }) => change)), new Set(["created"]))
        const second = yield* init(options())
        assert.deepStrictEqual(
          second.map(({ what }) => what),
          first.map(({ what }) => what)
        )
        assert.deepStrictEqual(
          second.filter(({ change }) => change !== "unchanged"),
          []
        )
        const { brokerMs, ...layout } = yield* readLayout
        assert.closeTo(brokerMs, Date.now(), 60_000)
        assert.deepStrictEqual(layout, {
          partitions: 2,
          historyAtChange: 0,
          ackWait: testTopology.ackWait,
          moveDedupe: testTopology.moveDedupe,
          isSourced: true
        })
      })
    )
  )

  it.live("changes what is asked for otherwise, and names it", () =>
    bare(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* init(options())
        const changes = yield* init(
          options({ ackWait: 7_000, deadBytes: 1_000_000, eventAge: 86_400_000 })
        )
        const updated = changes.filter(({ change }) => change !== "unchanged")
        assert.sameDeepMembers(
          updated.map(({ change, fields, what }) => [what, change, ...fields]),
          [
            [`stream ${names.intake}`, "updated", "max_age"],
            [`stream ${names.events}`, "updated", "petrel-max-age-ms"],
            [`consumer router of ${names.events}`, "updated", "ack_wait"],
            [`stream ${names.dead}`, "updated", "max_bytes"],
            [`consumer deliver of ${names.deliveries(0)}`, "updated", "ack_wait"],
            [`consumer deliver of ${names.deliveries(1)}`, "updated", "ack_wait"]
          ]
        )
        const { config } = yield* ask("look", () => jsm.streams.info(names.dead))
        assert.strictEqual(config.max_bytes, 1_000_000)
        assert.strictEqual((yield* readLayout).ackWait, 7_000)
      })
    )
  )

  it.live("keeps what is waiting where it changes something", () =>
    bare(
      Effect.gen(function* () {
        const { ask, js, jsm, names, publisher } = yield* natsClients
        yield* init(options())
        const stream = names.deliveries(0)
        for (let message = 0; message < 3; message++)
          yield* publisher.publish(names.subjects.delivery(0, "acme", "hook"), "", [])
        const consumer = yield* ask("consumer", () =>
          js.consumers.get(stream, names.deliverConsumer)
        )
        const message = yield* ask("next", () => consumer.next())
        message?.nak(3_600_000)
        yield* init(options({ ackWait: 60_000 }))
        const info = yield* ask("look", () => jsm.consumers.info(stream, names.deliverConsumer))
        assert.deepStrictEqual([info.num_ack_pending, info.num_pending], [1, 2])
      })
    )
  )

  it.live("mends what somebody else has changed", () =>
    bare(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* init(options())
        const { config } = yield* ask("look", () => jsm.streams.info(names.history))
        yield* ask("change", () => jsm.streams.update(names.history, { ...config, max_msgs: 5 }))
        yield* ask("change", () =>
          jsm.consumers.update(names.deliveries(1), names.deliverConsumer, { max_ack_pending: 5 })
        )
        const changed = (yield* init(options())).filter(({ change }) => change !== "unchanged")
        assert.deepStrictEqual(
          changed.map(({ fields, what }) => [what, ...fields]),
          [[`consumer deliver of ${names.deliveries(1)}`, "max_ack_pending"]]
        )
        const now = yield* ask("look", () => jsm.streams.info(names.history))
        assert.strictEqual(now.config.max_msgs, 5, "limits of an operator's own are left alone")
      })
    )
  )

  it.live("takes off limits by which deliveries or endpoints would be lost", () =>
    bare(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* init(options())
        const bucket = `KV_${names.buckets.endpoints}`
        const short = { max_age: nanos(2_000), duplicate_window: nanos(1_000) }
        const changed = [
          [names.deliveries(1), short],
          [names.backlog(0), { max_msgs: 5 }],
          [names.events, { max_msgs: 5 }],
          [bucket, short]
        ] as const
        for (const [stream, changes] of changed)
          yield* ask("change", () => jsm.streams.update(stream, changes))
        const { restricted = [] } = yield* readSurvey
        assert.sameDeepMembers(
          restricted.map(({ fields, name }) => [name, ...fields]),
          [
            [names.deliveries(1), "max_age"],
            [names.backlog(0), "max_msgs"],
            [names.events, "max_msgs"],
            [bucket, "max_age"]
          ]
        )
        yield* init(options())
        assert.deepStrictEqual((yield* readSurvey).restricted, [])
        const { config } = yield* ask("look", () => jsm.streams.info(names.deliveries(1)))
        assert.strictEqual(config.max_age, 0)
      })
    )
  )

  it.live("changes back by what events and facts would be dropped, refused or stored unseen", () =>
    bare(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* init(options())
        const noSources: Partial<StreamConfig> = { sources: [] }
        const moved = (src: string) => ({ subject_transform: { src, dest: `${names.events}.>` } })
        const changed = [
          [names.events, { ...moved(names.subjects.allEvents), discard: DiscardPolicy.Old }],
          [names.deliveries(1), moved(names.subjects.deliveriesOf(1))],
          [names.backlog(0), { allow_direct: false }],
          [
            names.history,
            {
              ...{ max_msg_size: 100, discard: DiscardPolicy.New },
              republish: {
                src: names.subjects.failuresSource,
                dest: `${names.events}.copies.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}`
              }
            }
          ],
          [names.dead, { discard: DiscardPolicy.Old }],
          [names.configuration, { ...noSources, max_msgs_per_subject: 1 }]
        ] as const
        for (const [stream, changes] of changed) {
          const { config } = yield* ask("look", () => jsm.streams.info(stream))
          yield* ask("change", () => jsm.streams.update(stream, { ...config, ...changes }))
        }
        const { restricted = [] } = yield* readSurvey
        assert.sameDeepMembers(
          restricted.map(({ fields, name }) => [name, ...fields]),
          [
            [names.events, "discard", "subject_transform"],
            [names.deliveries(1), "subject_transform"],
            [names.backlog(0), "allow_direct"],
            [names.history, "max_msg_size", "discard", "republish"],
            [names.dead, "discard"],
            [names.configuration, "max_msgs_per_subject", "sources", "subjects"]
          ]
        )
        yield* init(options())
        assert.deepStrictEqual((yield* readSurvey).restricted, [])
        const { config } = yield* ask("look", () => jsm.streams.info(names.events))
        assert.isUndefined(config.subject_transform)
        const again = yield* init(options())
        assert.isTrue(again.every(({ change }) => change === "unchanged"))
      })
    )
  )

  it.live("changes back by what is not acknowledged, read, kept or Petrel's own", () =>
    bare(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* init(options())
        const bucketOf = (name: "health" | "retries" | "workers") => `KV_${names.buckets[name]}`
        const changed: ReadonlyArray<readonly [string, Partial<StreamConfig>]> = [
          [names.events, { no_ack: true, max_consumers: 1 }],
          [names.history, { no_ack: true, max_msgs_per_subject: 1 }],
          [names.dead, { max_msgs_per_subject: 1, consumer_limits: { max_ack_pending: 1 } }],
          [names.backlog(0), { sources: [{ name: names.dead }] }],
          [bucketOf("health"), { allow_rollup_hdrs: false }],
          [bucketOf("retries"), { max_consumers: 1 }],
          [bucketOf("workers"), { discard_new_per_subject: true }]
        ]
        for (const [stream, changes] of changed)
          yield* ask("change", () => jsm.streams.update(stream, changes))
        const { restricted = [] } = yield* readSurvey
        assert.sameDeepMembers(
          restricted.map(({ fields, name }) => [name, ...fields]),
          [
            [names.events, "max_consumers", "no_ack"],
            [names.history, "max_msgs_per_subject", "no_ack"],
            [names.dead, "max_msgs_per_subject", "consumer_limits"],
            [names.backlog(0), "sources"],
            [bucketOf("health"), "allow_rollup_hdrs"],
            [bucketOf("retries"), "max_consumers"],
            [bucketOf("workers"), "discard_new_per_subject"]
          ]
        )
        yield* init(options())
        assert.deepStrictEqual((yield* readSurvey).restricted, [])
        const again = yield* init(options())
        assert.isTrue(again.every(({ change }) => change === "unchanged"))
      })
    )
  )

  for (const field of ["sealed", "deny_purge"] as const)
    it.live(
      `refuses before it changes anything where somebody set ${field}, and goes on then`,
      () =>
        bare(
          Effect.gen(function* () {
            const { ask, jsm, names } = yield* natsClients
            yield* init(options())
            const ages = yield* readInstalled
            const stream = field === "sealed" ? names.history : names.events
            const { config } = yield* ask("look", () => jsm.streams.info(stream))
            yield* ask("change", () => jsm.streams.update(stream, { ...config, [field]: true }))
            const { restricted = [] } = yield* readSurvey
            assert.include(
              restricted.flatMap(({ fields, name }) => [name, ...fields]),
              field
            )
            const { message } = yield* Effect.flip(init(options()))
            assert.match(
              message,
              new RegExp(`^${stream} was made to refuse .* \\(${field}\\), and the`)
            )
            assert.include(message, `remove the stream (\`nats stream rm ${stream}\`)`)
            const installed = yield* readInstalled
            assert.strictEqual(installed.historyAge, ages.historyAge)
            assert.strictEqual(installed.eventAge, ages.eventAge)
            yield* ask("remove", () => jsm.streams.delete(stream))
            const made = yield* init(options())
            assert.deepStrictEqual(
              made.filter(({ lost }) => lost !== undefined).map(({ what }) => what),
              [`stream ${stream}`]
            )
          })
        )
    )

  it.live("lets nobody delete facts any more where an older version did", () =>
    bare(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* init(options())
        yield* erasableHistory
        const changed = (yield* init(options())).filter(({ change }) => change !== "unchanged")
        assert.deepStrictEqual(
          changed.map(({ fields, what }) => [what, ...fields]),
          [[`stream ${names.history}`, "deny_delete", "deny_purge"]]
        )
        const refusal = yield* Effect.flip(ask("purge", () => jsm.streams.purge(names.history)))
        assert.include(refusal.message, "stream purge not permitted")
      })
    )
  )

  it.live("refuses another number of partitions, and says what to do", () =>
    bare(
      Effect.gen(function* () {
        yield* init(options({ partitions: 3 }))
        for (const partitions of [2, 4]) {
          const error = yield* Effect.flip(init(options({ partitions })))
          assert.instanceOf(error, TopologyError)
          assert.strictEqual(
            error.message,
            `this installation has 3 partitions and init cannot make them ${partitions}: say --partitions 3 or leave the flag out, and change it with \`petrel repartition ${partitions}\``
          )
        }
        assert.strictEqual((yield* readLayout).partitions, 3)
      })
    )
  )

  it.live("finishes one that was broken off, wherever that was", () =>
    Effect.gen(function* () {
      const topology = options({ partitions: 4 })
      const total = wanted(makeNames(), topology, 0).length
      yield* Effect.forEach(
        Array.from({ length: total }, (_, index) => index),
        (count) =>
          bare(
            Effect.gen(function* () {
              yield* makeFirst(count, topology)
              const early = yield* Effect.flip(readLayout)
              assert.include(early.message, "run `petrel init` first")
              yield* init(topology)
              assert.strictEqual((yield* readLayout).partitions, 4)
            })
          ),
        { concurrency: 4 }
      )
    })
  )

  it.live("does not mix up two that wanted different numbers of partitions", () =>
    bare(
      Effect.gen(function* () {
        const total = yield* makeFirst(15, options({ partitions: 8 }))
        assert.isAbove(total, 14)
        const error = yield* Effect.flip(init(options({ partitions: 4 })))
        assert.include(error.message, "finish it with --partitions 8")
        yield* init(options({ partitions: 8 }))
        assert.strictEqual((yield* readLayout).partitions, 8)
      })
    )
  )

  it.live("makes nothing where another installation has the event subjects, and says which", () =>
    Effect.gen(function* () {
      const at = (prefix: string, eventRoot: string) =>
        connectTo({ url: server.url, prefix, eventRoot })
      yield* Effect.provide(init(options()), at("TAKEN_", "shared"))
      const error = yield* Effect.gen(function* () {
        const failed = yield* Effect.flip(init(options()))
        assert.deepStrictEqual(yield* readInstalled, {})
        return failed
      }).pipe(Effect.provide(at("FURTHER_", "shared")))
      assert.strictEqual(
        error.message,
        "the stream TAKEN_EVENTS takes shared.> already: a further installation on this broker needs --events NAME besides --prefix, with a name of its own"
      )
      const same = yield* init(options()).pipe(Effect.provide(at("TAKEN_", "shared")))
      assert.isTrue(same.every(({ change }) => change === "unchanged"))
    })
  )

  it.live.each([
    ["own", "own.history.>"],
    ["own.dead", "own.dead.>"],
    ["own.failures.acme", "own.failures.>"],
    ["own.alert-events", "own.alert-events.>"]
  ])("refuses events under %s where that is its own", ([eventRoot, subject]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(init(options()))
      assert.strictEqual(
        error.message,
        `--events ${eventRoot} would take ${subject}, which this installation needs for itself: choose another name for the events`
      )
      assert.deepStrictEqual(yield* readInstalled, {})
    }).pipe(Effect.provide(connectTo({ url: server.url, prefix: "OWN_", eventRoot })))
  )

  it.live("says which stream the broker has no space for, and what to do", () =>
    bare(
      Effect.gen(function* () {
        const { names } = yield* Broker
        const error = yield* Effect.flip(init(options({ deadBytes: 2 ** 50 })))
        assert.include(
          error.message,
          `the streams need 1073741824 MiB more (${names.dead} 1073741824 MiB), and the broker has less that is not reserved: reserve less with \`petrel init --dead-bytes\``
        )
      })
    )
  )

  it.live("leaves bytes in an event for the headers that are added on the way", () =>
    bare(
      Effect.gen(function* () {
        const { ask, connection, jsm, names } = yield* natsClients
        yield* init({ ...defaultTopology, deadBytes: 1_000_000 })
        const { config } = yield* ask("look", () => jsm.streams.info(names.events))
        const left = (connection.info?.max_payload ?? 0) - config.max_msg_size
        assert.strictEqual(left, 65_536)
      })
    )
  )
})

describe.concurrent("a worker's look at the layout", () => {
  it.live("fails with a hint where there is none", () =>
    bare(
      Effect.gen(function* () {
        const { names } = yield* Broker
        const error = yield* Effect.flip(readLayout)
        assert.strictEqual(
          error.message,
          `there is no installation named ${names.events.slice(0, -"EVENTS".length)} on this broker: run \`petrel init\` first`
        )
      })
    )
  )

  it.live("refuses data of another version, older or newer, and so does init", () =>
    bare(
      Effect.gen(function* () {
        const { ask, bucket, names, publisher } = yield* natsClients
        yield* init(options())
        const workers = yield* bucket(names.buckets.workers)
        const refusal = (age: string) =>
          `this installation was made by ${age} version of Petrel, whose data this version neither reads nor changes: let that version deliver what waits there, and make an installation for this one beside it (\`petrel init\` with \`--prefix\` and \`--events\`)`
        const refused = (age: string) =>
          Effect.gen(function* () {
            assert.strictEqual((yield* Effect.flip(init(options()))).message, refusal(age))
            assert.strictEqual((yield* Effect.flip(readLayout)).message, refusal(age))
          })
        const put = (text: string) => ask("put", () => workers.put("layout", text))
        yield* put(JSON.stringify({ v: 4, slices: 2 }))
        yield* refused("a newer")
        yield* put(JSON.stringify({ v: 1, epoch: 1, beyond: 0 }))
        yield* refused("an older")
        yield* put("?")
        yield* refused("another")
        // The first two had no record, the second one a format under a key of its own.
        yield* ask("purge", () => workers.purge("layout"))
        yield* ask("put", () => workers.put("format", "2"))
        yield* publisher.publish(names.subjects.fact("t", "e", "ok", "delivered"), "{}", [])
        yield* refused("an older")
      })
    )
  )

  it.live("has the number of partitions from its record, and from the streams without one", () =>
    bare(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const fresh = yield* init(options({ partitions: 4 }))
        assert.isTrue(fresh.every(({ lost }) => lost === undefined))
        const remove = (...streams: ReadonlyArray<string>) =>
          Effect.forEach(streams, (stream) => ask("remove", () => jsm.streams.delete(stream)))
        const workers = `KV_${names.buckets.workers}`
        for (const gone of [
          [names.deliveries(0)],
          [names.deliveries(3), names.backlog(3)],
          [0, 1, 2, 3].flatMap((index) => [names.deliveries(index), names.backlog(index)]),
          [workers],
          [workers, names.deliveries(1)]
        ]) {
          yield* remove(...gone)
          assert.include((yield* Effect.flip(readLayout)).message, "missing on the broker")
          const { partitions } = yield* readInstalled
          assert.strictEqual(partitions, 4)
          const other = yield* Effect.flip(init(options({ partitions: 8 })))
          assert.include(other.message, "has 4 partitions and init cannot make them 8")
          const changes = yield* init(options({ partitions: 4 }))
          assert.sameMembers(
            changes.flatMap(({ lost, what }) => (lost === undefined ? [] : [what])),
            gone.map((stream) => `stream ${stream}`)
          )
          assert.strictEqual((yield* readLayout).partitions, 4)
        }
      })
    )
  )

  it.live("says what to do where the record was removed", () =>
    bare(
      Effect.gen(function* () {
        const { ask, bucket, names } = yield* natsClients
        yield* init(options())
        const workers = yield* bucket(names.buckets.workers)
        yield* ask("purge", () => workers.purge("layout"))
        const error = yield* Effect.flip(readLayout)
        assert.include(error.message, "run `petrel init`, which writes it again")
        yield* init(options())
        assert.strictEqual((yield* readLayout).partitions, testTopology.partitions)
      })
    )
  )
})
